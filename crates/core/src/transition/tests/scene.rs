//! Scenes in words: what is done, line by line, and what comes of it.
//!
//! | line | what comes of it |
//! |---|---|
//! | `a claims` | `granted 2`, `given up`, `nothing` |
//! | `a beats`, `a releases`, `a fails`, `a fails finally` | the answer, or the refusal |
//! | `a completes`, `a completes otherwise`, `a completes without blobs` | the same |
//! | `x completes as a` | the same with a's token and a lease id of x's own |
//! | `submit`, `submit fresh` | `new 1`, `joined 3`, `cached 3` |
//! | `withdraw 1`, `withdraw all`, `retry`, `retry 1` | the answer, or the refusal |
//! | `tick` | `given up`, `nothing` |
//! | `wait 500`, `suspect a`, `restart after 500` | `` |
//! | `job` | state, fence, open attempts, counts, how it ended |
//!
//! A worker's verb goes with its last grant. The first submission is made beforehand: it is
//! number 1, and makes job j1; the ttl is 30 s, of which the store counts 30,030 ms.

use std::collections::BTreeMap;

use crate::{
    JobId, LeaseId, Number,
    job::{CloseReason, FailureKind, Job, JobState, Requeued},
    lease::Pair,
    refusal::Refusal,
    retry::RetryPolicy,
    transition::{Beat, Cancelled, Destination, Granted, Which},
};

use super::world::{Told, Verb, World};

/// Plays the scene and compares what comes of each line.
#[track_caller]
pub(super) fn check(lines: &[(&str, &str)]) {
    check_in(World::new(), lines);
}

/// The same, of a job with these budgets.
#[track_caller]
pub(super) fn check_with(policy: RetryPolicy, lines: &[(&str, &str)]) {
    let mut world = World::new();
    world.policy = policy;
    check_in(world, lines);
}

/// The same, of a job that may get a backup after so many ms.
#[track_caller]
pub(super) fn check_with_backup(after_ms: u64, lines: &[(&str, &str)]) {
    let mut world = World::new();
    world.backup_after_ms = Some(after_ms);
    check_in(world, lines);
}

#[track_caller]
fn check_in(world: World, lines: &[(&str, &str)]) {
    let mut scene = Scene { world, job: JobId(Number::ZERO), grants: BTreeMap::new() };
    scene.play("submit");
    let played: Vec<_> = lines.iter().map(|(line, _)| (*line, scene.play(line))).collect();
    let expected: Vec<_> = lines.iter().map(|(line, what)| (*line, (*what).to_owned())).collect();
    assert_eq!(played, expected);
}

struct Scene {
    world: World,
    /// The job of the last submission.
    job: JobId,
    /// Each worker's last grant.
    grants: BTreeMap<String, (JobId, Pair)>,
}

impl Scene {
    fn play(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        match words.as_slice() {
            ["job"] => summary(self.world.job(self.job)),
            ["submit", fresh @ ..] => self.submit(*fresh == ["fresh"]),
            ["withdraw", "all"] => self.withdraw(Which::All),
            ["withdraw", number] => self.withdraw(Which::One(number.parse().unwrap())),
            ["retry", number @ ..] => self.retry(number.first().map(|n| n.parse().unwrap())),
            ["tick"] if self.world.expire(self.job) => "given up".to_owned(),
            ["tick"] => "nothing".to_owned(),
            ["wait", ms] => self.pass(|world| world.wait(ms.parse().unwrap())),
            ["restart", "after", ms] => self.pass(|world| world.restart(ms.parse().unwrap())),
            ["suspect", worker] => {
                let (job, pair) = self.grants[*worker];
                self.pass(|world| world.suspect(job, pair.token))
            }
            [worker, "claims"] => self.claim(worker),
            [_, words @ .., "as", other] => {
                let (job, pair) = self.grants[*other];
                self.say(job, Pair { lease_id: LeaseId(666), ..pair }, words)
            }
            [worker, words @ ..] => {
                let (job, pair) = self.grants[*worker];
                self.say(job, pair, words)
            }
            [] => panic!("a line has words"),
        }
    }

    fn pass(&mut self, happens: impl FnOnce(&mut World)) -> String {
        happens(&mut self.world);
        String::new()
    }

    fn submit(&mut self, fresh: bool) -> String {
        let (job, number, to) = self.world.submit(0, fresh);
        self.job = job;
        let how = match to {
            Destination::Join => "joined",
            Destination::Cache => "cached",
            Destination::New => "new",
        };
        format!("{how} {number}")
    }

    fn claim(&mut self, worker: &str) -> String {
        let (granted, pair) = self.world.claim(self.job, worker);
        if let Some(pair) = pair {
            self.grants.insert(worker.to_owned(), (self.job, pair));
            return format!("granted {}", pair.token);
        }
        if granted == Granted::GivenUp { "given up".to_owned() } else { "nothing".to_owned() }
    }

    fn withdraw(&mut self, which: Which) -> String {
        match self.world.cancel(self.job, which) {
            Ok(Cancelled { withdrawn, state }) => format!("{withdrawn} withdrawn, {state}"),
            Err(refusal) => refused(&refusal),
        }
    }

    fn retry(&mut self, submission: Option<Number>) -> String {
        match self.world.retry(self.job, submission) {
            Ok(()) => self.world.job(self.job).state.to_string(),
            Err(refusal) => refused(&refusal),
        }
    }

    fn say(&mut self, job: JobId, pair: Pair, words: &[&str]) -> String {
        let verb = match words {
            ["beats"] => Verb::Beat,
            ["completes"] => Verb::Complete { outputs: 1, present: true },
            ["completes", "otherwise"] => Verb::Complete { outputs: 2, present: true },
            ["completes", "without", "blobs"] => Verb::Complete { outputs: 1, present: false },
            ["fails"] => Verb::Fail { kind: FailureKind::Retryable, chance: 0 },
            ["fails", "finally"] => Verb::Fail { kind: FailureKind::Final, chance: 0 },
            ["releases"] => Verb::Release,
            other => panic!("{other:?} is not a verb"),
        };
        let now = self.world.now.at;
        match self.world.say(job, pair, verb) {
            Ok(Told::Beat(Beat::Held)) => "held".to_owned(),
            Ok(Told::Beat(Beat::Cancelled)) => "cancelled".to_owned(),
            Ok(Told::Beat(Beat::Lost(lost))) => {
                let (reason, fence) = (lost.reason, lost.fence);
                format!("lost: {reason}, fence {fence}{}", by(lost.completed_by))
            }
            Ok(Told::Completed(told)) => {
                let recorded = if told.manifest_differs { ", other outputs" } else { "" };
                format!("complete by {}{recorded}", told.completion.token)
            }
            Ok(Told::Requeued(Requeued { state, run_at: Some(at) })) if at > now => {
                format!("{state} in {} ms", at.since_ms(now))
            }
            Ok(Told::Requeued(Requeued { state, .. })) => state.to_string(),
            Err(refusal) => refused(&refusal),
        }
    }
}

fn by(token: Option<Number>) -> String {
    token.map(|token| format!(", completed by {token}")).unwrap_or_default()
}

fn refused(refusal: &Refusal) -> String {
    let code = refusal.code();
    match refusal {
        Refusal::StaleToken { fence, reason, completed_by } => {
            format!("{code}: {reason}, fence {fence}{}", by(*completed_by))
        }
        Refusal::AlreadyComplete { completed_by } => format!("{code} by {completed_by}"),
        Refusal::MissingBlob { field, digests } => format!("{code}: {} at {field}", digests.len()),
        Refusal::NewerJob { job } => format!("{code}: {job}"),
        Refusal::WrongState { state, .. } => format!("{code}: {state}"),
        _ => code.to_owned(),
    }
}

/// `running, fence 2, open 2 3, 1 lost`, with only what is to be told.
fn summary(job: &Job) -> String {
    let mut text = format!("{}, fence {}", job.state, job.fence);
    if job.state == JobState::Running {
        let open: Vec<_> = job.open_attempts().map(|attempt| attempt.token.to_string()).collect();
        text.push_str(&format!(", open {}", open.join(" ")));
    }
    for (count, what) in [(job.failures, "failed"), (job.losses, "lost")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push_str(&by(job.completed_by()));
    if let Some(letter) = &job.dead_letter {
        text.push_str(&format!(", {}: {}", letter.reason, letter.message));
    }
    let outrun = job.attempts.iter().filter_map(|attempt| attempt.closed.as_ref());
    if outrun.filter(|closed| closed.reason == CloseReason::Outrun).count() > 0 {
        text.push_str(", one outrun");
    }
    text
}
