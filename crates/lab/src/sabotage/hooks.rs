//! Where a sabotage bends the lab's engine: before a command, at a write, after an answer, at a
//! start.

use std::rc::Rc;

use palisade_core::{
    Number, Refusal, Timestamp,
    blob::{Blob, BlobState},
    job::{CloseReason, Closed, Job, JobState},
    lease::{Lease, Pair, Start},
    time::granted_span_ms,
    transition::{Beat, Which},
};
use palisade_store::{
    Failure,
    command::{Answer, Command},
};

use crate::engine::CrashEngine;

use super::Sabotage;

/// Bends a command before it is decided. Some: it is refused at once.
pub(crate) fn before(
    engine: &mut CrashEngine,
    command: &mut Command,
    now: Timestamp,
) -> Option<Failure> {
    let broken = engine.broken?;
    match (broken, command) {
        (Sabotage::CompleteTwice, Command::Complete(complete)) => {
            reopen(engine, complete.job, complete.pair);
        }
        (Sabotage::DeadlineDecides, Command::Complete(complete)) => {
            let job = engine.job_now(complete.job)?;
            let attempt = job.attempt(complete.pair.token)?;
            if attempt.closed.is_none() && !attempt.lease.is_within(now) {
                let (reason, completed_by) = (CloseReason::Superseded, None);
                let stale = Refusal::StaleToken { fence: job.fence, reason, completed_by };
                return Some(Failure::Refused(stale));
            }
        }
        (Sabotage::CommitIgnoresBlobs, Command::Complete(complete)) => {
            for output in &complete.manifest.outputs {
                if let Some(blob) = engine.live.newest_blob(output.digest) {
                    let present = Blob { state: BlobState::Present, ..blob };
                    engine.live.blobs.insert((blob.digest, blob.generation), present);
                }
            }
        }
        (Sabotage::ReleasedWhilePending, Command::Heartbeat(beat)) => {
            beat.pending.clear();
            beat.seq += 1_000_000;
        }
        (Sabotage::CancelTakesAll, Command::Cancel(cancel)) => cancel.which = Which::All,
        (Sabotage::RenewedSuspected, Command::Suspect(suspect)) => {
            suspect.seen_at = Timestamp(Number::MAX.get());
        }
        (_, command @ (Command::Publish(_) | Command::SettleDelivery(_))) => {
            super::projections::before(engine, broken, command);
        }
        (_, command @ (Command::LeaveLock(_) | Command::ReleaseLock(_))) => {
            super::locks::before(engine, broken, command);
        }
        (_, command) => {
            if let Some((job, pair)) = named(command) {
                *pair = bent(engine, broken, job, *pair);
            }
        }
    }
    None
}

/// The job and the pair that a worker's verb names.
fn named(command: &mut Command) -> Option<(palisade_core::JobId, &mut Pair)> {
    match command {
        Command::Complete(complete) => Some((complete.job, &mut complete.pair)),
        Command::Fail(fail) => Some((fail.job, &mut fail.pair)),
        Command::Release(release) => Some((release.job, &mut release.pair)),
        _ => None,
    }
}

/// The pair as a careless check would understand it.
fn bent(engine: &CrashEngine, broken: Sabotage, id: palisade_core::JobId, shown: Pair) -> Pair {
    let Some(job) = engine.live.jobs.get(&id) else { return shown };
    let open = job.open_attempts().next();
    let open = open.map(|attempt| Pair { token: attempt.token, lease_id: attempt.lease_id });
    match broken {
        Sabotage::AnyRunningAttempt => open.unwrap_or(shown),
        Sabotage::LeaseIdIgnored => {
            let attempt = job.attempt(shown.token);
            attempt.map_or(shown, |attempt| Pair { lease_id: attempt.lease_id, ..shown })
        }
        Sabotage::OtherJobsPair => {
            let mut others = engine.live.jobs.values().filter(|other| other.id != id);
            let granted = others.find_map(|other| other.attempt(shown.token));
            let belongs = granted.is_some_and(|attempt| attempt.lease_id == shown.lease_id);
            open.filter(|_| belongs).unwrap_or(shown)
        }
        _ => shown,
    }
}

fn reopen(engine: &mut CrashEngine, id: palisade_core::JobId, pair: Pair) {
    let Some(mut job) = engine.job_now(id) else { return };
    if job.state != JobState::Complete {
        return;
    }
    job.state = JobState::Running;
    for attempt in &mut job.attempts {
        if attempt.token == pair.token && attempt.lease_id == pair.lease_id {
            attempt.closed = None;
        }
    }
    engine.force(job);
}

/// Bends a record on its way to the disk.
pub(crate) fn on_put(broken: Option<Sabotage>, before: Option<&Job>, job: &mut Job) {
    let (Some(broken), Some(before)) = (broken, before) else { return };
    let left_running = before.state == JobState::Running && job.state != JobState::Running;
    match broken {
        Sabotage::FenceNotRaisedOnCancel if left_running && job.state == JobState::Cancelled => {
            job.fence = before.fence;
        }
        Sabotage::FenceNotRaisedOnFailure if left_running && job.state == JobState::Queued => {
            job.fence = before.fence;
        }
        Sabotage::OpenAfterFailure => leave_open(before, job, CloseReason::Failed),
        Sabotage::SupersededStaysOpen => leave_open(before, job, CloseReason::Superseded),
        Sabotage::OutrunStaysOpen => leave_open(before, job, CloseReason::Outrun),
        Sabotage::BackupRaisesFence if job.attempts.len() > before.attempts.len() => {
            job.fence = job.attempts.last().map_or(job.fence, |attempt| attempt.token);
        }
        Sabotage::LossesNotCounted => job.losses = before.losses,
        Sabotage::FailuresNotCounted => job.failures = before.failures,
        _ => {}
    }
}

/// Attempts that were closed for this reason just now stay open.
fn leave_open(before: &Job, job: &mut Job, reason: CloseReason) {
    for attempt in &mut job.attempts {
        let was_open = before.attempt(attempt.token).is_some_and(|old| old.closed.is_none());
        if was_open && attempt.closed.as_ref().map(closed_for) == Some(reason) {
            attempt.closed = None;
        }
    }
}

fn closed_for(closed: &Closed) -> CloseReason {
    closed.reason
}

/// The book has the renewal, the record has not.
pub(crate) fn forget_renewals(recorded: Option<&Rc<Job>>, job: &mut Job) {
    let Some(recorded) = recorded else { return };
    for attempt in &mut job.attempts {
        if let Some(old) = recorded.attempt(attempt.token) {
            attempt.lease = old.lease;
        }
    }
}

/// Bends an answer on its way out.
pub(crate) fn after(
    engine: &CrashEngine,
    command: &Command,
    outcome: Result<Answer, Failure>,
) -> Result<Answer, Failure> {
    match (engine.broken, command, outcome) {
        (Some(Sabotage::RenewedWhenClosed), _, Ok(Answer::Heartbeat(mut beats))) => {
            for beat in beats.leases.iter_mut().flatten() {
                *beat = Beat::Held;
            }
            Ok(Answer::Heartbeat(beats))
        }
        (_, _, outcome) => outcome,
    }
}

/// What every lease becomes after a start.
pub(crate) fn after_start(engine: &CrashEngine, start: Start) -> Vec<(Number, Lease)> {
    let whole = |lease: Lease| Lease {
        deadline: start.now.at.plus_ms(granted_span_ms(lease.ttl_ms)),
        ..lease
    };
    match engine.broken {
        Some(Sabotage::NoGrace) => Vec::new(),
        Some(Sabotage::GraceForEver) => {
            engine.book.all().map(|held| (held.token, whole(held.lease))).collect()
        }
        _ => engine.book.after_start(start),
    }
}
