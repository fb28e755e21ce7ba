//! How long a store remembers what happened, and what it answered.
//!
//! Records, fences and counters are never forgotten; this is about the journal, and about the first
//! answers that make a repeated request harmless. Must not know: how a store keeps them.

use crate::{Invalid, Timestamp};

/// The shortest time that may be asked for, in ms: an hour.
pub const KEEP_MS_MIN: u64 = 3_600_000;
/// First answers are kept for at least this long, in ms: a week. A request that was delayed for
/// longer than an answer is kept is taken for a new one.
pub const ANSWERS_MS_MIN: u64 = 7 * 24 * 3_600_000;
/// How long the journal is kept where nobody says, in ms: 90 days.
pub const KEEP_MS_DEFAULT: u64 = 90 * 24 * 3_600_000;

/// For how long history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    keep_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep_ms: KEEP_MS_DEFAULT }
    }
}

impl Retention {
    /// Keeps for so many ms.
    pub fn of_ms(keep_ms: u64) -> Result<Self, Invalid> {
        if keep_ms < KEEP_MS_MIN {
            let allowed = "must be at least 1h";
            return Err(Invalid::new("keep_history", &format!("{keep_ms}ms"), allowed));
        }
        Ok(Self { keep_ms })
    }

    /// Entries of the journal before this instant may go.
    pub const fn journal_before(self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(self.keep_ms))
    }

    /// First answers given before this instant may go.
    pub fn answers_before(self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(self.keep_ms.max(ANSWERS_MS_MIN)))
    }
}

/// Whether entries that are kept together may go: all of them are old, and none tells of a job that
/// still has a rendering before it, whose story is not over.
pub fn may_go(newest: Timestamp, before: Timestamp, tells_of_live_job: bool) -> bool {
    newest < before && !tells_of_live_job
}

#[cfg(test)]
mod tests {
    use super::{ANSWERS_MS_MIN, KEEP_MS_MIN, Retention, may_go};
    use crate::Timestamp;

    #[test]
    fn the_journal_goes_by_its_age_and_answers_a_week_later_at_the_earliest() {
        let now = Timestamp(10 * ANSWERS_MS_MIN);
        let hour = Retention::of_ms(KEEP_MS_MIN).unwrap();
        assert_eq!(hour.journal_before(now), Timestamp(now.0 - KEEP_MS_MIN));
        assert_eq!(hour.answers_before(now), Timestamp(now.0 - ANSWERS_MS_MIN));
        let long = Retention::of_ms(2 * ANSWERS_MS_MIN).unwrap();
        assert_eq!(long.answers_before(now), long.journal_before(now));
        assert_eq!(long.journal_before(Timestamp(5)), Timestamp(0), "a young store keeps all");
        assert!(Retention::of_ms(KEEP_MS_MIN - 1).is_err());
    }

    #[test]
    fn what_tells_of_a_live_job_stays_however_old() {
        let (old, before) = (Timestamp(5), Timestamp(6));
        assert!(may_go(old, before, false));
        assert!(!may_go(old, before, true));
        assert!(!may_go(before, before, false));
    }
}
