//! A job as its journal tells it: what an audit has to go by.

use std::collections::BTreeSet;

use crate::{
    Number,
    history::{Event, What},
    job::{CloseReason, Job, JobState},
};

/// What the journal's events, replayed, say of a job.
#[derive(Debug)]
pub(super) struct Mirror {
    state: JobState,
    fence: Number,
    open: BTreeSet<Number>,
    closed: Vec<(Number, CloseReason)>,
    wanted_by: BTreeSet<Number>,
    completed_by: Option<Number>,
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            state: JobState::Queued,
            fence: Number::ZERO,
            open: BTreeSet::new(),
            closed: Vec::new(),
            wanted_by: BTreeSet::new(),
            completed_by: None,
        }
    }
}

impl Mirror {
    pub(super) fn follow(&mut self, event: &Event) {
        match &event.what {
            What::Submitted { submission, .. } => {
                assert!(
                    self.wanted_by.insert(*submission),
                    "wished once, or after it was withdrawn"
                );
            }
            What::Withdrawn { submission } => {
                assert!(self.wanted_by.remove(submission), "withdrawn once");
            }
            What::Granted { token, backup, .. } => {
                assert!(self.open.insert(*token));
                if !backup {
                    self.fence = *token;
                }
            }
            What::Closed { token, reason, message, .. } => {
                assert!(self.open.remove(token), "closed once, and after it was granted");
                assert_eq!(message.is_some(), *reason == CloseReason::Failed);
                if *reason == CloseReason::Completed {
                    self.completed_by = Some(*token);
                }
                self.closed.push((*token, *reason));
            }
            What::Moved { state, fence } => (self.state, self.fence) = (*state, *fence),
            What::Renewed { token }
            | What::RenewedLate { token, .. }
            | What::Lapsed { token, .. }
            | What::Suspected { token } => {
                assert!(self.open.contains(token), "only an open attempt has time");
            }
            What::Published { submission, .. } | What::NotPublished { submission, .. } => {
                assert!(self.completed_by.is_some() && self.wanted_by.contains(submission));
            }
            What::Refused { .. } | What::Paused { .. } | What::Retried => {}
            _ => panic!("no entry of a job: {event:?}"),
        }
    }

    /// The record is what its journal says.
    pub(super) fn compare(&self, job: &Job) {
        assert_eq!((self.state, self.fence), (job.state, job.fence));
        assert_eq!(self.completed_by, job.completed_by());
        let open: BTreeSet<_> = job.open_attempts().map(|attempt| attempt.token).collect();
        assert_eq!(self.open, open);
        let wanted = job.submissions.iter().filter(|submission| submission.withdrawn_at.is_none());
        assert_eq!(self.wanted_by, wanted.map(|submission| submission.number).collect());
        let mut closed = self.closed.clone();
        closed.sort_unstable();
        let recorded = |a: &crate::job::Attempt| Some((a.token, a.closed.as_ref()?.reason));
        assert_eq!(closed, job.attempts.iter().filter_map(recorded).collect::<Vec<_>>());
    }
}
