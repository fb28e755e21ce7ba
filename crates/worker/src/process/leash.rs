//! For how long a child may run without a word of whoever holds the lease that it works under.
//!
//! Its caller may be stopped while the child runs on: then the lease passes to another, and nobody
//! would stop the child. So the caller says up to when the lease may be trusted, again with every
//! renewal, and the nanny stops the child when that time has come, as the caller would.
//!
//! Must not know: how a process is stopped.

use palisade_core::Timestamp;

/// What is to be done to the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pull {
    Stop,
    LetRun,
    Nothing,
}

/// The leash of one child. Without a first word there is none, and the child may run for ever.
///
/// Invariant: the child runs exactly when it was not ordered to stand still and the time is not up.
#[derive(Debug, Default)]
pub(super) struct Leash {
    until: Option<Timestamp>,
    /// The caller wants it to stand still.
    is_ordered: bool,
    /// The time is up.
    is_out: bool,
}

impl Leash {
    /// The caller says up to when the child may run.
    pub(super) fn lengthened(&mut self, until: Timestamp, now: Timestamp) -> Pull {
        let stood = self.stands();
        self.until = Some(until);
        self.is_out = now >= until;
        self.changed(stood)
    }

    /// The caller orders it to stand still.
    pub(super) fn freeze(&mut self) {
        self.is_ordered = true;
    }

    /// The caller lets it run: if there is time left for that.
    pub(super) fn thaw(&mut self, now: Timestamp) -> Pull {
        self.is_ordered = false;
        self.is_out = self.until.is_some_and(|until| now >= until);
        // Also where it did not stand by our doing: somebody may have stopped it by hand.
        if self.is_out { Pull::Nothing } else { Pull::LetRun }
    }

    /// Time passed.
    pub(super) fn look(&mut self, now: Timestamp) -> Pull {
        let stood = self.stands();
        self.is_out = self.until.is_some_and(|until| now >= until);
        self.changed(stood)
    }

    /// How long until it is to be looked at again, in ms. None: nothing will change by time.
    pub(super) fn left_ms(&self, now: Timestamp) -> Option<u64> {
        self.until.filter(|_| !self.is_out).map(|until| until.since_ms(now))
    }

    const fn stands(&self) -> bool {
        self.is_ordered || self.is_out
    }

    fn changed(&self, stood: bool) -> Pull {
        match (stood, self.stands()) {
            (false, true) => Pull::Stop,
            (true, false) => Pull::LetRun,
            _ => Pull::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Timestamp {
        Timestamp(ms)
    }

    #[test]
    fn without_a_word_a_child_runs_for_ever() {
        let mut leash = Leash::default();
        assert_eq!((leash.look(at(u64::MAX)), leash.left_ms(at(1))), (Pull::Nothing, None));
        leash.freeze();
        assert_eq!(leash.look(at(5)), Pull::Nothing);
        assert_eq!(leash.thaw(at(6)), Pull::LetRun);
    }

    #[test]
    fn when_the_time_is_up_it_stops_once_and_goes_on_with_the_next_word() {
        let mut leash = Leash::default();
        assert_eq!(leash.lengthened(at(10), at(1)), Pull::Nothing);
        assert_eq!(leash.left_ms(at(4)), Some(6));
        assert_eq!(leash.look(at(9)), Pull::Nothing);
        assert_eq!(leash.look(at(10)), Pull::Stop);
        assert_eq!((leash.look(at(11)), leash.left_ms(at(11))), (Pull::Nothing, None));
        assert_eq!(leash.lengthened(at(20), at(12)), Pull::LetRun);
        assert_eq!(leash.look(at(25)), Pull::Stop);
        assert_eq!(leash.lengthened(at(24), at(26)), Pull::Nothing, "a late word has no time left");
    }

    #[test]
    fn an_order_to_stand_still_outlasts_a_longer_leash_and_a_thaw_needs_time() {
        let mut leash = Leash::default();
        leash.lengthened(at(10), at(1));
        leash.freeze();
        assert_eq!(leash.look(at(10)), Pull::Nothing, "it stands already");
        assert_eq!(leash.lengthened(at(30), at(12)), Pull::Nothing, "it was ordered to stand");
        assert_eq!(leash.thaw(at(13)), Pull::LetRun);
        leash.freeze();
        assert_eq!(leash.thaw(at(30)), Pull::Nothing, "there is no time in which it may run");
        assert_eq!(leash.lengthened(at(40), at(31)), Pull::LetRun);
    }
}
