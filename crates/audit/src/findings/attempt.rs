//! One grant of one resource to one worker, and all that is remembered of it.

use palisade_core::Timestamp;

use super::{Confidence, order::Event};
use crate::Source;

/// An entry's instant and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: Timestamp,
    pub(crate) source: Source,
}

impl Mark {
    /// Whether it comes after another, which may be told up to `tolerance_ms` too early or late. In
    /// a history of one clock, which tolerates nothing, the order of entries tells what the
    /// milliseconds do not.
    pub(crate) fn is_after(&self, other: &Self, tolerance_ms: u64) -> bool {
        let at_once =
            tolerance_ms == 0 && self.at == other.at && self.source.file == other.source.file;
        self.at > other.at.plus_ms(tolerance_ms) || (at_once && self.source > other.source)
    }
}

impl Event {
    pub(crate) const fn mark(&self) -> Mark {
        Mark { at: self.at, source: self.source }
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        self.texts.as_deref().and_then(|texts| texts.detail.as_deref())
    }
}

/// How an attempt ended, by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Released,
    Exited,
    /// The same worker was granted the resource anew.
    Restarted,
}

/// How the resource came to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The lease had run out, or was taken back by the service.
    Lapsed,
    /// The lease had time left.
    LostGrant,
    /// Somebody else had released it.
    ForeignRelease,
    /// No ttl is known.
    Untimed,
    /// The attempt had ended by its own account.
    Ended,
    /// The attempt's own grant is not in the history.
    Unseen,
}

/// Denials that others met.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waiting {
    /// Denials since the last sign of the holder.
    pub(crate) count: u32,
    pub(crate) first: Option<Mark>,
    pub(crate) last: Option<Mark>,
    /// Denials when the lease should have been over.
    pub(crate) late_count: u32,
    pub(crate) late_first: Option<Mark>,
}

/// The resource went to another.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    /// The attempt that has it now.
    pub(crate) by: usize,
    pub(crate) mark: Mark,
    pub(crate) how: How,
    /// Until when the lease had run.
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) waiting: Waiting,
}

/// Renewals that failed, since the last that succeeded.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub(crate) first: Mark,
    pub(crate) count: u32,
    /// The answer said that the lease is gone.
    pub(crate) lost: bool,
    pub(crate) detail: Option<Box<str>>,
}

/// A silence that was longer than the lease allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
    pub(crate) length_ms: u64,
    pub(crate) reported: bool,
    /// It had been heard of often enough for a silence to be strange.
    pub(crate) of_habit: bool,
}

impl Pause {
    /// How sure it is that the worker stood still, and did not only say nothing.
    pub(crate) const fn confidence(&self) -> Confidence {
        match (self.reported, self.of_habit) {
            (true, _) => Confidence::Certain,
            (false, true) => Confidence::Likely,
            (false, false) => Confidence::Possible,
        }
    }
}

/// An effect, landed or refused.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) mark: Mark,
    pub(crate) kind: Option<Box<str>>,
    pub(crate) detail: Option<Box<str>>,
    pub(crate) refused: bool,
    pub(crate) token: Option<u64>,
    pub(crate) late: bool,
}

/// How many effects of one attempt are remembered.
pub(crate) const EFFECTS_MAX: usize = 32;

/// One grant of one resource to one worker.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) worker: u32,
    /// None: the grant is not in the history.
    pub(crate) granted: Option<Mark>,
    pub(crate) first: Mark,
    pub(crate) ttl_ms: Option<u64>,
    /// The history does not tell it.
    pub(crate) ttl_assumed: bool,
    pub(crate) token: Option<u64>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) last_sign: Mark,
    pub(crate) last_work: Mark,
    pub(crate) renewed_at: Option<Timestamp>,
    /// The longest that it took from one renewal to the next.
    pub(crate) renewal_gap_max_ms: u64,
    pub(crate) renewals_since_work: u32,
    pub(crate) gaps: u32,
    pub(crate) gap_max_ms: u64,
    pub(crate) work_gaps: u32,
    pub(crate) work_gap_max_ms: u64,
    pub(crate) failed: Option<Failed>,
    pub(crate) ignored: Option<Mark>,
    pub(crate) pause: Option<Pause>,
    pub(crate) paused_ms: u64,
    /// The lease was given up or taken back.
    pub(crate) freed: Option<Mark>,
    /// The service took it back though it had time left.
    pub(crate) revoked: bool,
    pub(crate) end: Option<(End, Mark)>,
    pub(crate) taken: Option<Taken>,
    /// The first work after the resource had gone to another.
    pub(crate) after: Option<Mark>,
    pub(crate) effects: Vec<Done>,
    /// Which piece of work: attempts at the same one have the same number.
    pub(crate) work: u32,
}

impl Attempt {
    pub(crate) fn new(event: &Event, granted: bool, work: u32) -> Self {
        let mark = event.mark();
        Self {
            worker: event.worker,
            granted: granted.then_some(mark),
            first: mark,
            ttl_ms: event.ttl_ms,
            ttl_assumed: event.ttl_assumed,
            token: event.token,
            deadline: event.ttl_ms.map(|ttl_ms| mark.at.plus_ms(ttl_ms)),
            last_sign: mark,
            last_work: mark,
            renewed_at: None,
            renewal_gap_max_ms: 0,
            renewals_since_work: 0,
            gaps: 0,
            gap_max_ms: 0,
            work_gaps: 0,
            work_gap_max_ms: 0,
            failed: None,
            ignored: None,
            pause: None,
            paused_ms: 0,
            freed: None,
            revoked: false,
            end: None,
            taken: None,
            after: None,
            effects: Vec::new(),
            work,
        }
    }

    pub(crate) fn ended(&self, end: End) -> bool {
        self.end.is_some_and(|(how, _)| how == end)
    }

    /// Whether it said itself that it was through (an exit alone says nothing of the work).
    pub(crate) fn finished(&self) -> bool {
        self.ended(End::Completed) || self.ended(End::Released)
    }

    pub(crate) fn landed(&self) -> impl Iterator<Item = &Done> {
        self.effects.iter().filter(|effect| !effect.refused)
    }

    /// Whether a silence in which the resource went to another explains that it did. `usual_ms` and
    /// `fleet_ms` are how long it, and holders in general, are silent while they are at work.
    pub(crate) fn stood_still(
        &self,
        silent_ms: u64,
        from: Timestamp,
        (usual_ms, fleet_ms): (u64, u64),
    ) -> bool {
        let ttl_ms = self.ttl_ms.unwrap_or(0);
        if silent_ms <= ttl_ms / 2 || silent_ms <= usual_ms {
            return false;
        }
        let whole_lease = silent_ms >= ttl_ms;
        let kept = self.kept_until(from);
        // A holder that renews, and then does not for as long as it takes to lose the lease, has
        // stood still, however slowly it went to work before: on a loaded machine all are slow.
        if self.renewed_at.is_some() && (kept || whole_lease) {
            return true;
        }
        // One that had let its renewal pass while it was well would have lost the lease anyhow.
        silent_ms > (usual_ms * 2).max(fleet_ms * 2) && (kept || whole_lease)
    }

    /// Whether it was kept in good time until it fell silent at `from`: its next renewal was not
    /// overdue by then.
    pub(crate) fn kept_until(&self, from: Timestamp) -> bool {
        let since = self.renewed_at.or(self.granted.map(|mark| mark.at)).unwrap_or(from);
        let half_ttl_ms = self.ttl_ms.unwrap_or(0) / 2;
        from.since_ms(since) <= half_ttl_ms.max(self.renewal_gap_max_ms.saturating_mul(3) / 2)
    }

    /// Until when the lease can have run: a history that logs no renewals leaves it open whether
    /// the last sign of life went with one.
    pub(crate) fn latest_deadline(&self) -> Option<Timestamp> {
        let last = self.last_sign.at.plus_ms(self.ttl_ms?);
        Some(self.deadline.map_or(last, |deadline| deadline.max(last)))
    }

    /// When it was over: its end, or the last that was heard of it.
    pub(crate) fn over(&self) -> Mark {
        self.end.map_or(self.last_sign, |(_, mark)| {
            if self.last_sign.at > mark.at { self.last_sign } else { mark }
        })
    }

    /// Seconds of compute that went into it, in ms, without its pauses.
    pub(crate) fn compute_ms(&self) -> u64 {
        self.over().at.since_ms(self.first.at).saturating_sub(self.paused_ms)
    }

    /// Whether it can still be at work at `at`: not ended, and not fallen silent past its lease.
    pub(crate) fn alive(&self, at: Timestamp, slack_ms: u64) -> bool {
        let quiet_ms = at.since_ms(self.last_sign.at);
        let allowed_ms = self.gap_max_ms.saturating_mul(3).max(slack_ms);
        self.end.is_none()
            && (self.deadline.is_none_or(|deadline| deadline.plus_ms(slack_ms) >= at)
                || quiet_ms <= allowed_ms)
    }
}
