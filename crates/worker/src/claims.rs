//! The claim loop: one long poll at a time, for as many jobs as there are free slots, asked again
//! under the same request id until it is answered.

use std::sync::Arc;

use palisade_api::wire::{CapabilityWire, ClaimRequest, ClaimResponse, GrantWire, ReleaseRequest};
use palisade_core::{RequestId, Timestamp};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::{JoinError, JoinSet},
};

use crate::{
    assignment::{Assignment, named},
    attempt::{Attempt, Surroundings},
    backoff::Backoff,
    control_plane::CallError,
    desk::Granted,
    events::{AttemptEvent, Event, What},
    room::NoRoom,
    switch::Switch,
    timer::{sleep_ms, within_ms},
};

/// How often the disk is looked at while there is no room, in ms.
const LOOK_FOR_ROOM_MS: u64 = 5_000;
/// How long a grant that cannot be used is tried to be handed back, in ms.
const RELEASE_MS: u64 = 5_000;
/// Beyond what the claim waits at the server, its answer may take so long, in ms.
const ANSWER_MS: u64 = 15_000;

/// Claims jobs and runs their attempts.
#[derive(Debug)]
pub(crate) struct Claims {
    around: Arc<Surroundings>,
    slots: Arc<Semaphore>,
    attempts: JoinSet<()>,
    said_no_room: bool,
}

/// One claim until it is settled.
#[derive(Debug)]
struct Poll {
    id: RequestId,
    request: ClaimRequest,
    backoff: Backoff,
}

impl Claims {
    pub(crate) fn new(around: Arc<Surroundings>) -> Self {
        let slots = Arc::new(Semaphore::new(around.desk.config.slots));
        Self { around, slots, attempts: JoinSet::new(), said_no_room: false }
    }

    /// Claims until told to stop, and answers what still runs.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) -> JoinSet<()> {
        let mut poll: Option<Poll> = None;
        loop {
            let stop = stopped.wait_for(|stop| *stop);
            let done = tokio::select! {
                biased;
                _ = stop => true,
                () = self.step(&mut poll) => false,
            };
            while let Some(ended) = self.attempts.try_join_next() {
                note_panic(ended);
            }
            if done {
                break;
            }
        }
        if let Some(poll) = poll {
            // It may have been granted something that nobody will read the answer of.
            self.around.desk.abandon_claim(&poll.id);
        }
        self.attempts
    }

    /// One try of a claim. Dropped in the middle, it leaves `poll` as a claim that may have
    /// arrived.
    async fn step(&mut self, poll: &mut Option<Poll>) {
        let desk = Arc::clone(&self.around.desk);
        // A claim that may have arrived is asked again as it was, whatever the disk says now: it
        // may have been granted something.
        if poll.is_none() {
            *poll = self.begin_poll().await;
        }
        let Some(poll_now) = poll else { return };
        // The number of the last heartbeat is read after the claim has become pending.
        poll_now.request.seq = desk.seq();
        let sent_at = desk.timer.now();
        let answer = self.ask(&poll_now.request).await;
        match answer {
            Ok(response) => {
                desk.confirmed();
                let id = poll_now.id.clone();
                *poll = None;
                self.take(&id, sent_at, response);
            }
            Err(error @ CallError::Unconfirmed { .. }) => {
                desk.unconfirmed(&error);
                sleep_ms(&*desk.timer, poll_now.backoff.next_ms(&*desk.entropy)).await;
            }
            Err(error) => {
                // Refused: nothing was granted, and nothing will be. An operator may mend it.
                let wait_ms = Backoff::new(10_000, 10_000).next_ms(&*desk.entropy);
                desk.settle_claim(&poll_now.id, sent_at, &[]);
                *poll = None;
                desk.events.emit(Event::ClaimRefused { message: error.to_string() });
                sleep_ms(&*desk.timer, wait_ms).await;
            }
        }
    }

    async fn ask(&self, request: &ClaimRequest) -> Result<ClaimResponse, CallError> {
        let timer = &*self.around.desk.timer;
        let limit_ms = request.wait_ms + ANSWER_MS;
        let answer = within_ms(timer, limit_ms, self.around.plane.claim(request)).await;
        answer.unwrap_or_else(|| {
            let message = format!("a claim was not answered within {limit_ms} ms");
            Err(CallError::Unconfirmed { message })
        })
    }

    /// A new claim, once there is a slot. None: there is no room now; it was waited a while.
    async fn begin_poll(&mut self) -> Option<Poll> {
        let slot = self.slots.acquire().await;
        drop(slot.expect("never closed"));
        let around = Arc::clone(&self.around);
        let (desk, config) = (&around.desk, &around.desk.config);
        let recipes = match self.offered().await {
            Ok(recipes) => recipes,
            Err(NoRoom { needed_bytes, free_bytes }) => {
                if !std::mem::replace(&mut self.said_no_room, true) {
                    let kept_free = config.free_bytes_min;
                    let needed_bytes = needed_bytes.saturating_add(kept_free);
                    let free_bytes = free_bytes.saturating_add(kept_free);
                    desk.events.emit(Event::NoRoom { needed_bytes, free_bytes });
                }
                sleep_ms(&*desk.timer, LOOK_FOR_ROOM_MS).await;
                return None;
            }
        };
        if std::mem::take(&mut self.said_no_room) {
            desk.events.emit(Event::RoomAgain);
        }
        let free_slots = self.slots.available_permits().max(1);
        let id = desk.begin_claim();
        let request = ClaimRequest {
            worker: config.name.to_string(),
            session: desk.session().to_string(),
            request_id: id.to_string(),
            seq: 0,
            ttl_ms: Some(config.ttl_ms),
            wait_ms: config.wait_ms,
            max_jobs: Some(u32::try_from(free_slots).unwrap_or(u32::MAX)),
            recipes,
        };
        Some(Poll { id, request, backoff: Backoff::of_calls() })
    }

    async fn offered(&self) -> Result<Vec<CapabilityWire>, NoRoom> {
        let room = Arc::clone(&self.around.room);
        let free_bytes = tokio::task::spawn_blocking(move || room.free_bytes()).await;
        // A disk that cannot be asked is treated as a full one: it will not take a render either.
        let free_bytes = free_bytes.ok().and_then(Result::ok).unwrap_or(0);
        self.around.offer.within(free_bytes, self.around.desk.timer.now())
    }

    /// Takes what was granted. From here to the desk there is no wait: a claim is settled whole.
    fn take(&mut self, id: &RequestId, sent_at: Timestamp, response: ClaimResponse) {
        let around = Arc::clone(&self.around);
        let mut kept = Vec::new();
        let mut taken = Vec::new();
        let mut unusable = Vec::new();
        for grant in response.grants {
            let slot = Arc::clone(&self.slots).try_acquire_owned();
            match (Assignment::of(&grant, &around.offer), slot) {
                (Ok(assignment), Ok(slot)) => {
                    let switch = Switch::new();
                    kept.push(Granted {
                        job: assignment.job,
                        pair: assignment.pair,
                        ttl_ms: grant.ttl_ms,
                        waited_ms: grant.waited_ms,
                        switch: Arc::clone(&switch),
                    });
                    taken.push((assignment, switch, slot, grant.ttl_ms));
                }
                (Err(invalid), _) => unusable.push((grant, invalid.to_string())),
                (Ok(_), Err(_)) => unusable.push((grant, "no slot is free for it".to_owned())),
            }
        }
        around.desk.settle_claim(id, sent_at, &kept);
        for (assignment, switch, slot, ttl_ms) in taken {
            self.begin(assignment, switch, slot, ttl_ms);
        }
        for (grant, why) in unusable {
            self.attempts.spawn(hand_back(Arc::clone(&around), grant, why));
        }
    }

    fn begin(
        &mut self,
        assignment: Assignment,
        switch: Arc<Switch>,
        slot: OwnedSemaphorePermit,
        ttl_ms: u64,
    ) {
        let (job, pair) = (assignment.job, assignment.pair);
        let what = What::Claimed {
            recipe: assignment.recipe.name.to_string(),
            lease: pair.lease_id.to_string(),
            ttl_ms,
            attempt: assignment.attempt,
        };
        let event = AttemptEvent { what, job, token: pair.token };
        self.around.desk.events.emit(Event::Attempt(event));
        let attempt = Attempt::new(Arc::clone(&self.around), assignment, switch);
        self.attempts.spawn(async move {
            attempt.run().await;
            drop(slot);
        });
    }
}

/// An attempt's own end is told by itself; a panic is told here.
pub(crate) fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "an attempt ended with a panic");
    }
}

/// Hands back a grant that this worker cannot use. If the server does not answer, the next
/// heartbeat, which does not list it, does the same.
async fn hand_back(around: Arc<Surroundings>, grant: GrantWire, why: String) {
    let desk = &around.desk;
    let Ok((job, pair)) = named(&grant) else {
        tracing::error!(?grant, why, "a grant that cannot even be named");
        return;
    };
    let request = ReleaseRequest { token: pair.token.get(), lease: pair.lease_id.to_string() };
    let _answer = within_ms(&*desk.timer, RELEASE_MS, around.plane.release(job, &request)).await;
    let event = AttemptEvent { what: What::Released { why }, job, token: pair.token };
    desk.events.emit(Event::Attempt(event));
}
