//! The reference: records in ordered maps, and nothing but the rules over them.
//!
//! It is what other stores are compared with, and serves tests. It keeps nothing after its end.

mod collection;
mod effects;
mod engine;
mod outbox;
mod reading;
mod retention;
mod tables;

#[cfg(test)]
mod tests;

pub use engine::MemoryEngine;
#[cfg(feature = "postgres")]
pub(crate) use reading::lease_view;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use palisade_core::{Timestamp, clock::Clock};
use tokio::sync::broadcast;

use crate::{
    command::{Answer, Command},
    events::{Announcer, Batch},
    failure::Failure,
    query::{Query, View},
    store::Store,
};

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    engine: Mutex<MemoryEngine>,
    announcer: Announcer,
    clock: Arc<dyn Clock>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let engine = Mutex::new(MemoryEngine::new(clock.now()));
        Self { engine, announcer: Announcer::default(), clock }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        let mut engine = self.engine.lock().expect("no rule panics while it holds the lock");
        let now = self.clock.now();
        let answers = commands.into_iter().map(|command| engine.apply(command, now)).collect();
        self.announcer.announce(engine.take_announcements());
        answers
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        let engine = self.engine.lock().expect("no rule panics while it holds the lock");
        Ok(engine.query(&query))
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.announcer.listen()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
