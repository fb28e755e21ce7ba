//! What goes over the wire, as JSON. Instants are ms since the Unix epoch on the store's clock;
//! spans are ms; digests are 64 hexadecimal digits; `lease` is a lease id of 32.

mod jobs;
mod locks;
mod objects;
mod recipes;
mod views;
mod webhooks;
mod workers;

pub use jobs::{
    CancelRequest, CancelResponse, CompleteRequest, CompleteResponse, FailRequest, InputWire,
    PairWire, ReleaseRequest, RequeuedResponse, RetryRequest, RetryResponse, SubmitMany,
    SubmitManyResponse, SubmitRequest, SubmitResponse, SubmitResult,
};
pub use locks::{
    AcquireRequest, AcquireResponse, LockHeldView, LockList, LockReleased, LockView,
    LockWaiterView, RenewResponse,
};
pub use objects::{MANIFEST_MEDIA_TYPE, ObjectList, ObjectView};
pub use recipes::{
    ParameterView, RecipeInputView, RecipeList, RecipeOutputView, RecipeView, ToolView,
};
pub use views::{
    AttemptView, BlobView, CompletionView, DeadLetterView, EventView, HistoryView, InputView,
    JobList, JobView, LeaseHeldView, ProgressView, PublicationView, SubmissionView, WorkerList,
    WorkerView,
};
pub use webhooks::{
    DeliveryList, DeliveryView, RotateRequest, WebhookList, WebhookRequest, WebhookView,
};
pub use workers::{
    ArtefactsView, CapabilityWire, ClaimRequest, ClaimResponse, FinishRequest, GrantWire,
    HeartbeatRequest, HeartbeatResponse, LeaseAnswer, LeaseStatus, LeaseWire, PauseWire,
    PinRequest, PinResponse, ProgressRequest, ProgressWire, ReleasedWire, SessionEvent,
};
