//! An engine in a folder, and its clock, driven by hand.

use std::path::Path;

use palisade_core::{
    Digest, JobId, LeaseId, Timestamp,
    job::Job,
    lease::Pair,
    transition::{Beat, Completed},
};

use crate::{
    Failure,
    command::{
        Answer, Beats, BeginBlob, BlobPlace, Claim, Claimed, Command, Complete, FinishBlob, Grant,
        Heartbeat, Pin, Submit, Submitted, Verb,
    },
    conformance::bench::{
        BEGINNING, TTL_MS, capability, heartbeat, manifest, request, session, wish_for,
    },
    query::{Query, View},
    sqlite::{Place, SqliteEngine},
};

pub(super) struct Driver {
    pub(super) engine: SqliteEngine,
    pub(super) now: Timestamp,
    next: u128,
}

impl Driver {
    pub(super) fn open(folder: &Path, now: Timestamp) -> Self {
        let engine = SqliteEngine::open(Place::Folder(folder.to_owned()), now).unwrap();
        Self { engine, now, next: u128::from(now.0) << 32 }
    }

    pub(super) fn begin(folder: &Path) -> Self {
        Self::open(folder, BEGINNING)
    }

    /// Ends as a killed process does, without a word, and starts again after a while.
    pub(super) fn killed_and_restarted(self, folder: &Path, away_ms: u64) -> Self {
        let Self { engine, now, .. } = self;
        drop(engine);
        Self::open(folder, now.plus_ms(away_ms))
    }

    pub(super) fn fresh(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    pub(super) fn try_run<V: Verb>(&mut self, verb: V) -> Result<V::Answer, Failure> {
        let mut batch = self.engine.apply_batch(vec![verb.into()], self.now);
        batch.answers.pop().unwrap().map(|answer| V::answer(answer).unwrap())
    }

    pub(super) fn run<V: Verb<Answer: std::fmt::Debug>>(&mut self, verb: V) -> V::Answer {
        self.try_run(verb).unwrap()
    }

    /// Time that is served, a tick a second.
    pub(super) fn pass_ms(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        while self.now < end {
            self.now = end.min(self.now.plus_ms(1_000));
            let batch = self.engine.apply_batch(vec![Command::Tick], self.now);
            assert!(matches!(batch.answers[..], [Ok(Answer::Tick(_))]));
        }
    }

    pub(super) fn bring(&mut self, content: &str) -> BlobPlace {
        let digest = Digest::of(content.as_bytes());
        let pin = Pin::Until(self.now.plus_ms(1_000_000));
        let place = self.run(BeginBlob { digest, pin });
        if place.present {
            return place;
        }
        let size_bytes = content.len() as u64;
        self.run(FinishBlob { digest, generation: place.generation, size_bytes })
    }

    pub(super) fn submit_of(&mut self, source: &str) -> Submit {
        let place = self.bring(source);
        let wish = wish_for(place.digest, source.len() as u64);
        Submit { wish, request_id: None }
    }

    pub(super) fn submit(&mut self, source: &str) -> Submitted {
        let submit = self.submit_of(source);
        self.run(submit)
    }

    pub(super) fn claim_of(&mut self, worker: &str) -> Claim {
        Claim {
            worker: worker.parse().unwrap(),
            session: session(worker),
            request_id: request(&format!("claim-{}", self.fresh())),
            seq: 0,
            ttl_ms: TTL_MS,
            capabilities: vec![capability()],
            lease_ids: vec![LeaseId(self.fresh())],
        }
    }

    pub(super) fn claim(&mut self, worker: &str) -> Claimed {
        let claim = self.claim_of(worker);
        self.run(claim)
    }

    pub(super) fn grant(&mut self, worker: &str) -> Grant {
        self.claim(worker).grants.remove(0)
    }

    /// A job of its own, granted to a worker.
    pub(super) fn granted(&mut self, worker: &str) -> Grant {
        let source = format!("source of {worker} {}", self.fresh());
        self.submit(&source);
        self.grant(worker)
    }

    pub(super) fn beat_of(worker: &str, seq: u64, grant: &Grant) -> Heartbeat {
        heartbeat(worker, seq, &[grant])
    }

    pub(super) fn beat(&mut self, worker: &str, seq: u64, grant: &Grant) {
        let beats: Beats = self.run(Self::beat_of(worker, seq, grant));
        assert_eq!(beats.leases, [Some(Beat::Held)]);
    }

    pub(super) fn complete(&mut self, job: JobId, pair: Pair) -> Completed {
        let content = format!("output of {job}");
        self.bring(&content);
        self.run(Complete { job, pair, manifest: manifest(&content) })
    }

    pub(super) fn job(&self, id: JobId) -> Job {
        match self.engine.query(&Query::Job(id)).unwrap() {
            View::Job(Some(job)) => *job,
            other => panic!("{id} should be there: {other:?}"),
        }
    }

    /// What is left of a job's only open lease, in ms.
    pub(super) fn left_ms(&self, id: JobId) -> u64 {
        let job = self.job(id);
        let lease = job.open_attempts().next().unwrap().lease;
        lease.deadline.since_ms(self.now)
    }
}
