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
    /// The last grant or renewal that was seen of it.
    renewed: i64,
    closed: bool,
    /// Given up by its holder while it still ran.
    given_up: bool,
}

impl Lease {
    pub(super) const fn shifted(self, offset_ms: i64) -> Self {
        Self { from: self.from + offset_ms, to: self.to + offset_ms, ..self }
    }

    pub(super) const fn holds(&self, at: i64) -> bool {
        self.from <= at && at <= self.to
    }
}

/// Work on a resource that is told in another file than the leases of whoever does it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) file: u32,
    worker: u32,
    first: i64,
    last: i64,
    closed: bool,
}

impl Work {
    pub(super) const fn shifted(self, offset_ms: i64) -> Self {
        Self { first: self.first + offset_ms, last: self.last + offset_ms, ..self }
    }

    /// By how much the work must be moved to lie in a lease of the same worker; the upper end is
    /// open where the lease does not say when the work was over.
    pub(super) fn moves_into(&self, lease: &Lease) -> Option<(i64, Option<i64>)> {
        if lease.worker != self.worker {
            return None;
        }
        let (low, high) = (lease.from - self.first, lease.to - self.last);
        Some((low, (lease.given_up && high >= low).then_some(high)))
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
    pub(super) works: Vec<Work>,
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
                | EventKind::Progress
                | EventKind::Effect
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
        if matches!(entry.event, EventKind::Progress | EventKind::Effect) {
            self.work(file, worker, at);
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
                    let (closed, given_up) = (false, false);
                    let (from, renewed) = (at, at);
                    self.leases.push(Lease {
                        file,
                        worker,
                        from,
                        to,
                        token,
                        deadline,
                        renewed,
                        closed,
                        given_up,
                    });
                }
            }
            (EventKind::Renewed, Some(lease)) => {
                lease.renewed = at;
                lease.deadline = deadline.or(lease.deadline);
                lease.to = lease.deadline.unwrap_or(at);
            }
            (_, Some(lease)) => {
                // Who works on past its deadline does not hold on past it.
                lease.to = lease.deadline.map_or(at, |deadline| deadline.min(at));
                lease.closed = true;
                lease.given_up = lease.to == at
                    && matches!(entry.event, EventKind::Released | EventKind::Completed);
                self.close_work(worker);
            }
            (EventKind::Released | EventKind::Completed, None) => self.end_elsewhere(worker),
            (_, None) => {}
        }
    }

    /// A lease that was granted in one file and ends in another (a log that was cut in the middle):
    /// how long it lasted cannot be read from the first file's clock.
    fn end_elsewhere(&mut self, worker: u32) {
        self.close_work(worker);
        let mut open = self.leases.iter_mut().rev();
        if let Some(lease) = open.find(|lease| lease.worker == worker && !lease.closed) {
            lease.to = lease.renewed;
            lease.closed = true;
        }
    }

    fn close_work(&mut self, worker: u32) {
        for work in self.works.iter_mut().filter(|work| work.worker == worker) {
            work.closed = true;
        }
    }

    /// Notes work that no lease of the same file covers.
    fn work(&mut self, file: u32, worker: u32, at: i64) {
        let is_own = |lease: &Lease| lease.file == file && lease.worker == worker;
        if self.leases.iter().any(is_own) {
            return;
        }
        let full = self.works.len() >= EACH_MAX;
        let mut works = self.works.iter_mut().rev();
        let open = works.find(|work| work.file == file && work.worker == worker && !work.closed);
        match open {
            Some(work) => work.last = at,
            None if !full => {
                self.works.push(Work { file, worker, first: at, last: at, closed: false });
            }
            None => {}
        }
    }
}
