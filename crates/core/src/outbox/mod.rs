//! Notifications: what is told to whom about a job, and how its delivery stands.
//!
//! A move of a job writes a row for each submission and each endpoint that asks for it, in the
//! transaction of the move. What is delivered is a row's body, written once and never changed; a
//! delivery's lease decides nothing but who tries next. So it is delivered at least once, always
//! the same, and the receiver drops what it has had: by the id, and by (job, submission, seq).
//!
//! Must not know: HTTP, signatures, clocks. Jitter is an argument.

mod body;
mod delivery;
mod endpoint;
mod notice;

#[cfg(test)]
mod tests;

pub use body::Progress;
pub use delivery::{
    AGE_MS_MAX, DELAYS_MS, Delivery, Fate, LastTry, Leasing, Settled, Standing, TRIES_MAX, Tried,
    again, lease, settle,
};
pub use endpoint::{
    ENDPOINTS_MAX, Endpoint, EndpointId, Previous, Secret, URL_BYTES_MAX, checked_url, create,
    rotate,
};
pub use notice::{EventId, EventType, Notice, Told, notice, progress, told};
