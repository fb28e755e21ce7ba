//! Takes entries in any order within a window, hands each to its resource, and lets go of
//! resources that have come to rest.

use std::collections::VecDeque;

use palisade_core::Timestamp;

use super::habits::{Habits, Tracks};
use super::order::{Event, NOBODY, Order, Texts};
use super::resource::{Context, Highest, Resource};
use super::summary::Totals;
use super::{Finding, Findings, Settings};
use crate::names::Names;
use crate::{Entry, EventKind};

/// How many highest tokens of forgotten resources are remembered.
const TOMBSTONES: usize = 1 << 16;
/// After how many events all resources are looked at for those that fell silent for good.
const SWEEP_EVENTS: u64 = 1 << 20;

/// Longer spans, and later instants, are taken for this: 30,000 years, in ms. Sums and multiples
/// of a few of them fit in 64 bits.
const SPAN_MAX_MS: u64 = 1_000_000_000_000_000;

/// What is left of a resource that was forgotten.
#[derive(Debug, Clone, Copy)]
struct Tombstone {
    hash: u64,
    token: u64,
}

/// Reads a history and finds its faults, in memory that follows what is alive in it.
#[derive(Debug)]
pub struct Analyser {
    settings: Settings,
    workers: Names,
    names: Names,
    order: Order,
    resources: Vec<Resource>,
    resting: VecDeque<(u32, Timestamp)>,
    tombstones: Vec<Option<Tombstone>>,
    tracks: Tracks,
    habits: Habits,
    totals: Totals,
    findings: Vec<Finding>,
    now: Timestamp,
    seen: u64,
    out_of_order: u64,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Names")
    }
}

impl Analyser {
    /// An analyser that has seen nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            workers: Names::new(),
            names: Names::new(),
            order: Order::new(),
            resources: Vec::new(),
            resting: VecDeque::new(),
            tombstones: Vec::new(),
            tracks: Tracks::default(),
            habits: Habits::default(),
            totals: Totals::default(),
            findings: Vec::new(),
            now: Timestamp(0),
            seen: 0,
            out_of_order: 0,
        }
    }

    /// Takes an entry.
    pub fn push(&mut self, entry: &Entry<'_>) {
        let resource = if entry.resource.is_empty() {
            NOBODY
        } else {
            let id = self.names.intern(entry.resource);
            self.resource(id).pending += 1;
            id
        };
        let worker =
            if entry.worker.is_empty() { NOBODY } else { self.workers.intern(entry.worker) };
        let offset_ms = self.settings.offsets_ms.get(entry.source.file as usize);
        let at = entry.at.0.saturating_add_signed(offset_ms.copied().unwrap_or(0));
        let at = Timestamp(at.min(SPAN_MAX_MS));
        let event = Event {
            at,
            source: entry.source,
            worker,
            resource,
            what: entry.event,
            ttl_ms: entry.ttl_ms.map(|ttl_ms| ttl_ms.min(SPAN_MAX_MS)),
            ttl_assumed: entry.ttl_assumed,
            token: entry.token,
            duration_ms: entry.duration_ms.map(|length_ms| length_ms.min(SPAN_MAX_MS)),
            texts: texts_of(entry),
        };
        if self.order.push(event) {
            self.drain(false);
        }
    }

    /// Ends the history and answers what it told.
    pub fn finish(mut self) -> Findings {
        self.drain(true);
        for id in 0..self.resources.len() {
            let id = u32::try_from(id).expect("numbers of resources fit in 32 bits");
            if self.resources[id as usize].last_event != Timestamp(0) {
                self.conclude(id);
            }
        }
        self.findings.sort_by(|a, b| (&a.resource, a.at, a.kind).cmp(&(&b.resource, b.at, b.kind)));
        let dropped = self.totals.dropped;
        let summary = self.totals.summary(self.seen, self.out_of_order);
        Findings { findings: self.findings, dropped, summary }
    }

    fn resource(&mut self, id: u32) -> &mut Resource {
        let index = id as usize;
        if self.resources.len() <= index {
            self.resources.resize_with(index + 1, Resource::default);
        }
        &mut self.resources[index]
    }

    fn drain(&mut self, all: bool) {
        let mut order = std::mem::replace(&mut self.order, Order::new());
        for event in order.drain(all) {
            self.take(&event);
        }
        self.order = order;
        self.retire();
    }

    fn take(&mut self, event: &Event) {
        self.totals.events += 1;
        if event.at < self.now {
            self.out_of_order += 1;
        }
        self.now = self.now.max(event.at);
        if event.resource == NOBODY {
            self.take_everywhere(event);
        } else {
            self.take_one(event.resource, event);
            self.resources[event.resource as usize].pending -= 1;
        }
        // That its lease is over is not said by the holder, even where the entry names it.
        if event.worker != NOBODY && event.what != EventKind::Expired {
            self.tracks.seen(event.worker, event.at);
        }
        if self.totals.events.is_multiple_of(SWEEP_EVENTS) {
            self.sweep();
        }
    }

    /// A worker's exit or pause concerns all that it has open.
    fn take_everywhere(&mut self, event: &Event) {
        for id in 0..self.resources.len() {
            if self.resources[id].has_open(event.worker) {
                let id = u32::try_from(id).expect("numbers of resources fit in 32 bits");
                self.take_one(id, event);
            }
        }
    }

    fn take_one(&mut self, id: u32, event: &Event) {
        let resource = &mut self.resources[id as usize];
        if resource.last_event == Timestamp(0) {
            self.seen += 1;
            resource.highest = buried(&self.tombstones, self.names.hash(id));
        }
        let mut context = Context {
            settings: &self.settings,
            tracks: &self.tracks,
            habits: &mut self.habits,
            totals: &mut self.totals,
            workers: &self.workers,
            name: self.names.text(id),
            findings: &mut self.findings,
        };
        resource.apply(event, &mut context);
        let ends = matches!(
            event.what,
            EventKind::Released | EventKind::Completed | EventKind::Expired | EventKind::Exited
        );
        if ends && !resource.queued && resource.is_quiet() {
            resource.queued = true;
            self.resting.push_back((id, event.at));
        }
    }

    fn conclude(&mut self, id: u32) {
        let mut context = Context {
            settings: &self.settings,
            tracks: &self.tracks,
            habits: &mut self.habits,
            totals: &mut self.totals,
            workers: &self.workers,
            name: self.names.text(id),
            findings: &mut self.findings,
        };
        self.resources[id as usize].conclude(self.now, true, &mut context);
    }

    /// Forgets resources that have been at rest for long enough.
    fn retire(&mut self) {
        while let Some((id, since)) = self.resting.front().copied() {
            let resource = &mut self.resources[id as usize];
            let keep_ms = self.settings.keep_ms.max(resource.ttl_ms().saturating_mul(2));
            if self.now.since_ms(since) < keep_ms {
                return;
            }
            self.resting.pop_front();
            resource.queued = false;
            if !resource.is_quiet() || resource.pending > 0 {
                continue;
            }
            if self.now.since_ms(resource.last_event) < keep_ms {
                resource.queued = true;
                let last_event = resource.last_event;
                self.resting.push_back((id, last_event));
                continue;
            }
            self.forget(id);
        }
    }

    /// Forgets resources of which nothing was heard for so long that nothing more is expected.
    fn sweep(&mut self) {
        for index in 0..self.resources.len() {
            let resource = &self.resources[index];
            let silent_ms = self.now.since_ms(resource.last_event);
            let known = resource.last_event != Timestamp(0);
            let zombie_ms = self.settings.zombie_ms.max(resource.ttl_ms().saturating_mul(20));
            // A lock that is still held is alive, however long it is silent.
            let held = resource.holder.is_some_and(|holder| {
                let attempt = &resource.attempts[holder];
                attempt.end.is_none() && attempt.deadline.is_none()
            });
            if known && !held && !resource.queued && resource.pending == 0 && silent_ms > zombie_ms
            {
                self.forget(u32::try_from(index).expect("numbers of resources fit in 32 bits"));
            }
        }
    }

    fn forget(&mut self, id: u32) {
        self.conclude(id);
        let resource = std::mem::take(&mut self.resources[id as usize]);
        if let Some(highest) = resource.highest {
            if self.tombstones.is_empty() {
                self.tombstones.resize(TOMBSTONES, None);
            }
            let hash = self.names.hash(id);
            let place = place_of(hash);
            self.tombstones[place] = Some(Tombstone { hash, token: highest.token });
        }
        self.names.retire(id);
    }
}

fn place_of(hash: u64) -> usize {
    usize::try_from(hash % TOMBSTONES as u64).expect("below the table's length")
}

/// The highest token of a resource that was forgotten, if its tombstone still stands.
fn buried(tombstones: &[Option<Tombstone>], hash: u64) -> Option<Highest> {
    let tombstone = (*tombstones.get(place_of(hash))?)?;
    (tombstone.hash == hash).then_some(Highest {
        token: tombstone.token,
        worker: NOBODY,
        mark: None,
    })
}

/// Keeps the texts of the entries whose texts matter later.
fn texts_of(entry: &Entry<'_>) -> Option<Box<Texts>> {
    let matters = matches!(
        entry.event,
        EventKind::Effect | EventKind::Refused | EventKind::RenewFailed | EventKind::Released
    );
    if !matters || (entry.kind.is_none() && entry.detail.is_none()) {
        return None;
    }
    Some(Box::new(Texts { kind: entry.kind.map(Into::into), detail: entry.detail.map(Into::into) }))
}
