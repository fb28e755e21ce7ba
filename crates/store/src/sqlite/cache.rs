//! Records of jobs that are likely to be asked for again soon, as the writer last wrote them.
//!
//! Invariant: what is in it equals what the running transaction would read; after a rollback it is
//! empty.

use std::collections::BTreeMap;

use palisade_core::{
    JobId,
    job::{Job, JobState},
};

/// Most records kept. Running jobs may fill it, waiting ones half of it: a long queue is read from
/// its front, and what was submitted last comes last.
const RECORDS_MAX: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct JobCache {
    jobs: BTreeMap<JobId, Job>,
}

impl JobCache {
    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Follows a record that was written.
    pub(super) fn follow(&mut self, job: &Job) {
        let room = match job.state {
            JobState::Running => RECORDS_MAX,
            JobState::Queued => RECORDS_MAX / 2,
            JobState::Complete | JobState::Failed | JobState::Cancelled => 0,
        };
        if room > 0 && (self.jobs.len() < room || self.jobs.contains_key(&job.id)) {
            self.jobs.insert(job.id, job.clone());
        } else {
            self.jobs.remove(&job.id);
        }
    }
}
