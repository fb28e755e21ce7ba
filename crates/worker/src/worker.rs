//! A worker's life: start, run, drain, end.

#[cfg(test)]
mod tests;

use std::{io, sync::Arc};

use palisade_core::Invalid;
use tokio::{
    sync::{Notify, broadcast, watch},
    task::{JoinHandle, JoinSet},
};

use crate::{
    attempt::Surroundings,
    claims::{Claims, note_panic},
    config::{Components, WorkerConfig},
    control_plane::CallError,
    data_dir::{DataDir, DataDirError},
    desk::Desk,
    events::{Event, Events, Stamped},
    heartbeat::Heartbeat,
    offer::Offer,
    room::Room,
    timer::{sleep_ms, within_ms},
};

/// How long what was ended by the operator may take to be gone and given back, in ms.
const HAND_BACK_MS: u64 = 15_000;

/// Why a worker did not start. Nothing was claimed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] Invalid),
    /// Its folder cannot be had.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The server's address cannot be used.
    #[error(transparent)]
    Address(#[from] CallError),
    /// What an earlier life left running could not be ended.
    #[error("processes that an earlier worker left in {folder} cannot be ended")]
    Leftovers {
        /// The scratch folder.
        folder: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The system gives no thread for the heartbeat.
    #[error("the heartbeat's thread cannot be started")]
    Thread {
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A running worker. Dropped, it gives up what it does without a word to the server.
#[derive(Debug)]
pub struct Worker {
    desk: Arc<Desk>,
    stage: watch::Sender<Stage>,
    life: JoinHandle<()>,
}

/// How far its end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Claiming,
    Draining,
    HandingBack,
}

impl Worker {
    /// Takes the folder, ends and removes what earlier lives left in it, and begins to claim.
    pub async fn start(config: WorkerConfig, parts: Components) -> Result<Self, StartError> {
        config.validate()?;
        let plane = Arc::from(parts.connector.connect()?);
        let data_dir = Arc::new(DataDir::open(&config.data_dir)?);
        let (events, posted) = Events::new(parts.events, Arc::clone(&parts.timer));
        clean_up(&data_dir, &parts.runner, &events).await?;
        let (offer, lacking) = Offer::new(&parts.recipes, &*parts.runner);
        for lack in &lacking {
            tracing::warn!("a recipe is not offered: {lack}");
        }
        if offer.is_empty() {
            events.emit(Event::NothingToOffer { message: lacking.join("; ") });
        }
        let room = Room::new(parts.disk, data_dir.scratch_root(), config.free_bytes_min);
        let desk = Desk::new(config, parts.timer, parts.entropy, events);
        let heartbeat = Heartbeat::start(Arc::clone(&desk), parts.connector)
            .map_err(|source| StartError::Thread { source })?;
        let around = Surroundings {
            desk: Arc::clone(&desk),
            plane,
            runner: parts.runner,
            data_dir,
            room,
            offer,
        };
        let (stage, stages) = watch::channel(Stage::Claiming);
        let end_relay = Arc::new(Notify::new());
        let relay = desk.events.clone().relay(posted, Arc::clone(&end_relay));
        let relay = Relay { task: tokio::spawn(relay), end: end_relay };
        let life = tokio::spawn(live(Arc::new(around), heartbeat, relay, stages));
        Ok(Self { desk, stage, life })
    }

    /// The random identity of this start.
    pub fn session(&self) -> palisade_core::SessionId {
        self.desk.session()
    }

    /// What happens from now on. A reader that lags far behind misses some.
    pub fn events(&self) -> broadcast::Receiver<Stamped> {
        self.desk.events.subscribe()
    }

    /// No new claims; what runs may finish, within the time that the settings give it.
    pub fn drain(&self) {
        self.advance(Stage::Draining);
    }

    /// Ends what runs and hands it back.
    pub fn hand_back(&self) {
        self.advance(Stage::HandingBack);
    }

    /// Returns when, after [`drain`](Self::drain) or [`hand_back`](Self::hand_back), all is over.
    pub async fn finished(&mut self) {
        if let Err(error) = (&mut self.life).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let further = *stage < to;
            *stage = to.max(*stage);
            further
        });
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.life.abort();
    }
}

/// The task that writes what the heartbeat's thread posts.
struct Relay {
    task: JoinHandle<()>,
    end: Arc<Notify>,
}

async fn clean_up(
    data_dir: &Arc<DataDir>,
    runner: &Arc<dyn crate::runner::Runner>,
    events: &Events,
) -> Result<(), StartError> {
    let (data_dir, runner) = (Arc::clone(data_dir), Arc::clone(runner));
    let cleaned = tokio::task::spawn_blocking(move || {
        let folder = data_dir.scratch_root();
        let processes = runner.end_leftovers(&folder).map_err(|source| StartError::Leftovers {
            folder: folder.display().to_string(),
            source,
        })?;
        Ok::<_, StartError>((processes.len(), data_dir.clear()?))
    });
    let (processes, folders) = cleaned.await.expect("it is neither cancelled nor does it panic")?;
    if processes > 0 || folders > 0 {
        events.emit(Event::Cleaned { processes, folders });
    }
    Ok(())
}

async fn live(
    around: Arc<Surroundings>,
    heartbeat: Heartbeat,
    relay: Relay,
    mut stages: watch::Receiver<Stage>,
) {
    let desk = Arc::clone(&around.desk);
    let (stop_claims, claims_stopped) = watch::channel(false);
    let claims = tokio::spawn(Claims::new(around).run(claims_stopped));
    // An error means that the worker was dropped; then this task is being ended as well.
    let _ = stages.wait_for(|stage| *stage >= Stage::Draining).await;
    desk.events.emit(Event::Draining);
    stop_claims.send_replace(true);
    if let Ok(mut attempts) = claims.await {
        finish(&desk, &mut attempts, stages).await;
    }
    heartbeat.stop().await;
    relay.end.notify_one();
    let _ = relay.task.await;
    desk.events.emit(Event::Drained);
}

/// Lets attempts finish, for as long as they may; then ends them and gives that a moment.
async fn finish(desk: &Desk, attempts: &mut JoinSet<()>, mut stages: watch::Receiver<Stage>) {
    let time_is_over = async {
        match desk.config.drain_for_ms {
            Some(ms) => sleep_ms(&*desk.timer, ms).await,
            None => std::future::pending().await,
        }
    };
    let wished = stages.wait_for(|stage| *stage >= Stage::HandingBack);
    tokio::select! {
        biased;
        () = all_done(attempts) => return,
        _ = wished => {}
        () = time_is_over => {}
    }
    desk.hand_back();
    if within_ms(&*desk.timer, HAND_BACK_MS, all_done(attempts)).await.is_none() {
        // A completion without an answer, or a render that does not die.
        attempts.shutdown().await;
    }
}

async fn all_done(attempts: &mut JoinSet<()>) {
    while let Some(ended) = attempts.join_next().await {
        note_panic(ended);
    }
}
