//! Picks the entries of a few resources out of a history, for their pictures.

use std::collections::BTreeMap;

use palisade_core::Timestamp;

use super::{Builder, Timeline};
use crate::findings::Finding;
use crate::{Entry, EventKind, Source};

/// How many entries of one resource are kept.
const ENTRIES_MAX: usize = 5_000;

/// An entry that owns its texts.
#[derive(Debug, Clone)]
struct Kept {
    at: Timestamp,
    worker: String,
    event: EventKind,
    ttl_ms: Option<u64>,
    token: Option<u64>,
    kind: Option<String>,
    source: Source,
}

/// Collects the entries of the resources that it was given.
#[derive(Debug)]
pub struct Collector {
    kept: BTreeMap<String, Vec<Kept>>,
    everywhere: Vec<Kept>,
    offsets_ms: Vec<i64>,
    left_out: BTreeMap<String, u64>,
    ends_are_told: bool,
}

impl Collector {
    /// For these resources; the corrections of the files' clocks are in ms, by index.
    pub fn new<'n>(resources: impl Iterator<Item = &'n str>, offsets_ms: Vec<i64>) -> Self {
        Self {
            kept: resources.map(|name| (name.to_owned(), Vec::new())).collect(),
            everywhere: Vec::new(),
            offsets_ms,
            left_out: BTreeMap::new(),
            ends_are_told: false,
        }
    }

    /// For these resources of our own journal, which tells of every end of a lease or of a wait.
    pub fn of_journal<'n>(resources: impl Iterator<Item = &'n str>) -> Self {
        Self { ends_are_told: true, ..Self::new(resources, Vec::new()) }
    }

    /// Takes any entry; keeps it if it is of a wanted resource.
    pub fn push(&mut self, entry: &Entry<'_>) {
        let into = if entry.resource.is_empty() {
            &mut self.everywhere
        } else if let Some(kept) = self.kept.get_mut(entry.resource) {
            kept
        } else {
            return;
        };
        if into.len() >= ENTRIES_MAX {
            *self.left_out.entry(entry.resource.to_owned()).or_default() += 1;
            return;
        }
        let offset_ms = self.offsets_ms.get(entry.source.file as usize).copied().unwrap_or(0);
        into.push(Kept {
            at: Timestamp(entry.at.0.saturating_add_signed(offset_ms)),
            worker: entry.worker.to_owned(),
            event: entry.event,
            ttl_ms: entry.ttl_ms,
            token: entry.token,
            kind: entry.kind.map(ToOwned::to_owned),
            source: entry.source,
        });
    }

    /// The pictures of those resources that had entries.
    pub fn finish(self, findings: &[Finding]) -> Vec<Timeline> {
        let mut timelines = Vec::new();
        for (resource, mut kept) in self.kept {
            let knows = |kept: &[Kept], worker: &str| kept.iter().any(|own| own.worker == worker);
            let concerned: Vec<Kept> =
                self.everywhere.iter().filter(|exit| knows(&kept, &exit.worker)).cloned().collect();
            kept.extend(concerned);
            if kept.is_empty() {
                continue;
            }
            kept.sort_by_key(|entry| (entry.at, entry.source));
            let mut builder = Builder::new(&resource, self.ends_are_told);
            for entry in &kept {
                builder.push(&Entry {
                    ttl_ms: entry.ttl_ms,
                    token: entry.token,
                    kind: entry.kind.as_deref(),
                    source: entry.source,
                    ..Entry::new(entry.at, &entry.worker, &resource, entry.event)
                });
            }
            let mut timeline = builder.finish(findings);
            timeline.left_out += self.left_out.get(&resource).copied().unwrap_or(0);
            timelines.push(timeline);
        }
        timelines
    }
}
