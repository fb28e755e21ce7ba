//! Wishes that share a job, and jobs that share a name: two customers want the same export, a
//! third publishes another one under the same name; wishes are withdrawn, jobs fail and are tried
//! again, every request may come late or twice, and the store may crash before what it owes is
//! published.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use palisade_core::{
    JobId, Number, ObjectKey, Timestamp,
    job::{Failure as Report, FailureKind, Job, JobState},
    lease::Pair,
    object::{Content, Object},
    transition::Which,
};
use palisade_store::command::{Answer, Cancel, Command, Fail, Publish, Retry, Submitted};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench,
    search::{Fingerprint, Model},
};

/// The rendering that each of the three wishes is for.
const RENDERINGS: [u64; 3] = [0, 0, 1];

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    /// The highest wish whose publication was carried out, whatever came of it.
    published: Option<(Number, JobId)>,
    wishes: [Option<Submitted>; 3],
    /// The wishes that were asked to be withdrawn.
    asked: BTreeSet<Number>,
    /// Those of them that were withdrawn before their job was done.
    in_time: BTreeSet<Number>,
    /// What the worker is at.
    running: Option<(JobId, Pair)>,
    claims: u64,
    retries: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Submit(usize),
    Withdraw(usize),
    Start,
    Complete,
    Fail,
    Retry(JobId),
    /// Whoever comes first carries out what is due.
    Publish,
    Crash,
}

/// The model.
pub(super) struct Wishes {
    pub(super) broken: Option<Sabotage>,
}

fn name() -> ObjectKey {
    "film".parse().expect("a fine name")
}

fn now() -> Timestamp {
    bench::BEGIN
}

impl State {
    fn apply(&mut self, command: &Command) -> Option<Answer> {
        let answer = self.engine.apply(command, now()).ok();
        self.engine.commit();
        self.engine.forget_journal();
        answer
    }

    /// What the name shows.
    fn name(&self) -> Option<&Object> {
        self.engine.live.objects.get(&name()).map(|object| &**object)
    }

    /// The oldest wish's publication that is due.
    fn publish(&mut self) -> Result<(), String> {
        let Some(Answer::Publish(done)) = self.apply(&Command::Publish(Publish { limit: 1 }))
        else {
            return Err("publishing is refused".to_owned());
        };
        let highest = done.carried_out.iter().map(|(job, number)| (*number, *job)).max();
        self.published = self.published.max(highest);
        let shown = self.name().map(|object| object.last.number);
        match shown.filter(|shown| self.in_time.contains(shown)) {
            Some(wish) => Err(format!("wish {wish} was withdrawn in time, and is published")),
            None => Ok(()),
        }
    }

    fn job(&self, id: JobId) -> Option<&Job> {
        self.engine.live.jobs.get(&id).map(|job| &**job)
    }

    /// A worker claims whatever is queued.
    fn start(&mut self) {
        self.claims += 1;
        let claim = Command::Claim(bench::claim(0, self.claims, 0));
        let Some(Answer::Claim(claimed)) = self.apply(&claim) else { return };
        self.running = claimed.grants.first().map(|grant| (grant.job.id, grant.pair));
    }

    /// It completes the job, or fails for good.
    fn finish(&mut self, fails: bool) {
        let Some((job, pair)) = self.running.take() else { return };
        let command = if fails {
            let failure = Report {
                reason: "bad_input".to_owned(),
                message: "it is damaged".to_owned(),
                kind: FailureKind::Final,
            };
            Command::Fail(Fail { job, pair, failure, chance: 0 })
        } else {
            bench::complete(job, pair, bench::content_of(0))
        };
        self.apply(&command);
    }
}

impl Model for Wishes {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::present(&mut engine, bench::content_of(0));
        engine.forget_journal();
        State {
            engine,
            published: None,
            wishes: [None; 3],
            asked: BTreeSet::new(),
            in_time: BTreeSet::new(),
            running: None,
            claims: 0,
            retries: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions: Vec<_> = (0..3).map(Action::Submit).collect();
        // The third customer never changes its mind: its wish is what the name is fought over with.
        let answered = (0..2).filter(|index| state.wishes[*index].is_some());
        actions.extend(answered.map(Action::Withdraw));
        match state.running {
            Some(_) => actions.extend([Action::Complete, Action::Fail]),
            None if state.claims < 3 => actions.push(Action::Start),
            None => {}
        }
        for job in state.engine.live.jobs.values() {
            match job.state {
                JobState::Failed | JobState::Cancelled if state.retries < 1 => {
                    actions.push(Action::Retry(job.id));
                }
                _ => {}
            }
        }
        let complete = |job: &Rc<Job>| job.state == JobState::Complete;
        if state.engine.live.jobs.values().any(complete) {
            actions.push(Action::Publish);
        }
        if state.running.is_none() && !state.engine.live.publications_due.is_empty() {
            actions.push(Action::Crash);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Submit(index) => {
                let mut asked = bench::submit(RENDERINGS[index], &format!("r{index}"));
                if let Command::Submit(submit) = &mut asked {
                    submit.wish.publish = Some(name());
                }
                if let Some(Answer::Submit(submitted)) = state.apply(&asked) {
                    state.wishes[index] = Some(submitted);
                }
            }
            Action::Withdraw(index) => {
                let Some(submitted) = state.wishes[index] else { return Ok(state) };
                let (job, which) = (submitted.job, Which::One(submitted.submission));
                // What was revived since is withdrawn by a request of its own.
                let request_id = format!("w{index}-{}", state.retries).parse().ok();
                state.asked.insert(submitted.submission);
                let answer = state.apply(&Command::Cancel(Cancel { job, which, request_id }));
                if let Some(Answer::Cancel(cancelled)) = answer
                    && cancelled.state != JobState::Complete
                {
                    state.in_time.insert(submitted.submission);
                }
            }
            Action::Start => state.start(),
            Action::Complete => state.finish(false),
            Action::Fail => {
                // Who was withdrawn meanwhile is refused, and decides nothing.
                let open = |job: &Job, pair: Pair| {
                    job.attempt(pair.token).is_some_and(|attempt| attempt.closed.is_none())
                };
                let failing = state
                    .running
                    .filter(|(id, pair)| state.job(*id).is_some_and(|job| open(job, *pair)));
                state.finish(true);
                let queued = |job: &Job| job.state == JobState::Queued;
                if failing.and_then(|(id, _)| state.job(id)).is_some_and(queued) {
                    return Err("a job that failed for good is tried again".to_owned());
                }
            }
            Action::Retry(job) => {
                state.retries += 1;
                let cancelled = state.job(job).is_some_and(|job| job.state == JobState::Cancelled);
                let first = state.job(job).and_then(|job| job.submissions.first());
                let submission = first.map(|one| one.number).filter(|_| cancelled);
                let retried =
                    state.apply(&Command::Retry(Retry { job, submission, request_id: None }));
                let spent = |job: &Job| job.failures + job.losses > 0 || job.failed_finally;
                if retried.is_some() && state.job(job).is_some_and(spent) {
                    return Err(format!("{job} is tried again, with its budgets used up"));
                }
                // Whoever revives a wish wants it again.
                if let (Some(_), Some(number)) = (retried, submission) {
                    state.asked.remove(&number);
                    state.in_time.remove(&number);
                }
            }
            Action::Publish => state.publish()?,
            Action::Crash => {
                state.engine.crash();
                state.engine.start(now());
                // Nothing is leased now, so it does not matter which life it is.
                state.engine.live.life = 1;
                state.engine.durable.life = 1;
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(
            state.running,
            state.published,
            &state.asked,
            &state.in_time,
            state.claims,
            state.retries,
        ));
        into.take(&state.wishes.map(|wish| wish.map(|one| (one.job, one.submission))));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let mut live = BTreeSet::new();
        for job in state.engine.live.jobs.values() {
            if job.state.is_live() && !live.insert(job.key) {
                return Some("two live jobs have the same key".to_owned());
            }
            for submission in &job.submissions {
                let number = submission.number;
                if submission.withdrawn_at.is_some() && !state.asked.contains(&number) {
                    return Some(format!("wish {number} is withdrawn, and nobody asked for that"));
                }
            }
            let last = job.attempts.last().map(|attempt| attempt.token);
            if job.state != JobState::Running && last.is_some_and(|last| job.fence <= last) {
                return Some(format!("{} is {}, its last token not fenced off", job.id, job.state));
            }
            if job.state == JobState::Cancelled && job.is_wanted() {
                return Some(format!("{} is cancelled, and somebody wants it", job.id));
            }
        }
        let jobs = state.engine.live.jobs.values();
        let due = jobs.flat_map(|job| job.publications_due().map(|number| (number, job.id)));
        if due.collect::<BTreeMap<_, _>>() != state.engine.live.publications_due {
            return Some("what is due to be published is not what the records say".to_owned());
        }
        let (highest, id) = state.published?;
        let shown = state.name().and_then(|object| object.content.as_ref());
        match shown {
            Some(Content::Manifest { job, .. }) if *job == id => None,
            _ => Some(format!("wish {highest} was published, and the name shows an older one")),
        }
    }

    /// Whoever wants a finished export under a name has it there, or a newer one.
    fn stuck(&self, state: &State) -> Option<String> {
        let complete = state.engine.live.jobs.values().filter(|job| job.completion.is_some());
        let mut wishes = complete.flat_map(|job| &job.submissions);
        let left = wishes.find(|wish| wish.publication_state() == Some("pending"));
        left.map(|wish| format!("wish {} is never published", wish.number))
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match *action {
            Action::Submit(index) => {
                format!("customer {index} wishes for export {}", RENDERINGS[index])
            }
            Action::Withdraw(index) => format!("customer {index} withdraws the wish"),
            Action::Start => "a worker claims".to_owned(),
            Action::Complete => "it completes".to_owned(),
            Action::Fail => "it fails for good".to_owned(),
            Action::Retry(id) => format!("somebody retries {id}"),
            Action::Publish => "somebody publishes what is due".to_owned(),
            Action::Crash => "the store crashes before that, and starts".to_owned(),
        }
    }
}
