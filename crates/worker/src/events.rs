//! What happens at a worker, as data: for people, for `--events`, for whoever supervises it.

mod sink;

pub use sink::{EventSink, JsonLines, NoEvents};

use std::sync::Arc;

use palisade_core::{JobId, Number, Timestamp};
use serde::Serialize;
use tokio::sync::{Notify, broadcast, mpsc};

use crate::timer::Timer;

/// How many events a slow reader of the channel may lag behind before it misses some.
const CHANNEL_EVENTS: usize = 4_096;

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stamped {
    /// On the worker's own clock, in ms: CLOCK_BOOTTIME, the same for all processes of a machine.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happens at a worker. As JSON, `event` is the name, in snake case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Leftovers of an earlier life were ended before anything new began.
    Cleaned {
        /// Processes that were killed.
        processes: usize,
        /// Folders that were removed.
        folders: usize,
    },
    /// The server does not answer; told once.
    ServerAway {
        /// What happened.
        message: String,
    },
    /// It answers again.
    ServerBack,
    /// The server refused a claim: this worker will get nothing until that is mended.
    ClaimRefused {
        /// The server's own words.
        message: String,
    },
    /// No claim is made for want of room; told once.
    NoRoom {
        /// What the least demanding recipe needs, in bytes, with what is kept free.
        needed_bytes: u64,
        /// What there is, in bytes, less what running renders may still need.
        free_bytes: u64,
    },
    /// There is room again.
    RoomAgain,
    /// None of the worker's recipes can be run with its tools; told once.
    NothingToOffer {
        /// What is missing.
        message: String,
    },
    /// No new claims from here on.
    Draining,
    /// All is done or given back.
    Drained,
    /// Something happened to an attempt.
    #[serde(untagged)]
    Attempt(AttemptEvent),
}

/// What happened to one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptEvent {
    /// What.
    #[serde(flatten)]
    pub what: What,
    /// The job.
    pub job: JobId,
    /// The fencing token.
    pub token: Number,
}

/// The stations of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// It was granted.
    Claimed {
        /// The recipe.
        recipe: String,
        /// The lease id: with the token, what proves the grant.
        lease: String,
        /// The lease's length.
        ttl_ms: u64,
        /// Which attempt of the job this is, from 1.
        attempt: usize,
    },
    /// The inputs are here, and the render was started.
    Started,
    /// How far it is.
    Progress {
        /// Percent of the whole; absent where it cannot be known.
        #[serde(skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
        /// How many times faster than the clip's own pace.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed: Option<f64>,
    },
    /// This process was stopped for a while, and could not renew meanwhile.
    Paused {
        /// For how long.
        pause_ms: u64,
    },
    /// Nobody confirms the lease: everything stands still.
    Frozen,
    /// It is held after all: everything goes on.
    Thawed,
    /// The render is done and its outputs are being sent.
    Uploading {
        /// How many.
        outputs: usize,
        /// Their length together.
        size_bytes: u64,
    },
    /// The keeper was asked for the last time: the completion is sent next.
    Completing,
    /// The server recorded the completion.
    Completed {
        /// Whether it had recorded other outputs for it before.
        manifest_differs: bool,
    },
    /// The server refused an effect: this attempt was replaced.
    Refused {
        /// Of which verb.
        verb: &'static str,
        /// The stable code.
        code: String,
        /// The server's own words.
        message: String,
    },
    /// Everything was thrown away, and nothing reported.
    Aborted {
        /// `lost`, `cancelled`, `unknown_token` or `doubt_grace_over`.
        reason: &'static str,
        /// For `lost`: what the server said of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// It came to nothing, which was reported.
    Failed {
        /// A stable word.
        reason: String,
        /// What happened.
        message: String,
        /// Whether another try cannot help.
        #[serde(rename = "final")]
        is_final: bool,
    },
    /// It was handed back.
    Released {
        /// Why.
        why: String,
    },
}

/// Where events go: the sink, the channel and the log. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    sink: Arc<dyn EventSink>,
    timer: Arc<dyn Timer>,
    channel: broadcast::Sender<Stamped>,
    posted: mpsc::UnboundedSender<Stamped>,
}

impl Events {
    /// And what [`relay`](Self::relay) reads from.
    pub(crate) fn new(
        sink: Arc<dyn EventSink>,
        timer: Arc<dyn Timer>,
    ) -> (Self, mpsc::UnboundedReceiver<Stamped>) {
        let (posted, to_relay) = mpsc::unbounded_channel();
        let channel = broadcast::Sender::new(CHANNEL_EVENTS);
        (Self { sink, timer, channel, posted }, to_relay)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Stamped> {
        self.channel.subscribe()
    }

    /// Told here and now: it is written when this returns.
    pub(crate) fn emit(&self, event: Event) {
        self.deliver(&self.stamped(event));
    }

    /// Told from the heartbeat's thread, which must not wait for a log or a pipe that is full:
    /// another task writes it, soon.
    pub(crate) fn post(&self, event: Event) {
        // Nobody reads any more only when the worker has ended.
        let _ = self.posted.send(self.stamped(event));
    }

    /// Writes what is posted until it is told to stop; by then, all that was posted before.
    pub(crate) async fn relay(
        self,
        mut posted: mpsc::UnboundedReceiver<Stamped>,
        stop: Arc<Notify>,
    ) {
        loop {
            tokio::select! {
                biased;
                Some(event) = posted.recv() => self.deliver(&event),
                () = stop.notified() => return,
            }
        }
    }

    fn stamped(&self, event: Event) -> Stamped {
        let Timestamp(at_ms) = self.timer.now();
        Stamped { at_ms, event }
    }

    fn deliver(&self, event: &Stamped) {
        log(event);
        self.sink.write(event);
        // Nobody may be listening.
        let _ = self.channel.send(event.clone());
    }
}

fn log(event: &Stamped) {
    let line = serde_json::to_string(event).expect("events are plain data");
    match &event.event {
        Event::Attempt(AttemptEvent { what: What::Progress { .. }, .. }) => {
            tracing::trace!(event = line);
        }
        Event::Attempt(AttemptEvent {
            what: What::Refused { .. } | What::Aborted { .. }, ..
        })
        | Event::ServerAway { .. }
        | Event::ClaimRefused { .. }
        | Event::NothingToOffer { .. }
        | Event::NoRoom { .. } => tracing::warn!(event = line),
        Event::Attempt(_)
        | Event::Cleaned { .. }
        | Event::ServerBack
        | Event::RoomAgain
        | Event::Draining
        | Event::Drained => tracing::info!(event = line),
    }
}
