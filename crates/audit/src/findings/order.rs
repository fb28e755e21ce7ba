//! Puts entries in the order of time, within a window: several files are read side by side, and
//! a log's own lines are often a little out of order.

use palisade_core::Timestamp;

use crate::{EventKind, Source};

/// No worker, or no resource, is named.
pub(crate) const NOBODY: u32 = u32::MAX;

/// An entry whose names are numbers.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: Timestamp,
    pub(crate) source: Source,
    pub(crate) worker: u32,
    pub(crate) resource: u32,
    pub(crate) what: EventKind,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) ttl_assumed: bool,
    pub(crate) token: Option<u64>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) texts: Option<Box<Texts>>,
}

/// The texts of the few entries whose texts matter.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    pub(crate) kind: Option<Box<str>>,
    pub(crate) detail: Option<Box<str>>,
}

/// How many events are held back to be put in order: logs up to this length may be in any order.
pub(crate) const WINDOW_EVENTS: usize = 65_536;

/// The window.
#[derive(Debug, Default)]
pub(crate) struct Order {
    waiting: Vec<Event>,
    sorted: bool,
    last: Timestamp,
}

impl Order {
    pub(crate) const fn new() -> Self {
        Self { waiting: Vec::new(), sorted: true, last: Timestamp(0) }
    }

    /// Takes an event; true when it is time to [`Order::drain`].
    pub(crate) fn push(&mut self, event: Event) -> bool {
        self.sorted &= self.last <= event.at;
        self.last = event.at;
        self.waiting.push(event);
        self.waiting.len() >= WINDOW_EVENTS
    }

    /// The older half of what waits, or all of it, in order; the rest stays.
    pub(crate) fn drain(&mut self, all: bool) -> std::vec::Drain<'_, Event> {
        if !self.sorted {
            self.waiting.sort_by_key(|event| (event.at, event.source));
        }
        let count = if all { self.waiting.len() } else { self.waiting.len() / 2 };
        // What stays is sorted; what comes next is compared with its last.
        self.sorted = true;
        self.last = self.waiting.last().map_or(Timestamp(0), |event| event.at);
        self.waiting.drain(..count)
    }
}
