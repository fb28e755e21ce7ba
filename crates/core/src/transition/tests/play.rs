//! Plays what happens against the rules, and compares what each verb came to with what it must
//! come to, worked out here from the attempt alone.

use crate::{
    JobId, LeaseId, Number, Timestamp,
    job::{CloseReason, FailureKind, Job, JobState},
    lease::Pair,
    refusal::Refusal,
    retry::RetryPolicy,
    transition::{Beat, Cancelled, Completed, Granted, Which},
};

use super::{
    happenings::Happening,
    world::{Told, Verb, World},
};

/// What closed an attempt, with what its worker was told.
struct Said {
    job: JobId,
    pair: Pair,
    verb: Verb,
    told: Told,
}

pub(super) struct Play {
    world: World,
    grants: Vec<(JobId, Pair)>,
    said: Vec<Said>,
    worst_token: Number,
}

impl Play {
    pub(super) fn new(policy: RetryPolicy, backup_after_ms: Option<u64>) -> Self {
        let mut world = World::new();
        world.policy = policy;
        world.backup_after_ms = backup_after_ms;
        world.submit(0, false);
        Self { world, grants: Vec::new(), said: Vec::new(), worst_token: Number::ZERO }
    }

    fn job(&self, pick: u8) -> JobId {
        let ids: Vec<_> = self.world.jobs.keys().copied().collect();
        // Counted from the newest too.
        ids[ids.len() - 1 - usize::from(pick) % ids.len()]
    }

    fn grant(&self, pick: u8) -> Option<(JobId, Pair)> {
        let count = self.grants.len();
        (count > 0).then(|| self.grants[count - 1 - usize::from(pick) % count])
    }

    fn submission(&self, job: JobId, pick: Option<u8>) -> Option<Number> {
        let submissions = &self.world.job(job).submissions;
        pick.map(|pick| submissions[usize::from(pick) % submissions.len()].number)
    }

    pub(super) fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Submit { key, fresh } => {
                let name = if fresh { "clip" } else { "film" };
                self.world.publish = name.parse().ok();
                self.world.submit(key, fresh);
            }
            Happening::Publish { job, submission } => {
                let job = self.job(job);
                if let Some(number) = self.submission(job, Some(submission)) {
                    self.world.publish(job, number);
                }
            }
            Happening::Claim { job, worker } => self.claim(self.job(job), worker),
            Happening::Say { grant, verb } => {
                if let Some((job, pair)) = self.grant(grant) {
                    self.say(job, pair, verb);
                }
            }
            Happening::SayElsewhere { grant, job, verb } => {
                let elsewhere = self.job(job);
                if let Some((job, pair)) = self.grant(grant)
                    && job != elsewhere
                {
                    self.say(elsewhere, pair, verb);
                }
            }
            Happening::SayAsStranger { grant, other, verb } => {
                if let (Some((job, pair)), Some((_, others))) =
                    (self.grant(grant), self.grant(other))
                {
                    let lease_id = if others == pair { LeaseId(1) } else { others.lease_id };
                    self.say(job, Pair { lease_id, ..pair }, verb);
                }
            }
            Happening::Repeat { said } => {
                if !self.said.is_empty() {
                    self.repeat(usize::from(said) % self.said.len());
                }
            }
            Happening::Withdraw { job, submission } => self.withdraw(self.job(job), submission),
            Happening::Retry { job, submission } => self.retry(self.job(job), submission),
            Happening::Tick { job } => self.tick(self.job(job)),
            Happening::Suspect { grant } => {
                if let Some((job, pair)) = self.grant(grant) {
                    self.world.suspect(job, pair.token);
                }
            }
            Happening::Wait { ms } => self.world.wait(ms),
            Happening::Restart { away_ms } => self.world.restart(away_ms),
        }
    }

    fn claim(&mut self, job: JobId, worker: u8) {
        let before = self.world.job(job).clone();
        let (at, worker) = (self.world.now.at, ["a", "b", "c"][usize::from(worker)]);
        let claimable = match before.state {
            JobState::Queued => before.run_at <= at,
            JobState::Running => before.open_attempts().map(|a| a.lease.deadline).max() <= Some(at),
            JobState::Complete | JobState::Failed | JobState::Cancelled => false,
        };
        assert_eq!(before.is_claimable(at), claimable);
        let (granted, pair) = self.world.claim(job, worker);
        if claimable {
            let lost = u32::from(before.state == JobState::Running);
            assert_eq!(self.world.job(job).losses, before.losses + lost);
            let spent = before.losses + lost > before.retry.losses_allowed || failed(&before);
            let expected = if spent { Granted::GivenUp } else { Granted::Yes };
            assert_eq!(granted, expected, "what is claimable is granted, or given up if spent");
        } else {
            let expected =
                if backup_is_due(&before, worker, at) { Granted::Yes } else { Granted::No };
            assert_eq!(granted, expected, "a backup is granted when it is due");
            assert_eq!(self.world.job(job).losses, before.losses);
        }
        let Some(pair) = pair else { return };
        let backup = self.world.job(job).attempt(pair.token).unwrap().backup;
        assert_eq!(backup, !claimable, "beside a live one it is a backup, else it is not");
        assert!(pair.token > self.worst_token, "tokens rise, whatever the job");
        assert!(pair.token >= self.world.job(job).fence, "a grant is above the fence");
        self.worst_token = pair.token;
        self.grants.push((job, pair));
    }

    /// Says it, and compares with what it must come to by the three cases.
    fn say(&mut self, job: JobId, pair: Pair, verb: Verb) {
        let before = self.world.job(job).clone();
        let attempt = before.attempt(pair.token).filter(|a| a.lease_id == pair.lease_id);
        let closed = attempt.map(|attempt| attempt.closed.as_ref().map(|closed| closed.reason));
        let told = self.world.say(job, pair, verb);
        let own = match verb {
            Verb::Beat => None,
            Verb::Complete { .. } => Some(CloseReason::Completed),
            Verb::Fail { .. } => Some(CloseReason::Failed),
            Verb::Release => Some(CloseReason::Released),
        };
        let after = self.world.job(job);
        let (fence, completed_by) = (after.fence, after.completed_by());
        match (closed, told) {
            (Some(None), Ok(told)) => {
                assert!(!matches!(verb, Verb::Complete { present: false, .. }));
                let now = after.attempt(pair.token).unwrap().closed.as_ref().map(|c| c.reason);
                assert_eq!(now, own, "an open attempt is closed by the verb, and for it");
                if own.is_some() {
                    self.said.push(Said { job, pair, verb, told });
                } else {
                    assert_eq!(told, Told::Beat(Beat::Held));
                }
                return;
            }
            (Some(None), Err(refusal)) => assert_eq!(refusal.code(), "missing_blob"),
            (None, told) => assert_eq!(told.unwrap_err().code(), "unknown_token"),
            (Some(Some(reason)), Ok(Told::Beat(beat))) => match beat {
                Beat::Held => panic!("nobody holds what is closed"),
                Beat::Cancelled => assert_eq!(reason, CloseReason::Cancelled),
                Beat::Lost(lost) => {
                    assert_ne!(reason, CloseReason::Cancelled);
                    assert_eq!((lost.reason, lost.fence), (reason, fence));
                    assert_eq!(lost.completed_by, completed_by);
                }
            },
            (Some(Some(reason)), Ok(_)) => assert_eq!(Some(reason), own, "only its own answer"),
            (Some(Some(CloseReason::Outrun)), Err(refusal)) => {
                let completed_by = completed_by.unwrap();
                assert_eq!(refusal, Refusal::AlreadyComplete { completed_by });
            }
            (Some(Some(reason)), Err(refusal)) => {
                assert_ne!(Some(reason), own, "its own verb is answered again");
                assert_eq!(refusal, Refusal::StaleToken { fence, reason, completed_by });
            }
        }
        assert_eq!(*after, before, "nothing but an open attempt's own verb changes anything");
    }

    pub(super) fn repeat_all(&mut self) {
        (0..self.said.len()).for_each(|index| self.repeat(index));
    }

    /// Asked again, every verb gets its first answer, whatever it now brings.
    fn repeat(&mut self, index: usize) {
        let Said { job, pair, verb, ref told } = self.said[index];
        let told = told.clone();
        let before = self.world.job(job).clone();
        assert_eq!(self.world.say(job, pair, verb), Ok(told.clone()));
        let (other, expected) = match (verb, told) {
            (Verb::Complete { outputs, .. }, Told::Completed(told)) => {
                let flagged = Completed { manifest_differs: true, ..*told };
                let other = Verb::Complete { outputs: outputs + 1, present: false };
                (other, Told::Completed(Box::new(flagged)))
            }
            (Verb::Fail { kind, chance }, told) => {
                let other = match kind {
                    FailureKind::Final => FailureKind::Retryable,
                    FailureKind::Retryable => FailureKind::Final,
                };
                (Verb::Fail { kind: other, chance: !chance }, told)
            }
            (verb, told) => (verb, told),
        };
        assert_eq!(self.world.say(job, pair, other), Ok(expected));
        assert_eq!(*self.world.job(job), before, "a repeat changes nothing");
    }

    fn withdraw(&mut self, job: JobId, submission: Option<u8>) {
        let which = self.submission(job, submission).map_or(Which::All, Which::One);
        let Cancelled { state, .. } = self.world.cancel(job, which).unwrap();
        let after = self.world.job(job).clone();
        assert_eq!(after.state, state);
        let again = self.world.cancel(job, which).unwrap();
        assert_eq!(again, Cancelled { withdrawn: 0, state });
        assert_eq!(*self.world.job(job), after, "a withdrawal repeated does nothing");
    }

    fn retry(&mut self, job: JobId, submission: Option<u8>) {
        let before = self.world.job(job).clone();
        let submission = self.submission(job, submission);
        let retried = self.world.retry(job, submission);
        let after = self.world.job(job);
        if retried.is_err() {
            assert_eq!(*after, before);
            return;
        }
        assert!(matches!(before.state, JobState::Failed | JobState::Cancelled));
        assert_eq!(after.state, JobState::Queued);
        assert_eq!((after.failures, after.losses, after.failed_finally), (0, 0, false));
        let wanted = |job: &Job| {
            let wanted = job.submissions.iter().filter(|s| s.withdrawn_at.is_none());
            wanted.map(|submission| submission.number).collect::<Vec<_>>()
        };
        let mut expected = wanted(&before);
        expected.extend(submission.filter(|number| !expected.contains(number)));
        expected.sort_unstable();
        assert_eq!(wanted(after), expected, "the named one is revived, and that one alone");
    }

    fn tick(&mut self, job: JobId) {
        let before = self.world.job(job).clone();
        let lapsed = before.state == JobState::Running && before.is_claimable(self.world.now.at);
        let gave_up = self.world.expire(job);
        assert_eq!(gave_up, lapsed && before.is_on_last_chance());
        let after = self.world.job(job);
        if gave_up {
            assert_eq!(after.state, JobState::Failed);
        } else {
            assert_eq!(*after, before, "nothing happens at a deadline");
        }
    }
}

/// Whether the failures reported decide: worked out from the attempts since the last retry.
fn failed(job: &Job) -> bool {
    let failures = usize::try_from(job.failures).unwrap();
    let reported = job.attempts.iter().filter_map(|a| a.closed.as_ref()?.failure.as_ref());
    let kinds: Vec<_> = reported.map(|failure| failure.kind).collect();
    assert!(failures <= kinds.len(), "no more are counted than were reported");
    let most = usize::try_from(job.retry.failures_allowed.max(1)).unwrap();
    failures >= most || job.failed_finally
}

fn backup_is_due(job: &Job, worker: &str, now: Timestamp) -> bool {
    let Some(after_ms) = job.backup_after_ms else { return false };
    let open: Vec<_> = job.open_attempts().collect();
    let newest = job.attempts.iter().map(|attempt| attempt.granted_at).max();
    open.len() == 1
        && open[0].worker.as_str() != worker
        && newest.is_some_and(|newest| now.since_ms(newest) >= after_ms)
        && !failed(job)
}
