//! The rules of Palisade, pure: no IO, no clock, no randomness.
//!
//! Everything that decides is here, as functions of (record, event, now) to a new record and its
//! history, or a refusal. Stores load a record, call the rule, and write what it answers; the
//! simulator and the worker share the same [`keeper`]. *A lock failure costs money, never
//! correctness*: nothing in this crate trusts that a lease was kept.
//!
//! Must not know: IO, tokio, clocks, randomness, SQL, HTTP. Time and randomness are arguments.

pub mod blob;
pub mod causes;
pub mod clock;
pub mod digest;
pub mod history;
pub mod ids;
pub mod invalid;
pub mod job;
pub mod keeper;
pub mod lease;
pub mod limits;
pub mod lock;
pub mod manifest;
pub mod names;
pub mod number;
pub mod object;
pub mod outbox;
pub mod recipe;
pub mod refusal;
pub mod retention;
pub mod retry;
pub mod spec;
pub mod time;
pub mod transition;

pub use causes::with_causes;
pub use digest::Digest;
pub use ids::{JobId, LeaseId, RequestId, SessionId};
pub use invalid::Invalid;
pub use names::{
    HolderName, InputName, LockName, ObjectKey, OutputName, ParameterName, RecipeName, Tenant,
    WorkerName,
};
pub use number::Number;
pub use refusal::Refusal;
pub use retention::Retention;
pub use time::Timestamp;
