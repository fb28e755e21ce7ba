//! The model checker: every schedule of a small world, over the real rules.
//!
//! Where the simulator draws schedules of a large world, the explorer takes all of a small one. For
//! the designs that people use today it finds the shortest way to the fault, and tells it.

mod attempts;
mod bench;
mod blobs;
mod delivery;
mod designs;
mod histories;
mod locks;
mod objects;
mod register;
mod restarts;
mod search;
mod servers;
mod wishes;

#[cfg(test)]
mod tests;

pub use search::{Outcome, Violation};

use palisade_core::Invalid;
use serde::Serialize;

use crate::{designs::Design, sabotage::Sabotage};

/// A small world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    /// Two workers and one job of a design.
    Design(Design),
    /// One job, two workers: claims, heartbeats, completions and failures, with messages lost,
    /// repeated and overtaken, leases that run out, and a server that crashes between deciding and
    /// committing.
    Attempts,
    /// Wishes that share a job and a name: submit, cancel, retry, publish, each delayed or repeated.
    Wishes,
    /// Two uploads of the same bytes, and a collector that pauses between deciding and deleting.
    Blobs,
    /// A server that is stopped and started, a worker that lives and one that is dead.
    Restarts,
    /// A fenced object, written, deleted and written again by holders that come and go.
    Objects,
    /// A lock and those who wait for it.
    Locks,
    /// A register over compare-and-swap: swaps of unknown outcome, writers that pause.
    Registers,
    /// Two servers on one store.
    Servers,
    /// As `attempts`, with backup attempts.
    Backups,
    /// Histories of grants and completions: each is linearizable.
    Histories,
    /// The outbox: rows taken by two servers, sent, settled, with a crash between any two.
    Delivery,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Design(Design::LockForever),
        Self::Design(Design::Lease),
        Self::Design(Design::LeaseHeartbeat),
        Self::Design(Design::LeaseFenced),
        Self::Design(Design::Queue),
        Self::Design(Design::LyingDispatch),
        Self::Attempts,
        Self::Wishes,
        Self::Blobs,
        Self::Restarts,
        Self::Objects,
        Self::Locks,
        Self::Registers,
        Self::Servers,
        Self::Backups,
        Self::Histories,
        Self::Delivery,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Design(design) => design.name(),
            Self::Attempts => "attempts",
            Self::Wishes => "wishes",
            Self::Blobs => "blobs",
            Self::Restarts => "restarts",
            Self::Objects => "objects",
            Self::Locks => "locks",
            Self::Registers => "registers",
            Self::Servers => "servers",
            Self::Backups => "backups",
            Self::Histories => "histories",
            Self::Delivery => "delivery",
        }
    }

    /// Whether a violation is what is expected of it.
    pub fn is_expected_to_fail(self) -> bool {
        matches!(self, Self::Design(design) if !design.is_held_to_it())
    }

    /// The worlds that concern a design: its own, and for Palisade's designs all parts of it.
    pub fn of(design: Design) -> Vec<Self> {
        let parts = Self::ALL.into_iter().filter(|world| !matches!(world, Self::Design(_)));
        let parts = parts.filter(|_| design == Design::Queue);
        std::iter::once(Self::Design(design)).chain(parts).collect()
    }
}

impl std::str::FromStr for World {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|world| world.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Invalid::new("world", text, format!("must be one of {names}"))
        })
    }
}

impl Serialize for World {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What to explore.
#[derive(Debug, Clone)]
pub struct Config {
    /// The worlds, in order.
    pub worlds: Vec<World>,
    /// A deliberate fault.
    pub broken: Option<Sabotage>,
    /// How many states of a world are looked at most.
    pub states_max: u64,
    /// How many worlds at a time.
    pub threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { worlds: World::ALL.to_vec(), broken: None, states_max: 3_000_000, threads: 2 }
    }
}

/// What an exploration came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Each world with its outcome, in the order asked for.
    pub worlds: Vec<Explored>,
}

/// One world, explored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explored {
    /// The world.
    pub world: World,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Explores one world.
pub fn run_one(world: World, broken: Option<Sabotage>, states_max: u64) -> Outcome {
    match world {
        World::Design(design) => {
            search::search(&designs::DesignModel { design, broken }, states_max)
        }
        World::Attempts => {
            search::search(&attempts::Attempts { broken, backups: false }, states_max)
        }
        World::Backups => search::search(&attempts::Attempts { broken, backups: true }, states_max),
        World::Servers => search::search(&servers::Servers { broken }, states_max),
        World::Delivery => search::search(&delivery::Delivery { broken }, states_max),
        World::Histories => search::search(&histories::Histories { broken }, states_max),
        World::Wishes => search::search(&wishes::Wishes { broken }, states_max),
        World::Blobs => search::search(&blobs::Blobs { broken }, states_max),
        World::Restarts => search::search(&restarts::Restarts { broken }, states_max),
        World::Objects => search::search(&objects::Objects { broken }, states_max),
        World::Locks => search::search(&locks::Locks { broken }, states_max),
        World::Registers => search::search(&register::Registers { broken }, states_max),
    }
}

/// Explores all worlds.
pub fn run(config: &Config) -> Report {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(world) = config.worlds.get(index) else { return done };
            done.push((index, *world, run_one(*world, config.broken, config.states_max)));
        }
    };
    let mut worlds: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..config.threads.max(1)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(|done| done.expect("a rule that panics ends the whole")).collect()
    });
    worlds.sort_by_key(|(index, _, _)| *index);
    let worlds =
        worlds.into_iter().map(|(_, world, outcome)| Explored { world, outcome }).collect();
    Report { worlds }
}

impl Report {
    /// Whether Palisade's worlds show no violation, and the others the one that they are known for.
    pub fn is_as_expected(&self) -> bool {
        self.worlds.iter().all(|Explored { world, outcome }| {
            outcome.violation.is_some() == world.is_expected_to_fail()
                && (outcome.complete || outcome.violation.is_some())
        })
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Explored { world, outcome } in &self.worlds {
            let (states, steps, depth) = (outcome.states, outcome.steps, outcome.depth);
            text.push_str(&format!(
                "{}: {states} states, {steps} steps, {depth} deep",
                world.name()
            ));
            match &outcome.violation {
                None if outcome.complete => text.push_str(": all of them, and no violation\n"),
                None => text.push_str(": not all of them; none of those shows a violation\n"),
                Some(violation) => {
                    text.push_str(&format!("\n  VIOLATION: {}\n", violation.what));
                    for (index, step) in violation.story.iter().enumerate() {
                        text.push_str(&format!("  {:>3}. {step}\n", index + 1));
                    }
                }
            }
        }
        text
    }
}
