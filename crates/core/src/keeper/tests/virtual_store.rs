//! The store of the virtual network: one job, by the rules, and what is lost when it crashes.

use std::collections::BTreeMap;

use crate::{
    Digest, LeaseId, Number, Tenant, Timestamp, WorkerName,
    job::Job,
    lease::{Lease, Moment, Pair, Start},
    retry::RetryPolicy,
    spec::Spec,
    transition::{Beat, Claimant, Fresh, Granted, Wish, claim, create, heartbeat},
};

/// A claim that waits: whose, when its worker sent it, and since when it waits here.
type Waiting = (usize, Timestamp, u64);

pub(super) struct Store {
    ttl_ms: u64,
    job: Job,
    life: u64,
    pub(super) up: bool,
    /// Leases as written: renewals live in memory, but for the first of a life.
    written: BTreeMap<Number, Lease>,
    waiting: Vec<Waiting>,
    counter: u64,
    /// When it wants to be asked to serve again.
    pub(super) alarms: Vec<u64>,
}

impl Store {
    pub(super) fn new(ttl_ms: u64) -> Self {
        Self {
            ttl_ms,
            job: job(),
            life: 1,
            up: true,
            written: BTreeMap::new(),
            waiting: Vec::new(),
            counter: 1,
            alarms: Vec::new(),
        }
    }

    /// The tokens of the open attempts.
    pub(super) fn open(&self) -> Vec<Number> {
        self.job.open_attempts().map(|attempt| attempt.token).collect()
    }

    /// A claim has come.
    pub(super) fn wait(&mut self, worker: usize, sent_at: Timestamp, now: u64) {
        self.waiting.push((worker, sent_at, now));
    }

    /// Grants the job to whoever has waited longest, once it is claimable.
    pub(super) fn serve(&mut self, now: u64) -> Option<(Waiting, Pair)> {
        self.waiting.retain(|(_, _, since)| now - since < 60_000);
        if self.waiting.is_empty() || !self.job.is_claimable(Timestamp(now)) {
            return None;
        }
        let first = self.waiting.remove(0);
        self.counter += 1;
        let token = Number::new(self.counter).unwrap();
        let pair = Pair { token, lease_id: LeaseId(u128::from(self.counter)) };
        let worker = first.0;
        let by = Claimant {
            worker: format!("worker-{worker}").parse::<WorkerName>().unwrap(),
            session: format!("session-{worker}").parse().unwrap(),
            request_id: format!("claim-{token}").parse().unwrap(),
            seq: 0,
            ttl_ms: self.ttl_ms,
        };
        let fresh = Fresh { token, lease_id: pair.lease_id };
        let applied = claim(self.job.clone(), by, fresh, self.moment(now));
        assert_eq!(applied.answer, Granted::Yes);
        self.job = applied.job;
        self.write_lease(token);
        Some((first, pair))
    }

    /// A heartbeat has come. None: the pair is not known.
    pub(super) fn beat(&mut self, pair: Pair, now: u64) -> Option<Beat> {
        let applied = heartbeat(self.job.clone(), &pair, self.moment(now)).ok()?;
        self.job = applied.job;
        if applied.history.is_empty() {
            self.set_alarm(pair.token);
        } else {
            self.write_lease(pair.token);
        }
        Some(applied.answer)
    }

    /// Whatever was in memory alone is gone.
    pub(super) fn crash(&mut self) {
        self.up = false;
        self.waiting.clear();
    }

    pub(super) fn start(&mut self, recorded_at: u64, now: u64) {
        let past_life = self.life;
        self.life += 1;
        self.up = true;
        let start = Start { past_life, recorded_at: Timestamp(recorded_at), now: self.moment(now) };
        for attempt in self.job.attempts.iter_mut().filter(|attempt| attempt.closed.is_none()) {
            attempt.lease = self.written[&attempt.token].after_start(start);
        }
        self.open().into_iter().for_each(|token| self.write_lease(token));
    }

    fn moment(&self, now: u64) -> Moment {
        Moment { at: Timestamp(now), life: self.life }
    }

    fn write_lease(&mut self, token: Number) {
        self.written.insert(token, self.job.attempt(token).unwrap().lease);
        self.set_alarm(token);
    }

    /// Somebody may be waiting for this deadline.
    fn set_alarm(&mut self, token: Number) {
        self.alarms.push(self.job.attempt(token).unwrap().lease.deadline.0);
    }
}

fn job() -> Job {
    let spec = Spec {
        recipe: "h264-720p".parse().unwrap(),
        definition: Digest::of(b""),
        inputs: BTreeMap::new(),
        parameters: BTreeMap::new(),
    };
    let wish = Wish {
        tenant: Tenant::default_tenant(),
        spec,
        retry: RetryPolicy { losses_allowed: u32::MAX, ..RetryPolicy::default() },
        backup_after_ms: None,
        priority: 0,
        run_at: Timestamp(0),
        fresh: false,
        publish: None,
    };
    create(Number::new(1).unwrap(), wish, Timestamp(0)).job
}
