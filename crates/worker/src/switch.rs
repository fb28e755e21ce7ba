//! One attempt's switch: how the heartbeat's thread stops, starts and ends what an attempt does,
//! without waiting for the runtime that the attempt runs on.

use std::sync::{Arc, Mutex, PoisonError};

use palisade_core::keeper::AbortReason;
use tokio::sync::watch;

use crate::runner::Steer;

/// Whether an attempt goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Running,
    Frozen,
    Ended(End),
}

/// Who ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The keeper: nothing is to be reported.
    Aborted {
        /// Why.
        reason: AbortReason,
        /// What the server said of it.
        detail: Option<String>,
    },
    /// The operator: what was granted is given back.
    HandedBack,
}

/// Shared by the attempt, which listens, and the heartbeat's thread, which switches.
///
/// Invariant: an end is final; the render that is attached is told of every change in its order,
/// and one that is attached late is told how things stand.
#[derive(Debug)]
pub(crate) struct Switch {
    phase: watch::Sender<Phase>,
    /// Changes are passed on under this lock, so that none overtakes another.
    render: Mutex<Option<Arc<dyn Steer>>>,
}

impl Switch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { phase: watch::Sender::new(Phase::Running), render: Mutex::new(None) })
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn freeze(&self) {
        self.turn(&Phase::Frozen);
    }

    pub(crate) fn thaw(&self) {
        self.turn(&Phase::Running);
    }

    pub(crate) fn end(&self, end: End) {
        self.turn(&Phase::Ended(end));
    }

    /// From now on this render is steered, beginning with how things stand.
    pub(crate) fn attach(&self, render: Arc<dyn Steer>) {
        let mut attached = self.render.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = self.phase();
        if phase != Phase::Running {
            pass_on(&*render, &phase);
        }
        *attached = Some(render);
    }

    /// The render is over.
    pub(crate) fn detach(&self) {
        *self.render.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns when the attempt has ended.
    pub(crate) async fn ended(&self) -> End {
        let mut changes = self.changes();
        loop {
            if let Phase::Ended(end) = &*changes.borrow_and_update() {
                return end.clone();
            }
            changes.changed().await.expect("the sender lives in self");
        }
    }

    /// Returns when the attempt may no longer go on, be it for a while or for good.
    pub(crate) async fn interrupted(&self) {
        let mut changes = self.changes();
        let running = changes.wait_for(|phase| *phase != Phase::Running).await;
        running.expect("the sender lives in self");
    }

    fn turn(&self, next: &Phase) {
        let attached = self.render.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.phase.send_if_modified(|phase| {
            let changes = !matches!(phase, Phase::Ended(_)) && phase != next;
            if changes {
                *phase = next.clone();
            }
            changes
        });
        if let (true, Some(render)) = (changed, attached.as_ref()) {
            pass_on(&**render, next);
        }
    }
}

fn pass_on(render: &dyn Steer, phase: &Phase) {
    match phase {
        Phase::Running => render.thaw(),
        Phase::Frozen => render.freeze(),
        Phase::Ended(_) => render.kill(),
    }
}
