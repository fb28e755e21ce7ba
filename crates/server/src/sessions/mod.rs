//! Workers' sessions: a streaming connection each, through which a lost lease reaches its worker
//! at once, and whose end tells that the worker may be dead.

mod suspicion;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use palisade_api::wire::SessionEvent;
use palisade_core::{
    JobId, Number, SessionId, Timestamp, WorkerName,
    history::{Event, What},
    job::CloseReason,
};
use palisade_store::query::LeaseView;
use tokio::sync::mpsc;

use self::suspicion::Suspicion;
use crate::{app::App, config::ServerConfig};

/// How many events a stream may be behind before it is ended. Its worker comes back and renews.
const BACKLOG: usize = 1_024;

/// The sessions of this server.
#[derive(Debug)]
pub(crate) struct Sessions(Mutex<Book>);

#[derive(Debug)]
struct Book {
    suspicion: Suspicion,
    serial: u64,
    /// One a connection.
    streams: BTreeMap<(SessionId, u64), Stream>,
    /// Whose each open attempt is: the journal tells of an end by the token alone.
    holders: BTreeMap<Number, SessionId>,
}

#[derive(Debug)]
struct Stream {
    worker: WorkerName,
    /// None: it fell behind, and ends.
    events: Option<mpsc::Sender<SessionEvent>>,
}

impl Sessions {
    pub(crate) fn new(config: &ServerConfig, now: Timestamp) -> Self {
        let suspicion = Suspicion::new(config.suspect_after_ms, config.quiet_ms, now);
        let (streams, holders) = (BTreeMap::new(), BTreeMap::new());
        Self(Mutex::new(Book { suspicion, serial: 0, streams, holders }))
    }

    /// What was committed: tells those whose leases were closed by others.
    pub(crate) fn tell(&self, events: &[Event]) {
        let mut book = self.lock();
        for event in events {
            match &event.what {
                What::Granted { token, session, .. } => {
                    book.holders.insert(*token, session.clone());
                }
                What::Closed { token, reason, .. } => {
                    let holder = book.holders.remove(token);
                    let told = event.job().and_then(|job| closed_by_others(job, *token, *reason));
                    if let (Some(holder), Some(told)) = (holder, told) {
                        book.send(&holder, &told);
                    }
                }
                _ => {}
            }
        }
    }

    /// Learns anew who holds what.
    pub(crate) fn learn(&self, held: Vec<LeaseView>) {
        let holders = held.into_iter().map(|lease| (lease.token, lease.session));
        self.lock().holders = holders.collect();
    }

    /// Whom to suspect by now.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<(SessionId, Timestamp)> {
        self.lock().suspicion.due(now)
    }

    /// The sessions that have a stream, each once, with the name that its worker gave.
    pub(crate) fn connected(&self) -> BTreeMap<SessionId, WorkerName> {
        let book = self.lock();
        book.streams.iter().map(|((id, _), stream)| (id.clone(), stream.worker.clone())).collect()
    }

    /// Whether the session has a stream.
    pub(crate) fn is_connected(&self, session: &SessionId) -> bool {
        self.lock().suspicion.is_connected(session)
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// A stream that takes no more is ended: its worker looks for itself when it comes back.
    fn send(&mut self, session: &SessionId, event: &SessionEvent) {
        let of_session = (session.clone(), 0)..=(session.clone(), u64::MAX);
        for (_, stream) in self.streams.range_mut(of_session) {
            let sent = stream.events.as_ref().map(|events| events.try_send(event.clone()));
            if sent.is_some_and(|sent| sent.is_err()) {
                stream.events = None;
            }
        }
    }
}

fn closed_by_others(job: JobId, token: Number, reason: CloseReason) -> Option<SessionEvent> {
    let (job, token) = (job.to_string(), token.get());
    match reason {
        CloseReason::Superseded | CloseReason::Outrun => {
            Some(SessionEvent::Lost { job, token, reason: reason.as_str().to_owned() })
        }
        CloseReason::Cancelled => Some(SessionEvent::Cancelled { job, token }),
        CloseReason::Completed | CloseReason::Failed | CloseReason::Released => None,
    }
}

/// One connection of a session. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct Connection {
    app: App,
    key: (SessionId, u64),
    events: mpsc::Receiver<SessionEvent>,
}

impl Connection {
    /// A worker connected.
    pub(crate) fn open(app: &App, session: SessionId, worker: WorkerName) -> Self {
        let (sender, events) = mpsc::channel(BACKLOG);
        let mut book = app.sessions.lock();
        book.suspicion.opened(&session);
        book.serial += 1;
        let key = (session, book.serial);
        book.streams.insert(key.clone(), Stream { worker, events: Some(sender) });
        drop(book);
        Self { app: app.clone(), key, events }
    }

    /// The next event. None: the stream fell behind, and is to end.
    pub(crate) async fn next(&mut self) -> Option<SessionEvent> {
        self.events.recv().await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let now = self.app.store.now();
        let mut book = self.app.sessions.lock();
        book.streams.remove(&self.key);
        book.suspicion.broke(&self.key.0, now);
    }
}
