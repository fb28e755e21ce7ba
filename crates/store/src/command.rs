//! What a store can be asked to do, and what it answers.
//!
//! A command carries everything that its rule needs from outside, randomness included, so that
//! the same commands on the same records always come to the same.

mod attempts;
mod blobs;
mod collect;
mod effects;
mod outbox;
mod retention;

use palisade_core::{
    JobId, Number, RequestId, SessionId, Timestamp,
    history::Joined,
    job::{JobState, Requeued},
    lease::Lease,
    lock::Acquired,
    object::Written,
    outbox::{Delivery, Endpoint},
    transition::{Completed, Which, Wish},
};
use serde::{Deserialize, Serialize};

pub use attempts::{
    Beats, Capability, Claim, Claimed, Complete, Fail, Grant, HandBack, Heartbeat, Release,
};
pub use blobs::{BeginBlob, BlobPlace, FinishBlob, Pin};
pub use collect::{Collect, ForgetBlobs, MarkCleared, Places, ReleaseJobs, Released};
pub use effects::{
    AcquireLock, DeleteObject, LeaveLock, Projected, Publish, PutObject, RaiseObject, ReleaseLock,
    RenewLock,
};
pub use outbox::{
    CreateEndpoint, DeleteEndpoint, LeaseDeliveries, LeasedDeliveries, ProgressNotices, Redeliver,
    RotateSecret, SettleDelivery, Settlement, TellProgress, ToDeliver,
};
pub use retention::{Forget, Forgotten};

/// One request to a store.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A wish for a rendering.
    Submit(Submit),
    /// A worker asks for jobs.
    Claim(Claim),
    /// A worker renews its leases.
    Heartbeat(Heartbeat),
    /// A worker commits an attempt.
    Complete(Complete),
    /// A worker reports a failed attempt.
    Fail(Fail),
    /// A worker hands an attempt back.
    Release(Release),
    /// See [`HandBack`].
    HandBack(HandBack),
    /// Somebody withdraws a submission.
    Cancel(Cancel),
    /// Somebody wants another try.
    Retry(Retry),
    /// Somebody wants to bring a blob.
    BeginBlob(BeginBlob),
    /// A blob's bytes are durable at their place.
    FinishBlob(FinishBlob),
    /// A worker's session ended and did not come back.
    Suspect(Suspect),
    /// Somebody asks for a lock.
    AcquireLock(AcquireLock),
    /// A holder renews a lock.
    RenewLock(RenewLock),
    /// A holder releases a lock; the next waiter is granted it in the same transaction.
    ReleaseLock(ReleaseLock),
    /// A waiter has gone. What it was granted meanwhile is ended.
    LeaveLock(LeaveLock),
    /// A holder points a fenced object at bytes.
    PutObject(PutObject),
    /// A holder deletes a fenced object.
    DeleteObject(DeleteObject),
    /// A holder raises a fenced object's fence without writing.
    RaiseObject(RaiseObject),
    /// The collector looks at blobs that seem unkept.
    Collect(Collect),
    /// The collector has cleared places.
    MarkCleared(MarkCleared),
    /// The collector has cleared places for the last time.
    ForgetBlobs(ForgetBlobs),
    /// Jobs whose time is over.
    ReleaseJobs(ReleaseJobs),
    /// Somebody wants to be told of what becomes of jobs.
    CreateEndpoint(CreateEndpoint),
    /// An endpoint signs with another secret.
    RotateSecret(RotateSecret),
    /// Nobody is told at an endpoint any more.
    DeleteEndpoint(DeleteEndpoint),
    /// A deliverer asks for notifications that are due.
    LeaseDeliveries(LeaseDeliveries),
    /// A deliverer tells what its try came to.
    SettleDelivery(SettleDelivery),
    /// Somebody wants a notification delivered again.
    Redeliver(Redeliver),
    /// Renders came further, and somebody asked to be told.
    TellProgress(TellProgress),
    /// Forget some of what is old.
    Forget(Forget),
    /// Somebody carries out what is due to be published.
    Publish(Publish),
    /// Time passes: record the clock, give up what was lost too often, carry out what is due.
    Tick,
}

/// What a command came to. Each variant answers the command of the same name.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is documented at its command")]
pub enum Answer {
    Submit(Submitted),
    Claim(Claimed),
    Heartbeat(Beats),
    Complete(Completed),
    Fail(Requeued),
    Release(Requeued),
    /// Whether it was released.
    HandBack(bool),
    Cancel(CancelAnswer),
    Retry(RetryAnswer),
    BeginBlob(BlobPlace),
    FinishBlob(BlobPlace),
    Suspect(Suspected),
    AcquireLock(Acquired),
    RenewLock(Lease),
    ReleaseLock(()),
    LeaveLock(()),
    PutObject(Written),
    DeleteObject(Written),
    RaiseObject(Written),
    Collect(Places),
    MarkCleared(Places),
    ForgetBlobs(Places),
    ReleaseJobs(Released),
    CreateEndpoint(Endpoint),
    RotateSecret(Endpoint),
    DeleteEndpoint(()),
    LeaseDeliveries(LeasedDeliveries),
    SettleDelivery(Settlement),
    Redeliver(Delivery),
    TellProgress(ProgressNotices),
    Forget(Forgotten),
    Publish(Projected),
    Tick(Ticked),
}

/// A typed command: ties it to its answer.
pub trait Verb: Into<Command> + Send {
    /// What it is answered.
    type Answer: Send;
    /// Takes the answer out of the common type. None: the store broke its contract.
    fn answer(answer: Answer) -> Option<Self::Answer>;
}

macro_rules! verbs {
    ($($verb:ident => $answer:ty),* $(,)?) => {$(
        impl From<$verb> for Command {
            fn from(verb: $verb) -> Self {
                Self::$verb(verb)
            }
        }

        impl Verb for $verb {
            type Answer = $answer;

            fn answer(answer: Answer) -> Option<$answer> {
                match answer {
                    Answer::$verb(answer) => Some(answer),
                    _ => None,
                }
            }
        }
    )*};
}

verbs! {
    Submit => Submitted,
    Claim => Claimed,
    Heartbeat => Beats,
    Complete => Completed,
    Fail => Requeued,
    Release => Requeued,
    HandBack => bool,
    Cancel => CancelAnswer,
    Retry => RetryAnswer,
    BeginBlob => BlobPlace,
    FinishBlob => BlobPlace,
    Suspect => Suspected,
    AcquireLock => Acquired,
    RenewLock => Lease,
    ReleaseLock => (),
    LeaveLock => (),
    PutObject => Written,
    DeleteObject => Written,
    RaiseObject => Written,
    Collect => Places,
    MarkCleared => Places,
    ForgetBlobs => Places,
    ReleaseJobs => Released,
    CreateEndpoint => Endpoint,
    RotateSecret => Endpoint,
    DeleteEndpoint => (),
    LeaseDeliveries => LeasedDeliveries,
    SettleDelivery => Settlement,
    Redeliver => Delivery,
    TellProgress => ProgressNotices,
    Forget => Forgotten,
    Publish => Projected,
}

/// A wish, and the id under which it gets the same answer when asked again.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    /// What is wanted.
    pub wish: Wish,
    /// Within the tenant. Asked again with it, the first answer is given again.
    pub request_id: Option<RequestId>,
}

/// Where a submission went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The job.
    pub job: JobId,
    /// The submission's own number.
    pub submission: Number,
    /// How it came to the job.
    pub how: Joined,
}

/// Somebody withdraws submissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The job.
    pub job: JobId,
    /// Which.
    pub which: Which,
    /// Asked again with it, nothing is done a second time.
    pub request_id: Option<RequestId>,
}

/// What a cancel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// How many submissions it withdrew.
    pub withdrawn: usize,
    /// The job's state afterwards.
    pub state: JobState,
}

/// Somebody wants another try of a job that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The job.
    pub job: JobId,
    /// The submission to revive.
    pub submission: Option<Number>,
    /// Asked again with it, nothing is done a second time.
    pub request_id: Option<RequestId>,
}

/// What a retry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAnswer {
    /// The job's state afterwards.
    pub state: JobState,
}

/// A worker's session ended and did not come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The session.
    pub session: SessionId,
    /// When its end was noticed: leases renewed since are left alone.
    pub seen_at: Timestamp,
}

/// What a suspicion came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspected {
    /// Leases whose deadline was brought forward.
    pub leases: Vec<(JobId, Number)>,
}

/// What a tick came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticked {
    /// Jobs that were given up.
    pub given_up: Vec<JobId>,
}
