//! Who wishes for exports, withdraws some wishes, and looks after failed jobs.

use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, ObjectKey, Refusal, Tenant, Timestamp,
    job::{Job, JobState},
    outbox::Delivery,
    retry::RetryPolicy,
    spec::Spec,
    transition::{Which, Wish},
};
use palisade_store::{
    Failure,
    command::{Answer, Cancel, Capability, Command, Redeliver, Retry, Submit, Submitted},
};

use crate::{designs::Design, engine::jobs_of};

use super::{
    network::Address,
    outside::ENDPOINTS,
    plan::{Plan, Wanted},
    server::rows,
    world::{Event, World},
};

/// How long a submit waits for its answer, in ms.
const PATIENCE_MS: u64 = 2_000;
/// How often the operator looks, in ms.
const LOOK_MS: u64 = 5_000;

/// What is due later than this is far away, in ms.
const LATER_MS: u64 = 30_000;
/// Most rows that the operator looks at.
const ROWS: usize = 20;

/// One wish, and how far it is.
#[derive(Debug)]
pub(crate) struct Wished {
    /// What is wanted.
    pub wanted: Wanted,
    /// What it was answered.
    pub acknowledged: Option<Submitted>,
    /// How often it was wished anew, because its job was given up for a newer one.
    pub anew: u32,
    /// Whether its withdrawal was answered, and in which state the job was then.
    pub withdrawn: Option<JobState>,
}

/// The submitter.
#[derive(Debug)]
pub(crate) struct Submitter {
    /// The wishes, in the plan's order.
    pub wishes: Vec<Wished>,
    calls: BTreeMap<u64, Asked>,
    retries: u64,
    losses_allowed: u32,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Submit(usize),
    Withdraw(usize),
    Retry(JobId),
}

/// The one recipe of the lab.
pub(crate) fn capability() -> Capability {
    let recipe = "render".parse().expect("a fine name");
    Capability { recipe, definition: Digest::of(b"the lab's renderer") }
}

/// The specification of a rendering.
pub(crate) fn spec_of(rendering: u64) -> Spec {
    let Capability { recipe, definition } = capability();
    let name = "n".parse().expect("a fine name");
    let parameters = BTreeMap::from([(name, rendering.to_string())]);
    Spec { recipe, definition, inputs: BTreeMap::new(), parameters }
}

/// The name of a target.
fn name_of(target: u64) -> ObjectKey {
    format!("film-{target}").parse().expect("a fine name")
}

impl Submitter {
    /// A submitter with everything before it. Wishes that share a job or a name are Palisade's
    /// alone: the other designs know neither.
    pub(crate) fn new(plan: &Plan, design: Design) -> Self {
        let wishes = plan.wanted.iter().filter(|wanted| {
            design.effects() == crate::designs::Effects::Projected || !wanted.is_extra
        });
        let wished = |wanted: &Wanted| Wished {
            wanted: wanted.clone(),
            acknowledged: None,
            anew: 0,
            withdrawn: None,
        };
        let lying = design == Design::LyingDispatch;
        Self {
            wishes: wishes.map(wished).collect(),
            calls: BTreeMap::new(),
            retries: 0,
            losses_allowed: if lying { 100_000 } else { plan.losses_allowed },
        }
    }

    /// When each wish is sent.
    pub(crate) fn schedule(&self) -> Vec<(usize, u64)> {
        self.wishes.iter().enumerate().map(|(index, wish)| (index, wish.wanted.at_ms)).collect()
    }

    /// How long a job's rendering takes, in ms.
    pub(crate) fn render_ms(&self, job: &Job) -> u64 {
        let of_key = self.wishes.iter().find(|wish| spec_of(wish.wanted.rendering) == job.spec);
        of_key.map_or(1_000, |wish| wish.wanted.render_ms)
    }

    /// Whether everything was answered.
    pub(crate) fn is_done(&self) -> bool {
        self.wishes.iter().all(|wish| {
            let withdrawn = wish.wanted.withdrawn_after_ms.is_none() || wish.withdrawn.is_some();
            wish.acknowledged.is_some() && withdrawn
        })
    }

    /// The jobs that somebody still wants.
    pub(crate) fn wanted_jobs(&self) -> Vec<JobId> {
        let wanted = self.wishes.iter().filter(|wish| wish.wanted.withdrawn_after_ms.is_none());
        let mut jobs: Vec<_> =
            wanted.filter_map(|wish| wish.acknowledged).map(|submitted| submitted.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }
}

impl World {
    /// Sends a wish, and again until it is answered.
    pub(super) fn submit(&mut self, index: usize) {
        let call = self.new_call();
        let wish = &self.submitter.wishes[index];
        if wish.acknowledged.is_some() {
            return;
        }
        let anew = wish.anew;
        let wish = Wish {
            tenant: Tenant::default_tenant(),
            spec: spec_of(wish.wanted.rendering),
            retry: RetryPolicy {
                failures_allowed: 3,
                losses_allowed: self.submitter.losses_allowed,
                backoff_ms: 500,
                backoff_ms_max: 5_000,
            },
            backup_after_ms: None,
            priority: 0,
            run_at: Timestamp::default(),
            fresh: false,
            publish: self.design.publishes().then(|| name_of(wish.wanted.target)),
        };
        let request_id = format!("r{index}-{anew}").parse().ok();
        self.submitter.calls.insert(call, Asked::Submit(index));
        self.command(Address::Submitter, call, Command::Submit(Submit { wish, request_id }));
        self.schedule(self.now + PATIENCE_MS, Event::Submit(index));
    }

    /// Withdraws a wish, and again until it is answered.
    pub(super) fn withdraw(&mut self, index: usize) {
        let call = self.new_call();
        let wish = &self.submitter.wishes[index];
        let (None, Some(submitted)) = (wish.withdrawn, wish.acknowledged) else { return };
        let request_id = format!("w{index}").parse().ok();
        let which = Which::One(submitted.submission);
        let cancel = Cancel { job: submitted.job, which, request_id };
        self.submitter.calls.insert(call, Asked::Withdraw(index));
        self.command(Address::Submitter, call, Command::Cancel(cancel));
        self.schedule(self.now + PATIENCE_MS, Event::Withdraw(index));
    }

    /// The server answered.
    pub(super) fn submitter_hears(&mut self, call: u64, answer: Result<Answer, Failure>) {
        let Some(asked) = self.submitter.calls.get(&call).copied() else { return };
        match (asked, answer) {
            (Asked::Submit(index), Ok(Answer::Submit(submitted))) => {
                let wish = &mut self.submitter.wishes[index];
                if wish.acknowledged.is_none() {
                    wish.acknowledged = Some(submitted);
                    if let Some(ms) = wish.wanted.withdrawn_after_ms {
                        self.schedule(self.now + ms, Event::Withdraw(index));
                    }
                }
            }
            (Asked::Withdraw(index), Ok(Answer::Cancel(cancelled))) => {
                self.submitter.wishes[index].withdrawn.get_or_insert(cancelled.state);
            }
            (Asked::Retry(job), Err(Failure::Refused(Refusal::NewerJob { .. }))) => {
                self.wish_anew(job);
            }
            // Unavailable or unknown: it is asked again.
            _ => {}
        }
    }

    /// A failed job whose key a newer job has is not tried again: who still wants it joins that.
    fn wish_anew(&mut self, job: JobId) {
        for index in 0..self.submitter.wishes.len() {
            let wish = &mut self.submitter.wishes[index];
            if wish.acknowledged.is_some_and(|submitted| submitted.job == job) {
                wish.acknowledged = None;
                wish.anew += 1;
                self.schedule(self.now, Event::Submit(index));
            }
        }
    }

    /// The operator retries what failed: an outage, or a renderer's bad day.
    pub(super) fn operator_looks(&mut self) {
        for job in jobs_of(&*self.server.engine) {
            if job.state == JobState::Failed && job.is_wanted() {
                self.submitter.retries += 1;
                let request_id = format!("o{}", self.submitter.retries).parse().ok();
                let retry = Retry { job: job.id, submission: None, request_id };
                let call = self.new_call();
                self.submitter.calls.insert(call, Asked::Retry(job.id));
                self.command(Address::Submitter, call, Command::Retry(retry));
            }
        }
        self.redeliver();
        self.schedule(self.now + LOOK_MS, Event::OperatorLooks);
    }

    /// What could not be told is told again; once the faults are over also what would be tried
    /// again hours later.
    fn redeliver(&mut self) {
        if !self.design.publishes() {
            return;
        }
        let engine = &*self.server.engine;
        let later = self.server_clock().plus_ms(LATER_MS);
        let mut ids = Vec::new();
        for (endpoint, _) in ENDPOINTS {
            let dead = rows(engine, endpoint, Some("dead"), ROWS);
            ids.extend(dead.iter().map(Delivery::id));
            if self.healed {
                let pending = rows(engine, endpoint, Some("pending"), ROWS);
                let far = pending.iter().filter(|row| row.due_at > later);
                ids.extend(far.map(Delivery::id));
            }
        }
        for id in ids {
            let call = self.new_call();
            self.command(Address::Submitter, call, Command::Redeliver(Redeliver { id }));
        }
    }

    /// Whether every job that somebody wants is complete.
    pub(super) fn jobs_are_over(&self) -> bool {
        let wanted = self.submitter.wanted_jobs();
        jobs_of(&*self.server.engine)
            .iter()
            .all(|job| job.state == JobState::Complete || !wanted.contains(&job.id))
    }
}
