//! A store without storage: records, a counter and a clock, and nothing else between the rules and
//! whoever calls them. After every step it checks what must hold always.

use std::collections::BTreeMap;

use crate::{
    Digest, JobId, LeaseId, Number, ObjectKey, RequestId, SessionId, Tenant, Timestamp, WorkerName,
    history::Event,
    job::{Failure, FailureKind, Job, Requeued},
    lease::{Moment, Pair, Start},
    manifest::{Manifest, Output},
    object::Object,
    refusal::Refusal,
    retry::RetryPolicy,
    spec::Spec,
    transition::{
        Applied, Beat, Cancelled, Claimant, Completed, Destination, Fresh, Granted, Present, Retry,
        Which, Wish, cancel, claim, complete, create, decide, expire, fail, heartbeat, join,
        release, retry,
    },
};

use super::{audit, replay::Mirror};

/// The ttl of every claim here, in ms.
pub(super) const TTL_MS: u64 = 30_000;

/// What a worker says of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Beat,
    /// With outputs of that kind; with their blobs present or not.
    Complete {
        outputs: u8,
        present: bool,
    },
    Fail {
        kind: FailureKind,
        chance: u64,
    },
    Release,
}

/// What the worker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Beat(Beat),
    Completed(Box<Completed>),
    Requeued(Requeued),
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) policy: RetryPolicy,
    pub(super) backup_after_ms: Option<u64>,
    /// Where whoever submits next wants the outputs.
    pub(super) publish: Option<ObjectKey>,
    pub(super) jobs: BTreeMap<JobId, Job>,
    /// What names point at, and which submission was the highest that they were given to.
    pub(super) names: BTreeMap<ObjectKey, Object>,
    pub(super) shown: BTreeMap<ObjectKey, Number>,
    counter: u64,
    mirrors: BTreeMap<JobId, Mirror>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: Moment { at: Timestamp(1_000_000), life: 1 },
            policy: RetryPolicy::default(),
            backup_after_ms: None,
            publish: None,
            names: BTreeMap::new(),
            shown: BTreeMap::new(),
            jobs: BTreeMap::new(),
            counter: 0,
            mirrors: BTreeMap::new(),
        }
    }

    pub(super) fn draw(&mut self) -> Number {
        self.counter += 1;
        Number::new(self.counter).unwrap()
    }

    /// The counter is taken back to an earlier number, as after a restore from a copy.
    pub(super) fn set_counter(&mut self, last: u64) {
        self.counter = last;
    }

    pub(super) fn job(&self, id: JobId) -> &Job {
        &self.jobs[&id]
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.now.at = self.now.at.plus_ms(ms);
    }

    /// Submits as a store does: to the live job with the key, a complete one, or a new one.
    pub(super) fn submit(&mut self, key: u8, fresh: bool) -> (JobId, Number, Destination) {
        let spec = spec(key);
        let with_key = self.jobs.values().filter(|job| job.key == spec.key());
        let live = with_key.clone().find(|job| job.state.is_live()).map(|job| job.id);
        let whole = with_key.filter(|job| job.completion.is_some()).map(|job| job.id).max();
        let number = self.draw();
        let to = decide(live.is_some(), whole.is_some(), fresh);
        let existing = match to {
            Destination::Join => live,
            Destination::Cache => whole,
            Destination::New => None,
        };
        if let Some(id) = existing {
            let before = self.job(id).clone();
            let applied = join(before.clone(), number, self.publish.clone(), self.now.at);
            self.settle(&before, applied);
            return (id, number, to);
        }
        let wish = Wish {
            tenant: Tenant::default_tenant(),
            spec,
            retry: self.policy,
            backup_after_ms: self.backup_after_ms,
            priority: 0,
            run_at: self.now.at,
            fresh,
            publish: self.publish.clone(),
        };
        let Applied { job, answer: (), history } = create(number, wish, self.now.at);
        audit::record(&job);
        self.mirrors.insert(job.id, Mirror::default());
        self.follow(job, &history);
        (JobId(number), number, to)
    }

    pub(super) fn claim(&mut self, id: JobId, worker: &str) -> (Granted, Option<Pair>) {
        let token = self.draw();
        // Anything that differs from grant to grant and cannot be mistaken for the token.
        let lease_id = LeaseId(u128::from(token.get()) * 7_919 + 13);
        let by = Claimant {
            worker: worker.parse::<WorkerName>().unwrap(),
            session: format!("session-{worker}").parse::<SessionId>().unwrap(),
            request_id: format!("claim-{token}").parse::<RequestId>().unwrap(),
            seq: 0,
            ttl_ms: TTL_MS,
        };
        let before = self.job(id).clone();
        let granted =
            self.settle(&before, claim(before.clone(), by, Fresh { token, lease_id }, self.now));
        let opened = self.job(id).attempt(token).is_some();
        assert_eq!(granted == Granted::Yes, opened, "granted means that the attempt is there");
        (granted, opened.then_some(Pair { token, lease_id }))
    }

    pub(super) fn say(&mut self, id: JobId, pair: Pair, verb: Verb) -> Result<Told, Refusal> {
        let (before, at) = (self.job(id).clone(), self.now.at);
        let job = before.clone();
        Ok(match verb {
            Verb::Beat => {
                let applied = heartbeat(job, &pair, self.now)?;
                Told::Beat(self.settle(&before, applied))
            }
            Verb::Complete { outputs, present } => {
                let (manifest, blobs) = (manifest(outputs), blobs(outputs, present));
                let applied = complete(job, &pair, manifest, &blobs, at)?;
                Told::Completed(Box::new(self.settle(&before, applied)))
            }
            Verb::Fail { kind, chance } => {
                let applied = fail(job, &pair, failure(kind, pair.token), chance, at)?;
                Told::Requeued(self.settle(&before, applied))
            }
            Verb::Release => {
                let applied = release(job, &pair, at)?;
                Told::Requeued(self.settle(&before, applied))
            }
        })
    }

    pub(super) fn cancel(&mut self, id: JobId, which: Which) -> Result<Cancelled, Refusal> {
        let before = self.job(id).clone();
        let applied = cancel(before.clone(), which, self.now.at)?;
        Ok(self.settle(&before, applied))
    }

    pub(super) fn retry(&mut self, id: JobId, submission: Option<Number>) -> Result<(), Refusal> {
        let before = self.job(id).clone();
        let with_key = self.jobs.values().filter(|job| job.key == before.key);
        let newest_with_key = with_key.map(|job| job.id).max().unwrap();
        let asked = Retry { submission, newest_with_key };
        let applied = retry(before.clone(), asked, self.now.at)?;
        self.settle(&before, applied);
        Ok(())
    }

    pub(super) fn expire(&mut self, id: JobId) -> bool {
        let before = self.job(id).clone();
        self.settle(&before, expire(before.clone(), self.now.at))
    }

    /// The session behind an open attempt ended.
    pub(super) fn suspect(&mut self, id: JobId, token: Number) {
        let now = self.now.at;
        let job = self.jobs.get_mut(&id).unwrap();
        for attempt in &mut job.attempts {
            if attempt.token == token && attempt.closed.is_none() {
                attempt.lease = attempt.lease.suspected(now, now);
            }
        }
    }

    /// The store was away for so long, and starts again.
    pub(super) fn restart(&mut self, away_ms: u64) {
        let (past_life, recorded_at) = (self.now.life, self.now.at);
        self.now.life += 1;
        self.wait(away_ms);
        let start = Start { past_life, recorded_at, now: self.now };
        for attempt in self.jobs.values_mut().flat_map(|job| &mut job.attempts) {
            if attempt.closed.is_none() {
                attempt.lease = attempt.lease.after_start(start);
            }
        }
    }

    pub(super) fn settle<A>(&mut self, before: &Job, applied: Applied<A>) -> A {
        let Applied { job, answer, history } = applied;
        audit::step(before, &job, &history, self.now.at);
        self.follow(job, &history);
        let key = &self.jobs[&before.id].key;
        let live = self.jobs.values().filter(|job| job.key == *key && job.state.is_live());
        assert!(live.count() <= 1, "at most one live job has the key");
        answer
    }

    fn follow(&mut self, job: Job, history: &[Event]) {
        let mirror = self.mirrors.get_mut(&job.id).unwrap();
        for event in history {
            mirror.follow(event);
        }
        mirror.compare(&job);
        self.jobs.insert(job.id, job);
    }
}

pub(super) fn spec(key: u8) -> Spec {
    Spec {
        recipe: "h264-720p".parse().unwrap(),
        definition: Digest::of(&[key]),
        inputs: BTreeMap::new(),
        parameters: BTreeMap::new(),
    }
}

pub(super) fn manifest(outputs: u8) -> Manifest {
    let output = Output {
        name: "video.mp4".parse().unwrap(),
        digest: Digest::of(&[outputs]),
        size_bytes: 1,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::new(),
    };
    Manifest { outputs: vec![output], ..Manifest::default() }
}

fn blobs(outputs: u8, present: bool) -> Present {
    present.then(|| (Digest::of(&[outputs]), Number::ZERO)).into_iter().collect()
}

/// A failure that tells who reported it.
fn failure(kind: FailureKind, token: Number) -> Failure {
    let reason = match kind {
        FailureKind::Retryable => "tool_failed",
        FailureKind::Final => "bad_input",
    };
    Failure { reason: reason.to_owned(), message: format!("token {token} says so"), kind }
}
