//! The store over the engine: batches, and the tasks beside them.

use std::sync::Arc;

use async_trait::async_trait;
use palisade_core::Timestamp;
use tokio::{
    sync::{Mutex, broadcast, mpsc, oneshot},
    task::AbortHandle,
};

use crate::{
    artefacts::Moved,
    command::{Answer, Command},
    events::Batch,
    failure::Failure,
    query::{Query, View},
    store::Store,
};

use super::{
    batcher::{self, Request},
    engine::Engine,
    identity, news,
    open::{self, OpenError, PostgresOptions},
    tick,
};

/// A store in a database that many servers share.
#[derive(Debug)]
pub struct PostgresStore {
    engine: Arc<Engine>,
    requests: mpsc::UnboundedSender<Request>,
    /// They end with the store; batches that have begun go on to their end.
    beside: Vec<AbortHandle>,
}

impl PostgresStore {
    /// Opens the store: brings the schema up to date, and gives leases back the time in which
    /// nobody served. Tasks that run beside the requests are spawned on the runtime that calls.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let engine = Arc::new(open::engine(&options).await?);
        let (requests, waiting) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..options.writers {
            tokio::spawn(batcher::serve(Arc::clone(&engine), Arc::clone(&waiting)));
        }
        let id = open::server_id(&engine).await?;
        let beside = vec![
            tokio::spawn(tick::keep_time(Arc::clone(&engine), id)).abort_handle(),
            tokio::spawn(news::follow(Arc::clone(&engine))).abort_handle(),
            tokio::spawn(news::hear(Arc::clone(&engine), options.address)).abort_handle(),
        ];
        Ok(Self { engine, requests, beside })
    }
}

impl PostgresStore {
    /// The store's own name, random.
    pub async fn id(&self) -> Result<String, Failure> {
        identity::store_id(&self.engine).await.map_err(|trouble| trouble.failure())
    }

    /// The place for artefacts that the store belongs to, by the place's own name: the given one,
    /// if the store knew none or it was moved.
    pub async fn bind_artefacts(&self, place: &str, moved: Moved) -> Result<String, Failure> {
        let bound = identity::bind_artefacts(&self.engine, place, moved).await;
        bound.map_err(|trouble| trouble.failure())
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.beside.iter().for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        let count = commands.len();
        let (reply, answers) = oneshot::channel();
        if self.requests.send(Request { commands, reply }).is_err() {
            let stopped = Failure::Unavailable("the store has stopped".to_owned());
            return vec![Err(stopped); count];
        }
        answers.await.unwrap_or_else(|_| {
            let stopped = Failure::Unknown("the store stopped meanwhile".to_owned());
            vec![Err(stopped); count]
        })
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        self.engine.query(&query).await
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.engine.news.listen()
    }

    fn now(&self) -> Timestamp {
        self.engine.clock.now()
    }

    fn is_shared(&self) -> bool {
        true
    }
}
