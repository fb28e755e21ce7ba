//! The invariants of Palisade's own records, looked at from outside the rules that keep them.
//!
//! [`Checker`] is handed the store's counter, its webhooks, every job, the journal, then locks,
//! their grants, fenced objects and notifications; jobs in any order, the journal in its own. It
//! answers what contradicts what must never be. A journal whose beginning was deleted is fine; what
//! it still has must agree with the records.
//!
//! Must not know: where the records lie, and whether the bytes of a blob are whole.

mod effects;
mod names;
mod rule;
mod told;

use std::collections::BTreeMap;

use palisade_core::{
    JobId, LockName, Number, ObjectKey, Tenant,
    history::{Event, Subject, What},
    job::{CloseReason, Job, JobState},
    spec::JobKey,
};

use effects::KnownLock;
use names::Names;
use told::Told;

pub use rule::Rule;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant, as a stable word.
    pub rule: Rule,
    /// The record, as a person finds it again (`j17`, `journal 5`).
    pub record: String,
    /// What is there, and what it contradicts.
    pub evidence: String,
}

/// Looks at records one after another. Memory follows the number of jobs, not of their attempts.
#[derive(Debug)]
pub struct Checker {
    counter: Number,
    live: BTreeMap<(Tenant, JobKey), JobId>,
    outcomes: BTreeMap<JobId, Option<Number>>,
    completed: BTreeMap<JobId, (u64, Number)>,
    one_writer: bool,
    /// The last grant of each job, and where it stands; with one writer, of all of them.
    granted: BTreeMap<Option<JobId>, (u64, Number)>,
    lock_granted: BTreeMap<LockName, Number>,
    job_fences: BTreeMap<JobId, Number>,
    object_fences: BTreeMap<ObjectKey, Number>,
    locks: BTreeMap<LockName, KnownLock>,
    told: Told,
    names: Names,
    saw_objects: bool,
    found: Vec<Violation>,
}

impl Checker {
    /// For a store whose counter stands at `counter`.
    pub fn new(counter: Number) -> Self {
        Self {
            counter,
            live: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            completed: BTreeMap::new(),
            one_writer: false,
            granted: BTreeMap::new(),
            lock_granted: BTreeMap::new(),
            job_fences: BTreeMap::new(),
            object_fences: BTreeMap::new(),
            locks: BTreeMap::new(),
            told: Told::default(),
            names: Names::default(),
            saw_objects: false,
            found: Vec::new(),
        }
    }

    /// Takes a job's record.
    pub fn job(&mut self, job: &Job) {
        self.outcomes.insert(job.id, job.completed_by());
        self.check_key(job);
        self.check_tokens(job);
        self.check_fence(job);
        self.check_completion(job);
        self.check_state(job);
        self.note_who_is_told(job);
        self.note_publications(job);
    }

    /// The store has one writer, so that tokens rise across all jobs too; else of each job alone.
    #[must_use]
    pub fn with_one_writer(mut self, one_writer: bool) -> Self {
        self.one_writer = one_writer;
        self
    }

    /// Takes an entry of the journal, in its order.
    pub fn event(&mut self, position: u64, event: &Event) {
        self.note_told(position, event);
        match (&event.subject, &event.what) {
            (Subject::Job(job), What::Granted { token, .. }) => {
                let of = if self.one_writer { None } else { Some(*job) };
                let before = self.granted.insert(of, (position, *token));
                if let Some((at, last)) = before.filter(|(_, last)| token <= last) {
                    let text = format!("token {token} was granted after {last} (journal {at})");
                    self.say(Rule::RisingTokens, format!("journal {position}"), text);
                }
            }
            (Subject::Job(job), What::Closed { token, reason: CloseReason::Completed, .. }) => {
                self.completed_in_journal(position, *job, *token);
            }
            (Subject::Job(job), What::Moved { fence, .. }) => {
                self.job_fences.insert(*job, *fence);
            }
            (Subject::Lock(name), What::LockGranted { token, .. }) => {
                let before = self.lock_granted.insert(name.clone(), *token);
                if let Some(last) = before.filter(|last| token <= last) {
                    let text = format!("token {token} was granted after {last} for lock {name}");
                    self.say(Rule::RisingTokens, format!("journal {position}"), text);
                }
            }
            (Subject::Object(key), What::ObjectWritten { token, .. }) => {
                let fence = self.object_fences.entry(key.clone()).or_insert(*token);
                let before = std::mem::replace(fence, (*fence).max(*token));
                if *token < before {
                    let text = format!("token {token} wrote {key}, whose fence stood at {before}");
                    self.say(Rule::Fence, format!("journal {position}"), text);
                }
            }
            (Subject::Object(key), What::ObjectRaised { fence }) => {
                let known = self.object_fences.entry(key.clone()).or_insert(*fence);
                *known = (*known).max(*fence);
            }
            _ => {}
        }
    }

    fn completed_in_journal(&mut self, position: u64, job: JobId, token: Number) {
        let record = || format!("journal {position}");
        if let Some((at, by)) = self.completed.insert(job, (position, token)) {
            let text = format!(
                "{job} is completed by token {token}, and was by token {by} (journal {at})",
            );
            self.say(Rule::OneCompletion, record(), text);
        } else if let Some(fence) = self.job_fences.get(&job).filter(|fence| token < **fence) {
            let text = format!("token {token} completed {job}, whose fence stood at {fence}");
            self.say(Rule::Fence, record(), text);
        }
    }

    /// Says that every fenced object that there is has been shown.
    pub fn all_objects_shown(&mut self) {
        self.saw_objects = true;
    }

    /// Ends the looking: compares what the journal told with what the records say.
    pub fn finish(mut self) -> Vec<Violation> {
        self.finish_locks();
        self.finish_names();
        self.finish_told();
        for (job, (position, token)) in std::mem::take(&mut self.completed) {
            let recorded = self.outcomes.get(&job).copied();
            if recorded == Some(Some(token)) {
                continue;
            }
            let says = match recorded {
                None => "there is no such job".to_owned(),
                Some(None) => "its record has no completion".to_owned(),
                Some(Some(other)) => format!("its record names token {other}"),
            };
            let text = format!("{job} is completed by token {token}, but {says}");
            self.say(Rule::Journal, format!("journal {position}"), text);
        }
        self.found
    }

    fn say(&mut self, rule: Rule, record: String, evidence: String) {
        self.found.push(Violation { rule, record, evidence });
    }

    fn check_key(&mut self, job: &Job) {
        if !job.state.is_live() {
            return;
        }
        if let Some(other) = self.live.insert((job.tenant.clone(), job.key), job.id) {
            let text = format!("{other} is live with the same key of tenant {}", job.tenant);
            self.say(Rule::OneLiveJob, job.id.to_string(), text);
        }
    }

    fn check_tokens(&mut self, job: &Job) {
        for pair in job.attempts.windows(2) {
            if pair[1].token <= pair[0].token {
                let text = format!("token {} follows token {}", pair[1].token, pair[0].token);
                self.say(Rule::RisingTokens, job.id.to_string(), text);
            }
        }
        let attempts = job.attempts.iter().map(|attempt| attempt.token);
        let wishes = job.submissions.iter().map(|submission| submission.number);
        for number in attempts.chain(wishes).filter(|number| *number > self.counter) {
            let text = format!("{number} is in use, but the counter stands at {}", self.counter);
            self.found.push(Violation {
                rule: Rule::RisingTokens,
                record: job.id.to_string(),
                evidence: text,
            });
        }
    }

    /// While a job runs, its fence is the newest grant that replaced others; else it is past all.
    fn check_fence(&mut self, job: &Job) {
        let replacing = job.attempts.iter().filter(|attempt| !attempt.backup);
        let newest = replacing.map(|attempt| attempt.token).max();
        if let Some(newest) = newest.filter(|newest| job.fence < *newest) {
            let text = format!("its fence stands at {}, below its grant {newest}", job.fence);
            self.say(Rule::Fence, job.id.to_string(), text);
        } else if job.state != JobState::Running
            && let Some(last) = job.attempts.last().filter(|last| last.token >= job.fence)
        {
            let text = format!(
                "it is {}, but its fence stands at {}, not past token {}",
                job.state, job.fence, last.token
            );
            self.say(Rule::Fence, job.id.to_string(), text);
        }
        if let Some(by) = job.completed_by()
            && let Some(newest) = newest.filter(|newest| by < *newest)
        {
            let text = format!("token {by} completed it, though {newest} had been granted");
            self.say(Rule::Fence, job.id.to_string(), text);
        }
    }

    fn check_completion(&mut self, job: &Job) {
        let completed = job.attempts.iter().filter(|attempt| {
            attempt.closed.as_ref().is_some_and(|how| how.reason == CloseReason::Completed)
        });
        let tokens: Vec<_> = completed.map(|attempt| attempt.token).collect();
        let named: Vec<_> = job.completed_by().into_iter().collect();
        if tokens != named {
            let list = |tokens: &[Number]| match tokens {
                [] => "none".to_owned(),
                some => some.iter().map(Number::to_string).collect::<Vec<_>>().join(" and "),
            };
            let text = format!(
                "its completion names {}; attempts closed as completed: {}",
                list(&named),
                list(&tokens)
            );
            self.say(Rule::OneCompletion, job.id.to_string(), text);
        }
    }

    fn check_state(&mut self, job: &Job) {
        let running = job.state == JobState::Running;
        if running != job.has_open_attempt() {
            let open = job.open_attempts().count();
            let text = format!("it is {} and has {open} open attempt(s)", job.state);
            self.say(Rule::AttemptsFitState, job.id.to_string(), text);
        }
        let complete = job.state == JobState::Complete;
        let failed = job.state == JobState::Failed;
        let (completion, letter) = (job.completion.is_some(), job.dead_letter.is_some());
        if complete != completion || failed != letter {
            let has = |there: bool| if there { "a" } else { "no" };
            let text = format!(
                "it is {} with {} completion and {} dead letter",
                job.state,
                has(completion),
                has(letter)
            );
            self.say(Rule::OutcomeFitsState, job.id.to_string(), text);
        }
    }
}

#[cfg(test)]
mod tests;
