//! The calls that wait for one wish's answer.

use serde::{Deserialize, Serialize};

use crate::LeaseId;

/// How many calls of one wish are remembered. Those beyond it may wait as well; when they hang up,
/// time does the rest.
const SEATS_MAX: usize = 16;

/// The calls that asked for the same, each known by the random lease id that it brought.
///
/// A client that loses its connection asks again, perhaps at another server, and the first one
/// notices late that nobody listens any more. What the wish came to belongs to whichever call still
/// listens, so it is given up only when the last of them has gone.
///
/// Invariant: a call that was handed the grant never leaves, so its grant is never given up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seats(Vec<LeaseId>);

impl Seats {
    /// One call more; nothing changes for one that is there.
    pub(super) fn take(&mut self, call: LeaseId) {
        if self.0.len() < SEATS_MAX && !self.0.contains(&call) {
            self.0.push(call);
        }
    }

    /// A call has gone. Answers whether it was the last. One that was never there changes nothing.
    pub(super) fn leave(&mut self, call: LeaseId) -> bool {
        let Some(place) = self.0.iter().position(|there| *there == call) else { return false };
        self.0.remove(place);
        self.0.is_empty()
    }

    /// Nobody is known: the record was written by a version that knew no seats.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
