//! The shape of an outbox row and of the rule over it, as the lab needs them: taken under a lease
//! of its own, sent, settled by whoever still has that lease.
//!
//! This is the one place at which the world of deliveries touches a rule. [`Outbox`] is what the
//! world asks of it.

use palisade_core::Timestamp;

/// How a send went, as the receiver said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::explore) enum Sent {
    /// It has it, now or before, or has something newer.
    Delivered,
    /// It would not take it.
    Failed,
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Waiting,
    Delivered,
    /// Given up: a person has to look.
    Dead,
}

/// The rule over rows.
pub(super) trait Outbox {
    /// A row.
    type Row: Clone + std::fmt::Debug + std::hash::Hash;

    /// The row that a commit writes.
    fn write(&self) -> Self::Row;
    /// Takes the row for delivery. Answers it with its new lease, or none when it is over, or
    /// somebody else has it.
    fn take(&self, row: &Self::Row, now: Timestamp) -> Option<(Self::Row, u64)>;
    /// Records how a delivery went. None: the lease is no longer this one's.
    fn settle(&self, row: &Self::Row, lease: u64, sent: Sent) -> Option<Self::Row>;
    /// Where the row is.
    fn place(&self, row: &Self::Row) -> Place;
}

/// How long a row is somebody's, in ms.
pub(super) const LEASE_MS: u64 = 10_000;
/// How many failures are put up with.
pub(super) const FAILURES_ALLOWED: u8 = 2;

/// The rule as the design has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Designed {
    /// Whether a settlement looks at the lease.
    pub(super) checks_lease: bool,
    /// Whether a lease ends.
    pub(super) lease_ends: bool,
}

/// A row of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Row {
    place: Place,
    /// Rises with each take: a late settlement shows an old one.
    lease: u64,
    until: Timestamp,
    failures: u8,
}

impl Outbox for Designed {
    type Row = Row;

    fn write(&self) -> Row {
        Row { place: Place::Waiting, lease: 0, until: Timestamp::default(), failures: 0 }
    }

    fn take(&self, row: &Row, now: Timestamp) -> Option<(Row, u64)> {
        let free = row.lease == 0 || (self.lease_ends && row.until <= now) || row.until.0 == 0;
        if row.place != Place::Waiting || !free {
            return None;
        }
        let lease = row.lease + 1;
        Some((Row { lease, until: now.plus_ms(LEASE_MS), ..row.clone() }, lease))
    }

    fn settle(&self, row: &Row, lease: u64, sent: Sent) -> Option<Row> {
        let own = row.lease == lease && row.place == Place::Waiting;
        if self.checks_lease && !own {
            return None;
        }
        let mut row = Row { until: Timestamp::default(), ..row.clone() };
        match sent {
            Sent::Delivered => row.place = Place::Delivered,
            Sent::Failed => {
                row.failures += 1;
                let spent = row.failures >= FAILURES_ALLOWED;
                row.place = if spent { Place::Dead } else { Place::Waiting };
            }
        }
        Some(row)
    }

    fn place(&self, row: &Row) -> Place {
        row.place
    }
}
