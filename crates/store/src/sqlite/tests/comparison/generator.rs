//! Random commands that mostly make sense: they name what earlier answers gave, sometimes wrongly,
//! sometimes a second time.

mod effects;
mod outbox;

use palisade_core::{
    Digest, JobId, LeaseId, Number, ObjectKey, Tenant, Timestamp,
    job::{Failure as FailureReport, FailureKind},
    lease::Pair,
    object::Condition,
    transition::{Which, Wish},
};

use crate::{
    Failure,
    command::{
        Answer, BeginBlob, Cancel, Claim, Collect, Command, Complete, Fail, FinishBlob,
        ForgetBlobs, HandBack, Heartbeat, MarkCleared, Pin, Publish, PutObject, Release,
        ReleaseJobs, Retry, Submit, Suspect,
    },
    conformance::bench::{capability, manifest, request, session, wish_for},
};

use outbox::Deliveries;

const WORKERS: [&str; 3] = ["alice", "bob", "carol"];
const SOURCES: u64 = 6;
const OUTPUTS: u64 = 4;
/// Names to publish under; holders write some of them too.
const NAMES: [&str; 4] = ["film", "films/monday", "films", "films/monday/video.mp4"];

/// How often what happened.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) granted: usize,
    pub(crate) completed: usize,
    /// Locks granted.
    pub(crate) locked: usize,
    /// Objects written.
    pub(crate) written: usize,
    pub(crate) condemned: usize,
    pub(crate) forgotten: usize,
    pub(crate) delivered: usize,
    pub(crate) published: usize,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        self.granted += more.granted;
        self.completed += more.completed;
        self.locked += more.locked;
        self.written += more.written;
        self.condemned += more.condemned;
        self.forgotten += more.forgotten;
        self.delivered += more.delivered;
        self.published += more.published;
    }
}

pub(crate) struct Generator {
    state: u64,
    /// Every pair granted, with its worker.
    grants: Vec<(JobId, Pair, &'static str)>,
    submissions: Vec<(JobId, Number)>,
    jobs: Vec<JobId>,
    generations: Vec<(Digest, Number)>,
    asked: Vec<Command>,
    effects: effects::Known,
    deliveries: Deliveries,
    seq: u64,
    seen: Seen,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            grants: Vec::new(),
            submissions: Vec::new(),
            jobs: Vec::new(),
            generations: Vec::new(),
            asked: Vec::new(),
            effects: effects::Known::default(),
            deliveries: Deliveries::default(),
            seq: 0,
            seen: Seen::default(),
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen
    }

    pub(crate) fn jobs(&self) -> Vec<JobId> {
        self.jobs.clone()
    }

    pub(crate) fn names() -> [ObjectKey; 4] {
        NAMES.map(|name| name.parse().expect("a key"))
    }

    pub(crate) fn blobs() -> Vec<Digest> {
        let sources = (0..SOURCES).map(source);
        sources.chain((0..OUTPUTS).map(output)).map(|text| Digest::of(text.as_bytes())).collect()
    }

    /// The next random number (splitmix64).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let length = u64::try_from(from.len()).expect("short");
        if length == 0 {
            return None;
        }
        // Half of the time one of the newest: the old ones are mostly over.
        let index = if self.below(2) == 0 {
            length - 1 - self.below(length.min(4))
        } else {
            self.below(length)
        };
        from.get(usize::try_from(index).expect("short")).cloned()
    }

    /// One to five commands, as one call.
    pub(crate) fn commands(&mut self, now: Timestamp) -> Vec<Command> {
        let count = 1 + self.below(5);
        (0..count).map(|_| self.command(now)).collect()
    }

    fn command(&mut self, now: Timestamp) -> Command {
        // A lost reply: the very same is asked again.
        if self.below(6) == 0
            && let Some(again) = self.pick(&self.asked.clone())
        {
            return again;
        }
        let command = match self.below(42) {
            0..=3 => self.submit(now),
            4..=7 => self.claim(),
            8..=9 => self.heartbeat(),
            10..=11 | 24 => self.complete(),
            12 => self.fail(),
            13 => self.release(),
            14 => self.cancel(),
            15 => self.retry(),
            16..=17 => self.begin(now),
            18..=19 => self.finish(),
            20 => self.collect(),
            21 => self.clear(),
            22 => self.forget(),
            23 => self.release_jobs(),
            35 => Command::Suspect(Suspect { session: session(self.worker()), seen_at: now }),
            25 => Command::Tick,
            26..=30 => self.outbox(),
            31..=33 => {
                let limit = usize::try_from(self.below(3)).expect("small");
                Command::Publish(Publish { limit })
            }
            34 => self.put_over_a_name(),
            _ => self.effect(),
        };
        self.asked.push(command.clone());
        command
    }

    fn worker(&mut self) -> &'static str {
        self.pick(&WORKERS).expect("there are some")
    }

    fn submit(&mut self, now: Timestamp) -> Command {
        let source = source(self.below(SOURCES));
        let mut wish = wish_for(Digest::of(source.as_bytes()), source.len() as u64);
        if self.below(4) == 0 {
            wish.tenant = "other".parse::<Tenant>().expect("a tenant");
        }
        wish.retry.failures_allowed = 2;
        wish.retry.losses_allowed = 2;
        wish.retry.backoff_ms = self.below(4_000);
        wish.backup_after_ms = (self.below(3) == 0).then_some(700);
        let priority = i16::try_from(self.below(3)).expect("small");
        let run_at = if self.below(4) == 0 { now.plus_ms(2_000) } else { Timestamp(0) };
        // Often enough that not every wish is answered by what was rendered first.
        let fresh = self.below(2) == 0;
        let publish = (self.below(2) == 0).then(|| self.name());
        let wish = Wish { priority, run_at, fresh, publish, ..wish };
        let request_id = match self.below(3) {
            0 => None,
            // Sometimes an id that another wish had.
            _ => Some(request(&format!("submit-{}", self.below(300)))),
        };
        Command::Submit(Submit { wish, request_id })
    }

    fn claim(&mut self) -> Command {
        let worker = self.worker();
        let places = self.below(4);
        Command::Claim(Claim {
            worker: worker.parse().expect("a worker's name"),
            session: session(worker),
            request_id: request(&format!("claim-{}", self.below(200))),
            seq: self.seq.saturating_sub(self.below(3)),
            ttl_ms: 500 + self.below(3_000),
            capabilities: vec![capability()],
            lease_ids: (0..places).map(|_| LeaseId(u128::from(self.next()))).collect(),
        })
    }

    fn heartbeat(&mut self) -> Command {
        let worker = self.worker();
        self.seq += 1;
        let mut leases: Vec<_> = self
            .grants
            .iter()
            .rev()
            .filter(|(_, _, holder)| *holder == worker)
            .map(|(job, pair, _)| (*job, *pair))
            .take(6)
            .collect();
        if self.below(3) == 0 {
            leases.pop();
        }
        let pauses = leases.first().map(|(job, pair)| (*job, *pair, 1_234)).into_iter().collect();
        let seq = self.seq.saturating_sub(self.below(3));
        let pending = vec![request(&format!("claim-{}", self.below(200)))];
        Command::Heartbeat(Heartbeat { session: session(worker), seq, leases, pending, pauses })
    }

    /// A pair and its job, now and then not belonging together.
    fn named(&mut self) -> (JobId, Pair) {
        let nobody = Pair { token: Number::new(7).expect("small"), lease_id: LeaseId(7) };
        let (mut job, mut pair) = self
            .pick(&self.grants.clone())
            .map_or((JobId(nobody.token), nobody), |(j, p, _)| (j, p));
        match self.below(12) {
            0 => job = self.pick(&self.jobs.clone()).unwrap_or(job),
            1 => pair.lease_id = LeaseId(1),
            _ => {}
        }
        (job, pair)
    }

    fn complete(&mut self) -> Command {
        let (job, pair) = self.named();
        let manifest = manifest(&output(self.below(OUTPUTS)));
        Command::Complete(Complete { job, pair, manifest })
    }

    fn fail(&mut self) -> Command {
        let (job, pair) = self.named();
        let last = self.below(4) == 0;
        let kind = if last { FailureKind::Final } else { FailureKind::Retryable };
        let failure = FailureReport {
            reason: "tool_failed".to_owned(),
            message: format!("it said {}", self.below(100)),
            kind,
        };
        Command::Fail(Fail { job, pair, failure, chance: self.next() })
    }

    fn release(&mut self) -> Command {
        let (job, pair) = self.named();
        match self.below(3) {
            0 => {
                // Seen before all that was renewed, or after it.
                let seen_at = Timestamp(self.below(2) * Number::MAX.get());
                Command::HandBack(HandBack { job, pair, seen_at })
            }
            _ => Command::Release(Release { job, pair }),
        }
    }

    fn cancel(&mut self) -> Command {
        let nobody = (JobId(Number::MAX), Number::MAX);
        let (job, number) = self.pick(&self.submissions.clone()).unwrap_or(nobody);
        let which = if self.below(3) == 0 { Which::All } else { Which::One(number) };
        let request_id = Some(request(&format!("cancel-{}", self.below(50))));
        Command::Cancel(Cancel { job, which, request_id })
    }

    fn retry(&mut self) -> Command {
        let nobody = (JobId(Number::MAX), Number::MAX);
        let (job, number) = self.pick(&self.submissions.clone()).unwrap_or(nobody);
        let submission = (self.below(2) == 0).then_some(number);
        let request_id = Some(request(&format!("retry-{}", self.below(50))));
        Command::Retry(Retry { job, submission, request_id })
    }

    fn name(&mut self) -> ObjectKey {
        // The last is left to holders mostly: a name is one kind's for ever.
        let index = usize::try_from(self.below(13) / 4).expect("small");
        NAMES[index].parse().expect("a key")
    }

    fn put_over_a_name(&mut self) -> Command {
        let (_, pair) = self.named();
        let index = if self.below(10) == 0 { 0 } else { NAMES.len() - 1 };
        Command::PutObject(PutObject {
            key: NAMES[index].parse().expect("a key"),
            pair,
            op: 1 + self.below(3),
            digest: self.pick(&Self::blobs()).expect("there are some"),
            generation: Number::ZERO,
            media_type: "video/mp4".to_owned(),
            condition: Condition::None,
        })
    }

    fn begin(&mut self, now: Timestamp) -> Command {
        let digest = self.pick(&Self::blobs()).expect("there are some");
        let pin = if self.below(2) == 0 {
            Pin::Until(now.plus_ms(60_000))
        } else {
            let (job, pair) = self.named();
            Pin::Attempt(job, pair)
        };
        Command::BeginBlob(BeginBlob { digest, pin })
    }

    /// Some generations, of which some are kept and some are condemned.
    fn some_generations(&mut self) -> Vec<(Digest, Number)> {
        let known = self.generations.clone();
        (0..6).filter_map(|_| self.pick(&known)).collect()
    }

    fn collect(&mut self) -> Command {
        let blobs = self.some_generations();
        Command::Collect(Collect { blobs, grace_ms: self.below(2) * 2_000 })
    }

    fn clear(&mut self) -> Command {
        Command::MarkCleared(MarkCleared { places: self.some_generations() })
    }

    fn forget(&mut self) -> Command {
        let (places, tombstone_ms) = (self.some_generations(), self.below(3_000));
        Command::ForgetBlobs(ForgetBlobs { places, tombstone_ms })
    }

    fn release_jobs(&mut self) -> Command {
        let known = self.jobs.clone();
        let jobs = (0..4).filter_map(|_| self.pick(&known)).collect();
        Command::ReleaseJobs(ReleaseJobs { jobs, keep_ms: self.below(20_000) })
    }

    fn finish(&mut self) -> Command {
        let nobody = (Digest::of(b"nobody's"), Number::MAX);
        let (digest, generation) = self.pick(&self.generations.clone()).unwrap_or(nobody);
        // All sources and outputs have the same length.
        let size_bytes = source(0).len() as u64;
        Command::FinishBlob(FinishBlob { digest, generation, size_bytes })
    }

    /// Takes note of an answer, for later commands.
    pub(crate) fn learn(&mut self, command: &Command, answer: &Result<Answer, Failure>) {
        match (command, answer) {
            (Command::Claim(claim), Ok(Answer::Claim(claimed))) => {
                let holder = WORKERS.into_iter().find(|worker| claim.worker.as_str() == *worker);
                let holder = holder.expect("one of them");
                for grant in &claimed.grants {
                    self.grants.push((grant.job.id, grant.pair, holder));
                }
                self.seen.granted += claimed.grants.len();
            }
            (_, Ok(Answer::Submit(submitted))) => {
                self.submissions.push((submitted.job, submitted.submission));
                self.jobs.push(submitted.job);
            }
            (_, Ok(Answer::BeginBlob(place))) => {
                self.generations.push((place.digest, place.generation));
            }
            (_, Ok(Answer::Complete(_))) => self.seen.completed += 1,
            (_, Ok(Answer::Publish(done))) => self.seen.published += done.carried_out.len(),
            (_, Ok(Answer::Collect(condemned))) => self.seen.condemned += condemned.places.len(),
            (_, Ok(Answer::ForgetBlobs(forgotten))) => {
                self.seen.forgotten += forgotten.places.len();
            }
            (_, Ok(Answer::LeaseDeliveries(leased))) => {
                self.seen.delivered += leased.leased.len();
                self.deliveries.learn(&leased.leased);
            }
            _ => self.learn_effect(command, answer),
        }
    }
}

fn source(index: u64) -> String {
    format!("source {index}")
}

fn output(index: u64) -> String {
    format!("output {index}")
}
