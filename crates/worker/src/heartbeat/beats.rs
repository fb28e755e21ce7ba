//! The loop: tick, send, listen, in that order; after a pause the keepers hear of the time that
//! passed before they hear anything that arrived meanwhile.

use std::sync::Arc;

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use palisade_api::wire::HeartbeatResponse;
use palisade_core::{Timestamp, limits};
use tokio::sync::watch;

use crate::{
    backoff::chance,
    control_plane::{CallError, Connector, ControlPlane},
    desk::Desk,
    leases::Beat,
    timer::within_ms,
};

/// Heartbeats on their way at a time: one by the clock, and more only when the session broke,
/// since what is on its way may be on a connection that is dead.
const IN_FLIGHT_MAX: usize = 4;
/// How long the last words may take, in ms.
const FAREWELL_MS: u64 = 2_000;
/// When nothing is held, the loop waits for a nudge; this long at most, in ms.
const IDLE_MS: u64 = 60_000;

/// What came of one heartbeat.
struct Outcome {
    beat: Beat,
    answer: Result<HeartbeatResponse, CallError>,
}

type InFlight = FuturesUnordered<BoxFuture<'static, Outcome>>;

/// Runs until it is stopped.
pub(super) async fn run(
    desk: &Arc<Desk>,
    connector: &dyn Connector,
    mut stopped: watch::Receiver<bool>,
) {
    let mut line = Line { desk, connector, plane: None, in_flight: InFlight::new() };
    let mut retry_at: Option<Timestamp> = None;
    let mut due = false;
    let mut arrived = None;
    while !*stopped.borrow_and_update() {
        due |= desk.tick();
        if let Some(outcome) = arrived.take() {
            retry_at = line.listen(&outcome);
        }
        let now = desk.timer.now();
        due |= retry_at.map_or_else(|| desk.must_sweep(), |at| now >= at);
        let urgent = desk.take_urgent();
        if urgent {
            // Whatever connection there was may be half dead.
            line.plane = None;
        }
        if (due && line.in_flight.is_empty()) || (urgent && line.in_flight.len() < IN_FLIGHT_MAX) {
            (due, retry_at) = (false, None);
            line.send();
        }
        let wake_at = desk.wake_at().unwrap_or_else(|| now.plus_ms(IDLE_MS));
        // What is due and could not be sent goes out when the line is free, which wakes us too.
        let wake_at = retry_at.filter(|_| !due).map_or(wake_at, |at| at.min(wake_at));
        tokio::select! {
            biased;
            Some(outcome) = line.in_flight.next() => arrived = Some(outcome),
            _ = stopped.changed() => {}
            () = desk.nudge.notified() => {}
            () = desk.timer.sleep_until(wake_at) => {}
        }
    }
    line.say_farewell().await;
}

/// The line to the server.
struct Line<'a> {
    desk: &'a Arc<Desk>,
    connector: &'a dyn Connector,
    plane: Option<Arc<dyn ControlPlane>>,
    in_flight: InFlight,
}

impl Line<'_> {
    /// Sends one heartbeat for all leases, if there is anything to say.
    fn send(&mut self) {
        let Some(plane) = self.plane() else { return };
        let Some(beat) = self.desk.beat() else { return };
        let timeout_ms = timeout_ms(self.desk, beat.sent_at);
        let timer = Arc::clone(&self.desk.timer);
        self.in_flight.push(Box::pin(async move {
            let call = plane.heartbeat(&beat.request, timeout_ms);
            // The client's own limit stands still while the machine is suspended; this does not.
            let answer = within_ms(&*timer, timeout_ms, call).await.unwrap_or_else(|| {
                let message = format!("a heartbeat was not answered within {timeout_ms} ms");
                Err(CallError::Unconfirmed { message })
            });
            Outcome { beat, answer }
        }));
    }

    fn plane(&mut self) -> Option<Arc<dyn ControlPlane>> {
        if self.plane.is_none() {
            self.plane = self.connector.connect().ok().map(Arc::from);
        }
        self.plane.clone()
    }

    /// Takes an answer in. Whatever is not the answer to a heartbeat confirms nothing; then it is
    /// asked again sooner than the keepers would. Answers when.
    fn listen(&self, outcome: &Outcome) -> Option<Timestamp> {
        match &outcome.answer {
            Ok(response) => {
                self.desk.answered(&outcome.beat, response);
                None
            }
            Err(error) => {
                self.desk.unconfirmed(error);
                let wait_ms = (self.desk.config.ttl_ms / 15).clamp(50, 2_000);
                let jitter_ms = chance(&*self.desk.entropy) % (wait_ms / 4 + 1);
                Some(self.desk.timer.now().plus_ms(wait_ms - jitter_ms))
            }
        }
    }

    /// Tells the server what is held no more, so that it need not wait for the leases to lapse.
    async fn say_farewell(&mut self) {
        self.in_flight.clear();
        if !self.desk.must_sweep() {
            return;
        }
        self.send();
        let timer = Arc::clone(&self.desk.timer);
        if let Some(Some(outcome)) = within_ms(&*timer, FAREWELL_MS, self.in_flight.next()).await {
            self.listen(&outcome);
        }
    }
}

/// How long an answer is waited for: within what is left of the lease there shall be time for
/// another try; what comes later than a third of the ttl is worth little.
fn timeout_ms(desk: &Desk, now: Timestamp) -> u64 {
    let third = desk.config.ttl_ms / 3;
    let left = desk.trusted_for_ms(now).filter(|left| *left > 0).unwrap_or(third);
    (left / 2).clamp(limits::TTL_MS_MIN / 5, third.max(limits::TTL_MS_MIN / 5))
}
