//! Everything the worker holds and has asked for, as a table without clock, threads or network:
//! its keepers, its unanswered claims, its heartbeats' numbers.
//!
//! Invariant: whatever was granted is, at every moment, either in a claim that is still pending
//! or kept here. A heartbeat is made from one look at both, so that the server may hand back what
//! is in neither.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_api::wire::{
    HeartbeatRequest, HeartbeatResponse, LeaseAnswer, LeaseStatus, LeaseWire, PauseWire,
};
use palisade_core::{
    JobId, Number, RequestId, SessionId, Timestamp,
    keeper::{AbortReason, Action, Keeper, State},
    lease::Pair,
};

use crate::switch::{End, Switch};

/// A lease and its keeper.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) job: JobId,
    pub(crate) pair: Pair,
    pub(crate) keeper: Keeper,
    pub(crate) switch: Arc<Switch>,
}

/// What is to be done to an attempt, in this order, by whoever looked.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) job: JobId,
    pub(crate) token: Number,
    pub(crate) switch: Arc<Switch>,
    pub(crate) act: Act,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Paused(u64),
    Freeze,
    Thaw,
    End(End),
}

/// What passing time asks for.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) orders: Vec<Order>,
    /// Whether a heartbeat is due.
    pub(crate) renew: bool,
}

/// A heartbeat as it was sent, for its answer to be understood.
#[derive(Debug, Clone)]
pub(crate) struct Beat {
    pub(crate) sent_at: Timestamp,
    pub(crate) request: HeartbeatRequest,
}

/// Said through the session about a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) job: String,
    pub(crate) token: u64,
    pub(crate) reason: AbortReason,
    pub(crate) detail: Option<String>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Leases {
    session: SessionId,
    seq: u64,
    pending: BTreeSet<RequestId>,
    kept: BTreeMap<Number, Kept>,
    /// Measured and not yet confirmed to have arrived.
    pauses: Vec<PauseWire>,
    /// A heartbeat with at least this `seq` must arrive, so that the server hears of what is no
    /// longer listed.
    sweep_from: Option<u64>,
}

impl Leases {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            seq: 0,
            pending: BTreeSet::new(),
            kept: BTreeMap::new(),
            pauses: Vec::new(),
            sweep_from: None,
        }
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// The last `seq` sent.
    pub(crate) const fn seq(&self) -> u64 {
        self.seq
    }

    /// A claim is about to be sent.
    pub(crate) fn begin_claim(&mut self, request_id: RequestId) {
        self.pending.insert(request_id);
    }

    /// A claim was answered: what it granted is kept from the same moment on.
    pub(crate) fn settle_claim(&mut self, request_id: &RequestId, granted: Vec<Kept>) {
        self.pending.remove(request_id);
        for kept in granted {
            self.kept.insert(kept.pair.token, kept);
        }
    }

    /// A claim is given up without an answer: what it was granted is to be handed back.
    pub(crate) fn abandon_claim(&mut self, request_id: &RequestId) {
        if self.pending.remove(request_id) {
            self.sweep();
        }
    }

    /// Whether an effect of this attempt may be attempted.
    pub(crate) fn may_act(&self, token: Number, now: Timestamp) -> bool {
        self.kept.get(&token).is_some_and(|kept| kept.keeper.may_act(now))
    }

    /// Whether this attempt's completion may be sent; from then on nothing else may be.
    pub(crate) fn completing(&mut self, token: Number, now: Timestamp) -> bool {
        self.kept.get_mut(&token).is_some_and(|kept| kept.keeper.completing(now))
    }

    /// The server knows that this attempt is over.
    pub(crate) fn finished(&mut self, token: Number) {
        self.kept.remove(&token);
    }

    /// This attempt is over, and the server may not know: a heartbeat tells it soon. If its
    /// completion may be on the way, none is sent for that alone, so as not to overtake it.
    pub(crate) fn give_up(&mut self, token: Number) {
        let given_up = self.kept.remove(&token);
        if given_up.is_some_and(|kept| kept.keeper.state() != State::Completing) {
            self.sweep();
        }
    }

    /// Every attempt's switch.
    pub(crate) fn switches(&self) -> impl Iterator<Item = &Arc<Switch>> {
        self.kept.values().map(|kept| &kept.switch)
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, now: Timestamp, mut chance: impl FnMut() -> u64) -> Round {
        let mut round = Round::default();
        let mut over = Vec::new();
        for kept in self.kept.values_mut() {
            let actions = kept.keeper.tick(now, chance());
            for action in actions {
                match action {
                    Action::Renew => round.renew = true,
                    Action::ReportPause(pause_ms) => {
                        self.pauses.push(pause(kept, pause_ms));
                        round.orders.push(order(kept, Act::Paused(pause_ms)));
                    }
                    Action::Freeze => round.orders.push(order(kept, Act::Freeze)),
                    Action::Thaw => round.orders.push(order(kept, Act::Thaw)),
                    Action::Abort(reason) => {
                        round.orders.push(ended(kept, reason, None));
                        over.push(kept.pair.token);
                    }
                }
            }
        }
        for token in over {
            self.kept.remove(&token);
            // The server may still count it as held: when it is back, it shall hear that it may
            // grant the job to others at once.
            self.sweep();
        }
        round
    }

    /// When the table wants to be ticked at the latest. None: nothing is held.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.kept.values().map(|kept| kept.keeper.wake_at()).min()
    }

    /// How long from `now` the lease that ends first may still be trusted, in ms. None: nothing
    /// is held.
    pub(crate) fn trusted_for_ms(&self, now: Timestamp) -> Option<u64> {
        self.kept.values().map(|kept| kept.keeper.trusted_until().since_ms(now)).min()
    }

    /// A heartbeat is about to be sent. None: there is nothing to say.
    pub(crate) fn beat(&mut self, now: Timestamp) -> Option<Beat> {
        if self.kept.is_empty() && self.sweep_from.is_none() {
            return None;
        }
        self.seq += 1;
        let leases = self.kept.values().map(|kept| LeaseWire {
            job: kept.job.to_string(),
            token: kept.pair.token.get(),
            lease: kept.pair.lease_id.to_string(),
        });
        let request = HeartbeatRequest {
            session: self.session.to_string(),
            seq: self.seq,
            leases: leases.collect(),
            pending: self.pending.iter().map(ToString::to_string).collect(),
            pauses: self.pauses.clone(),
        };
        Some(Beat { sent_at: now, request })
    }

    /// A heartbeat was answered.
    pub(crate) fn answered(
        &mut self,
        beat: &Beat,
        response: &HeartbeatResponse,
        now: Timestamp,
    ) -> Vec<Order> {
        self.pauses.retain(|pause| !beat.request.pauses.contains(pause));
        if self.sweep_from.is_some_and(|from| beat.request.seq >= from) {
            self.sweep_from = None;
        }
        let mut orders = Vec::new();
        for answer in &response.leases {
            orders.extend(self.answered_lease(answer, beat.sent_at, now));
        }
        orders
    }

    /// The session spoke of a lease.
    pub(crate) fn told(&mut self, told: &Told) -> Vec<Order> {
        self.refused(&told.job, told.token, told.reason, told.detail.clone())
    }

    fn answered_lease(
        &mut self,
        answer: &LeaseAnswer,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> Vec<Order> {
        let reason = match answer.status {
            LeaseStatus::Held => {
                let Some(kept) = self.find(&answer.job, answer.token) else { return Vec::new() };
                let actions = kept.keeper.confirmed(sent_at, now);
                let thaw = actions.contains(&Action::Thaw);
                return if thaw { vec![order(kept, Act::Thaw)] } else { Vec::new() };
            }
            LeaseStatus::Lost => AbortReason::Lost,
            LeaseStatus::Cancelled => AbortReason::Cancelled,
            LeaseStatus::UnknownToken => AbortReason::UnknownToken,
        };
        self.refused(&answer.job, answer.token, reason, detail(answer))
    }

    fn refused(
        &mut self,
        job: &str,
        token: u64,
        reason: AbortReason,
        detail: Option<String>,
    ) -> Vec<Order> {
        let Some(kept) = self.find(job, token) else { return Vec::new() };
        if kept.keeper.refused(reason).is_empty() {
            return Vec::new();
        }
        let (order, token) = (ended(kept, reason, detail), kept.pair.token);
        self.kept.remove(&token);
        vec![order]
    }

    fn find(&mut self, job: &str, token: u64) -> Option<&mut Kept> {
        let kept = self.kept.get_mut(&Number::new(token).ok()?)?;
        (kept.job.to_string() == job).then_some(kept)
    }

    /// Whether the server must still hear that something is held no more.
    pub(crate) const fn must_sweep(&self) -> bool {
        self.sweep_from.is_some()
    }

    fn sweep(&mut self) {
        self.sweep_from = Some(self.seq + 1);
    }
}

fn order(kept: &Kept, act: Act) -> Order {
    Order { job: kept.job, token: kept.pair.token, switch: Arc::clone(&kept.switch), act }
}

fn ended(kept: &Kept, reason: AbortReason, detail: Option<String>) -> Order {
    order(kept, Act::End(End::Aborted { reason, detail }))
}

fn pause(kept: &Kept, pause_ms: u64) -> PauseWire {
    PauseWire {
        job: kept.job.to_string(),
        token: kept.pair.token.get(),
        lease: kept.pair.lease_id.to_string(),
        pause_ms,
    }
}

/// What the server said of a lost lease, in one line.
fn detail(answer: &LeaseAnswer) -> Option<String> {
    let reason = answer.reason.as_ref()?;
    let mut line = reason.clone();
    if let Some(fence) = answer.fence {
        line.push_str(&format!("; the fence stands at {fence}"));
    }
    if let Some(token) = answer.completed_by {
        line.push_str(&format!("; completed by {token}"));
    }
    Some(line)
}
