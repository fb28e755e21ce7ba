//! One row of the outbox, and the rules of its delivery.
//!
//! `pending` (not before `due_at`) → `leased` (up to `due_at`) → `delivered`, or `pending` again
//! after a backoff, or `dead`. Only the holder of the lease settles it; a deliverer that was
//! paused past its lease and replaced is ignored, though what it sent has been sent.

use serde::{Deserialize, Serialize};

use crate::{LeaseId, Number, Timestamp, history::What};

use super::{EndpointId, EventId, Notice};

/// The waits between tries, in ms: five seconds to a day, as Standard Webhooks recommends.
pub const DELAYS_MS: [u64; 9] = [
    5_000,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
];
/// Tries before a row is a dead letter: the first, and one after each wait.
pub const TRIES_MAX: u32 = 10;
/// How old a row may be at a failed try, in ms, before it is a dead letter whatever its tries: a
/// receiver that names its own waits cannot keep it, and its successors, for ever.
pub const AGE_MS_MAX: u64 = 7 * 24 * HOUR_MS;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// A notification to one endpoint.
///
/// Invariant: number, endpoint and notice never change; what is sent is the notice's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its number, from the store-wide counter.
    pub number: Number,
    /// To whom.
    pub endpoint: EndpointId,
    /// What is told.
    pub notice: Notice,
    /// Where it stands.
    pub standing: Standing,
    /// Pending: not before this. Leased: the lease's deadline. Else: when it came there.
    pub due_at: Timestamp,
    /// Tries begun since it was queued.
    pub tries: u32,
    /// When it was written, or asked for again.
    pub queued_at: Timestamp,
    /// What the last failed try came to.
    pub last: Option<LastTry>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Waits for its time, and for what was said about the job before.
    Pending,
    /// Somebody tries.
    Leased(LeaseId),
    /// The receiver took it.
    Delivered,
    /// The dead letters.
    Dead,
}

/// How a failed try ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTry {
    /// When.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
    /// The receiver's HTTP status, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// In words.
    pub error: String,
}

impl Standing {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased(_) => "leased",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    /// The words, for filters.
    pub const WORDS: [&'static str; 4] = ["pending", "leased", "delivered", "dead"];
}

/// What became of a notification, for the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// The webhook.
    pub endpoint: EndpointId,
    /// The notification's number.
    pub notification: Number,
    /// The submission that it is about.
    pub submission: Number,
    /// Tries made so far.
    pub tries: u32,
    /// What the last of them came to, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Fate {
    /// In a person's words: it was taken.
    pub(crate) fn delivered(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, submission, tries, .. } = self;
        write!(formatter, "{endpoint} was told of submission {submission}, at try {tries}")
    }

    /// In a person's words: it was given up.
    pub(crate) fn dead(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, submission, tries, message, .. } = self;
        let message = message.as_deref().unwrap_or_default();
        write!(
            formatter,
            "{endpoint} could not be told of submission {submission}, in {tries} tries: {message}"
        )
    }

    /// In a person's words: it is to be delivered again.
    pub(crate) fn again(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, submission, .. } = self;
        write!(formatter, "{endpoint} is to be told again of submission {submission}")
    }
}

/// What a try came to, as its deliverer tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// The receiver took it.
    Taken,
    /// It did not.
    Failed {
        /// The receiver's HTTP status, if it answered.
        status: Option<u16>,
        /// In words.
        error: String,
        /// How long the receiver asks to be left alone, in ms.
        retry_after_ms: Option<u64>,
        /// The receiver never wants it.
        gone: bool,
    },
}

/// What came of asking for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Leasing {
    /// It may be tried.
    Leased(Delivery),
    /// Its tries were used up by deliverers that never settled.
    Dead(Delivery, What),
}

/// What came of a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    /// This lease is not the row's any more: nothing was changed.
    Ignored,
    /// It will be tried again.
    Later(Delivery),
    /// It is over.
    Over(Delivery, What),
}

impl Delivery {
    /// A row for a notice, due at once.
    pub fn new(number: Number, endpoint: EndpointId, notice: Notice, now: Timestamp) -> Self {
        Self {
            number,
            endpoint,
            notice,
            standing: Standing::Pending,
            due_at: now,
            tries: 0,
            queued_at: now,
            last: None,
        }
    }

    /// Its stable id.
    pub fn id(&self) -> EventId {
        EventId { endpoint: self.endpoint, number: self.number }
    }

    /// Whether it is still to be delivered. While it is, nothing later of its job is tried at its
    /// endpoint.
    pub fn is_open(&self) -> bool {
        matches!(self.standing, Standing::Pending | Standing::Leased(_))
    }

    /// Whether it may be tried now: its time has come, or whoever tries has let its lease lapse.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_open() && self.due_at <= now
    }

    fn over(self, standing: Standing, what: What, now: Timestamp) -> (Self, What) {
        (Self { standing, due_at: now, ..self }, what)
    }

    fn dead(self, error: &str, now: Timestamp) -> (Self, What) {
        let fate = Fate { message: Some(error.to_owned()), ..self.fate() };
        self.over(Standing::Dead, What::NotificationDead(fate), now)
    }

    fn fate(&self) -> Fate {
        Fate {
            endpoint: self.endpoint,
            notification: self.number,
            submission: self.notice.submission,
            tries: self.tries,
            message: None,
        }
    }
}

/// Leases a row that is due, for one try.
///
/// # Panics
/// When it is not due: the caller looked.
pub fn lease(delivery: Delivery, lease_id: LeaseId, ttl_ms: u64, now: Timestamp) -> Leasing {
    assert!(delivery.is_due(now), "only what is due is leased");
    if delivery.tries >= TRIES_MAX {
        let (delivery, what) = delivery.dead("its deliverers were lost", now);
        return Leasing::Dead(delivery, what);
    }
    Leasing::Leased(Delivery {
        standing: Standing::Leased(lease_id),
        due_at: now.plus_ms(ttl_ms),
        // Counted when it begins: a notification that kills its deliverer must not for ever.
        tries: delivery.tries + 1,
        ..delivery
    })
}

/// Settles a try. Whose lease was replaced is ignored; whose lease has only lapsed is not.
/// `chance` is random: the backoff's jitter.
pub fn settle(
    delivery: Delivery,
    lease_id: LeaseId,
    tried: Tried,
    chance: u64,
    now: Timestamp,
) -> Settled {
    if delivery.standing != Standing::Leased(lease_id) {
        return Settled::Ignored;
    }
    let (status, error, retry_after_ms, gone) = match tried {
        Tried::Taken => {
            let what = What::NotificationDelivered(delivery.fate());
            let (delivery, what) = delivery.over(Standing::Delivered, what, now);
            return Settled::Over(delivery, what);
        }
        Tried::Failed { status, error, retry_after_ms, gone } => {
            (status, error, retry_after_ms, gone)
        }
    };
    let aged = now.since_ms(delivery.queued_at) >= AGE_MS_MAX;
    let last = LastTry { at: now, status, error: error.clone() };
    let delivery = Delivery { last: Some(last), ..delivery };
    if gone || aged || delivery.tries >= TRIES_MAX {
        let (delivery, what) = delivery.dead(&error, now);
        return Settled::Over(delivery, what);
    }
    let wait_ms = wait_ms(delivery.tries, chance).max(retry_after_ms.unwrap_or(0).min(DAY_MS));
    let due_at = now.plus_ms(wait_ms);
    Settled::Later(Delivery { standing: Standing::Pending, due_at, ..delivery })
}

/// The longest that a receiver may ask to be left alone, in ms.
const DAY_MS: u64 = 24 * HOUR_MS;

/// The wait after so many tries, in ms, up to a fifth longer by chance: those that failed together
/// do not return together.
fn wait_ms(tries: u32, chance: u64) -> u64 {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let delay_ms = DELAYS_MS[index.min(DELAYS_MS.len() - 1)];
    delay_ms + chance % (delay_ms / 5 + 1)
}

/// Somebody asks for it again: due at once, under the same id, its tries counted anew. None: it
/// is being tried right now.
pub fn again(delivery: Delivery, now: Timestamp) -> Option<(Delivery, What)> {
    if matches!(delivery.standing, Standing::Leased(_)) {
        return None;
    }
    let what = What::NotificationAgain(delivery.fate());
    let standing = Standing::Pending;
    Some((Delivery { standing, due_at: now, queued_at: now, tries: 0, ..delivery }, what))
}
