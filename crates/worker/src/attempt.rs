//! One attempt's life: inputs fetched, rendered, outputs uploaded, committed; or reported, or
//! thrown away. Whatever becomes of it, nothing of it is left on the disk.

mod commit;
mod effects;
mod inputs;
mod outputs;
mod rendering;

use std::sync::Arc;

use palisade_api::{Problem, wire::CompleteResponse};
use palisade_core::{
    Number,
    job::{Failure, FailureKind},
    keeper::AbortReason,
};

use crate::{
    assignment::Assignment,
    control_plane::ControlPlane,
    data_dir::{AttemptFolders, DataDir},
    desk::Desk,
    events::{AttemptEvent, Event, What},
    offer::Offer,
    room::{NoRoom, Reserved, Room},
    runner::Runner,
    switch::{End, Switch},
};

/// What all attempts of a worker share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) desk: Arc<Desk>,
    pub(crate) plane: Arc<dyn ControlPlane>,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) data_dir: Arc<DataDir>,
    pub(crate) room: Arc<Room>,
    pub(crate) offer: Offer,
}

/// Why an attempt came to no completion.
#[derive(Debug)]
enum Stop {
    /// The keeper or the operator ended it.
    Ended(End),
    /// The server refused one of its effects: it was replaced.
    Refused { verb: &'static str, problem: Problem },
    /// It failed, which is to be reported.
    Failed(Failure),
    /// It does not fit on the disk now.
    NoRoom(NoRoom),
}

/// One attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    around: Arc<Surroundings>,
    assignment: Assignment,
    switch: Arc<Switch>,
    lease: LeaseGuard,
}

impl Attempt {
    /// Of a grant that the desk keeps already.
    pub(crate) fn new(
        around: Arc<Surroundings>,
        assignment: Assignment,
        switch: Arc<Switch>,
    ) -> Self {
        let token = assignment.pair.token;
        let lease = LeaseGuard { desk: Arc::clone(&around.desk), token, kept: true };
        Self { around, assignment, switch, lease }
    }

    /// Lives it.
    pub(crate) async fn run(mut self) {
        match self.work().await {
            Ok(response) => {
                self.lease.let_go();
                self.emit(What::Completed { manifest_differs: response.manifest_differs });
            }
            Err(Stop::Refused { verb, problem }) => self.refused(verb, problem),
            Err(Stop::Failed(failure)) => self.fail(failure).await,
            Err(Stop::Ended(End::Aborted { reason, detail })) => self.aborted(reason, detail),
            Err(Stop::Ended(End::HandedBack)) => {
                self.release("the worker stops".to_owned()).await;
            }
            Err(Stop::NoRoom(no_room)) => {
                let NoRoom { needed_bytes, free_bytes } = no_room;
                let now = self.around.desk.timer.now();
                self.around.offer.set_aside(&self.assignment.recipe.name, needed_bytes, now);
                let why = format!("it needs {needed_bytes} bytes of disk, {free_bytes} are free");
                self.release(why).await;
            }
        }
    }

    /// All of it, with its folders around it.
    async fn work(&self) -> Result<CompleteResponse, Stop> {
        let (folders, reserved) = self.make_room().await?;
        let result = self.work_in(&folders).await;
        // Gone before anything is reported: a report may take long.
        blocking(move || drop((folders, reserved))).await?;
        result
    }

    async fn work_in(&self, folders: &AttemptFolders) -> Result<CompleteResponse, Stop> {
        let inputs = self.fetch_inputs(folders).await?;
        let rendered = self.render(folders, inputs).await?;
        self.commit(rendered).await
    }

    async fn make_room(&self) -> Result<(AttemptFolders, Reserved), Stop> {
        let (job, token) = (self.assignment.job, self.token());
        let needed_bytes = self.assignment.expected_bytes();
        let around = Arc::clone(&self.around);
        let made = blocking(move || {
            let folders = around.data_dir.attempt(job, token)?;
            let list = vec![folders.scratch.clone(), folders.inputs.clone()];
            let reserved = around.room.reserve(token, needed_bytes, list)?;
            Ok::<_, std::io::Error>((folders, reserved))
        });
        let (folders, reserved) =
            made.await?.map_err(|error| io_failure("the scratch folder cannot be made", &error))?;
        Ok((folders, reserved.map_err(Stop::NoRoom)?))
    }

    fn refused(&mut self, verb: &'static str, problem: Problem) {
        self.lease.let_go();
        self.emit(What::Refused { verb, code: problem.code, message: problem.detail });
    }

    fn aborted(&mut self, reason: AbortReason, detail: Option<String>) {
        self.emit(What::Aborted { reason: abort_word(reason), detail });
    }

    fn token(&self) -> Number {
        self.assignment.pair.token
    }

    fn emit(&self, what: What) {
        let (job, token) = (self.assignment.job, self.token());
        self.around.desk.events.emit(Event::Attempt(AttemptEvent { what, job, token }));
    }
}

/// Keeps the lease for as long as its attempt lives: an attempt that ends in a panic, or is
/// dropped, must not be renewed for ever.
#[derive(Debug)]
struct LeaseGuard {
    desk: Arc<Desk>,
    token: Number,
    kept: bool,
}

impl LeaseGuard {
    /// The server knows that it is over.
    fn let_go(&mut self) {
        self.kept = false;
        self.desk.finished(self.token);
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if self.kept {
            self.desk.give_up(self.token);
        }
    }
}

const fn abort_word(reason: AbortReason) -> &'static str {
    match reason {
        AbortReason::Lost => "lost",
        AbortReason::Cancelled => "cancelled",
        AbortReason::UnknownToken => "unknown_token",
        AbortReason::DoubtGraceOver => "doubt_grace_over",
    }
}

/// Runs what blocks where that is allowed.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| failure("worker_fault", format!("a task of the worker ended: {error}")))
}

/// A failure after which another try can help.
fn failure(reason: &str, message: String) -> Stop {
    let kind = FailureKind::Retryable;
    Stop::Failed(Failure { reason: reason.to_owned(), message, kind })
}

/// A failure of the worker's own file system.
fn io_failure(what: &str, error: &std::io::Error) -> Stop {
    let reason = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "disk_full",
        _ => "worker_io",
    };
    failure(reason, format!("{what}: {error}"))
}
