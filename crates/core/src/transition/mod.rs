//! The rules: one file per event, each a function of (record, event, now).
//!
//! Every rule takes the record by value and answers [`Applied`] (the new record, an answer and
//! the history), or a refusal, upon which nothing has changed. What the record's neighbours
//! have to say (a newer job with the key, blobs present) is an argument too.
//!
//! A worker's verb names its attempt by job and pair. Then there are three cases only: the
//! attempt is open, and the verb's rule decides; it was closed by this very verb, and the
//! recorded answer is given again; it was closed otherwise, and the verb is refused.

mod cancel;
mod claim;
mod complete;
mod expire;
mod fail;
mod heartbeat;
mod pair;
mod publish;
mod release;
mod requeue;
mod retry_job;
mod submit;

#[cfg(test)]
mod tests;

pub use cancel::{Cancelled, Which, cancel};
pub use claim::{Claimant, Fresh, Granted, claim};
pub use complete::{Completed, Present, complete};
pub use expire::expire;
pub use fail::fail;
pub use heartbeat::{Beat, LostReason, heartbeat};
pub use publish::publish;
pub use release::{hand_back, release};
pub use retry_job::{Retry, retry};
pub use submit::{Destination, Wish, create, decide, join};

use crate::{
    Number, Timestamp,
    history::{Event, What},
    job::{Attempt, CloseReason, Closed, Job, JobState},
};

/// What a rule answers when it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Applied<A> {
    /// The record after the event.
    pub job: Job,
    /// The answer to whoever caused it.
    pub answer: A,
    /// What to append to the journal. Empty when the record did not change.
    pub history: Vec<Event>,
}

impl<A> Applied<A> {
    /// Nothing changed: the answer is a recorded one, or there was nothing to do.
    fn unchanged(job: Job, answer: A) -> Self {
        Self { job, answer, history: Vec::new() }
    }
}

/// A record being changed at an instant, with its history so far.
#[derive(Debug)]
struct Change {
    job: Job,
    now: Timestamp,
    history: Vec<Event>,
}

impl Change {
    fn of(job: Job, now: Timestamp) -> Self {
        Self { job, now, history: Vec::new() }
    }

    fn record(&mut self, what: What) {
        self.history.push(Event::of_job(self.now, self.job.id, what));
    }

    /// Closes one attempt. Its neighbours stay as they are.
    fn close(&mut self, token: Number, closed: Closed) {
        let now = self.now;
        let attempt = self
            .job
            .attempts
            .iter_mut()
            .find(|attempt| attempt.token == token)
            .expect("the caller found the attempt by this token");
        assert!(attempt.closed.is_none(), "an attempt is closed once");
        let lapsed = What::Lapsed {
            token,
            renewed_at: attempt.lease.renewed_at,
            deadline: attempt.lease.deadline,
        };
        let was_lost = closed.reason == CloseReason::Superseded;
        let what = What::Closed {
            token,
            worker: attempt.worker.clone(),
            reason: closed.reason,
            message: closed.failure.as_ref().map(|failure| failure.message.clone()),
        };
        attempt.closed = Some(closed);
        if was_lost {
            // Renewals are not in the journal, so that the last one is told when it matters.
            self.record(lapsed);
        }
        self.history.push(Event::of_job(now, self.job.id, what));
    }

    /// Closes every open attempt for one reason. Answers how many there were.
    fn close_open(&mut self, reason: CloseReason) -> usize {
        let tokens: Vec<_> = self.job.open_attempts().map(|attempt| attempt.token).collect();
        for token in &tokens {
            self.close(*token, Closed { at: self.now, reason, failure: None, requeued: None });
        }
        tokens.len()
    }

    /// Moves the job. Every move out of `running` raises the fence past all its tokens.
    fn move_to(&mut self, state: JobState) {
        if self.job.state == JobState::Running && state != JobState::Running {
            assert!(!self.job.has_open_attempt(), "a job leaves `running` with nothing open");
            if let Some(last) = self.job.attempts.last() {
                self.job.fence = self.job.fence.max(last.token.next());
            }
        }
        self.job.state = state;
        self.job.moved_at = self.now;
        self.record(What::Moved { state, fence: self.job.fence });
    }

    fn done<A>(self, answer: A) -> Applied<A> {
        Applied { job: self.job, answer, history: self.history }
    }
}

/// Whether the attempt was closed, and by which of the ways.
fn closed_by(attempt: &Attempt) -> Option<CloseReason> {
    attempt.closed.as_ref().map(|closed| closed.reason)
}
