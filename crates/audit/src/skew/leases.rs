//! The leases and denials of each resource, as far as they are needed to compare clocks.

use crate::names::Names;
use crate::{Entry, EventKind};

/// How many resources are looked at.
const RESOURCES_MAX: usize = 4_096;
/// How many leases, and how many denials, of each.
const EACH_MAX: usize = 24;

/// When one worker had a resource, in ms on its file's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) file: u32,
    worker: u32,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) token: Option<u64>,
    deadline: Option<i64>,
    closed: bool,
}

impl Lease {
    pub(super) const fn shifted(self, offset_ms: i64) -> Self {
        Self { from: self.from + offset_ms, to: self.to + offset_ms, ..self }
    }

    pub(super) const fn holds(&self, at: i64) -> bool {
        self.from <= at && at <= self.to
    }
}

/// A denial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Denial {
    pub(super) file: u32,
    pub(super) at: i64,
}

/// What one resource saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) leases: Vec<Lease>,
    pub(super) denials: Vec<Denial>,
}

/// All resources that are looked at.
#[derive(Debug)]
pub(super) struct Leases {
    names: Names,
    workers: Names,
    seen: Vec<Seen>,
}

impl Default for Leases {
    fn default() -> Self {
        Self { names: Names::new(), workers: Names::new(), seen: Vec::new() }
    }
}

impl Leases {
    pub(super) fn resources(&self) -> &[Seen] {
        &self.seen
    }

    pub(super) fn push(&mut self, entry: &Entry<'_>) {
        let wanted = matches!(
            entry.event,
            EventKind::Acquired
                | EventKind::Renewed
                | EventKind::Released
                | EventKind::Completed
                | EventKind::Expired
                | EventKind::Denied
        );
        if !wanted || entry.resource.is_empty() {
            return;
        }
        if self.seen.len() >= RESOURCES_MAX && self.names.find(entry.resource).is_none() {
            return;
        }
        let id = self.names.intern(entry.resource) as usize;
        if self.seen.len() <= id {
            self.seen.resize_with(id + 1, Seen::default);
        }
        let worker = self.workers.intern(entry.worker);
        self.seen[id].push(entry, worker);
    }
}

impl Seen {
    fn push(&mut self, entry: &Entry<'_>, worker: u32) {
        let file = entry.source.file;
        let at = i64::try_from(entry.at.0).unwrap_or(i64::MAX / 8);
        let deadline = entry.ttl_ms.map(|ttl_ms| at.saturating_add_unsigned(ttl_ms));
        if entry.event == EventKind::Denied {
            if self.denials.len() < EACH_MAX {
                self.denials.push(Denial { file, at });
            }
            return;
        }
        let full = self.leases.len() >= EACH_MAX;
        let open = self
            .leases
            .iter_mut()
            .rev()
            .find(|lease| lease.file == file && lease.worker == worker && !lease.closed);
        match (entry.event, open) {
            (EventKind::Acquired, open) => {
                if let Some(open) = open {
                    open.closed = true;
                }
                if !full {
                    let token = entry.token;
                    let to = deadline.unwrap_or(at);
                    let closed = false;
                    self.leases.push(Lease { file, worker, from: at, to, token, deadline, closed });
                }
            }
            (EventKind::Renewed, Some(lease)) => {
                lease.deadline = deadline.or(lease.deadline);
                lease.to = lease.deadline.unwrap_or(at);
            }
            (_, Some(lease)) => {
                // Who works on past its deadline does not hold on past it.
                lease.to = lease.deadline.map_or(at, |deadline| deadline.min(at));
                lease.closed = true;
            }
            (_, None) => {}
        }
    }
}
