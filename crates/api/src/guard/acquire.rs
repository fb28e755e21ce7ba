//! Asking for a lock until it is granted, refused, or the wait is over.

use std::time::Duration;

use palisade_core::{Timestamp, lease::Pair, limits};

use crate::{
    Client, ClientError,
    wire::{AcquireRequest, AcquireResponse},
};

use super::{Edge, LockWish};

/// A request whose answer was lost may have been granted; for this long it is asked again even by
/// who would not wait, so that the grant is not stranded. In ms.
const RESOLVE_MS: u64 = 10_000;
/// The first wait before a request is asked again, in ms; doubled each time.
const AGAIN_MS_FIRST: u64 = 100;
/// The longest such wait, in ms.
const AGAIN_MS_MAX: u64 = 3_000;

/// A grant, and the instant just before it was asked for.
pub(super) struct Granted {
    pub(super) pair: Pair,
    pub(super) ttl_ms: u64,
    pub(super) waited_ms: u64,
    pub(super) sent_at: Timestamp,
}

/// What an error asks for.
enum Next {
    GiveUp,
    /// The same request again.
    Again,
    /// A new request: the old one's grant has ended meanwhile.
    Anew,
}

pub(super) async fn acquire(
    client: &Client,
    wish: &LockWish,
    edge: &Edge,
) -> Result<Granted, ClientError> {
    let began = edge.clock.now();
    let over = began.plus_ms(wish.wait_ms);
    let mut request_id = fresh_id(edge);
    let mut tries = 0;
    loop {
        let sent_at = edge.clock.now();
        let asked = AcquireRequest {
            holder: wish.holder.to_string(),
            ttl_ms: Some(wish.ttl_ms),
            wait_ms: over.since_ms(sent_at).min(limits::LOCK_WAIT_MS_MAX),
            request_id: Some(request_id.clone()),
        };
        let error = match client.acquire_lock(wish.name.as_str(), &asked).await {
            Ok(response) => match granted(&response, sent_at) {
                Some(granted) => return Ok(granted),
                None => return Err(foreign(client, &response)),
            },
            Err(error) => error,
        };
        let now = edge.clock.now();
        match next(&error, now < over, now < began.plus_ms(RESOLVE_MS)) {
            Next::GiveUp => return Err(error),
            Next::Again => {}
            Next::Anew => request_id = fresh_id(edge),
        }
        let pause_ms = (AGAIN_MS_FIRST << tries.min(16)).min(AGAIN_MS_MAX);
        tries += 1;
        let pause_ms = pause_ms / 2 + chance(edge) % (pause_ms / 2 + 1);
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
}

fn next(error: &ClientError, waits: bool, resolves: bool) -> Next {
    match error {
        // Its wait was longer than one request may take.
        _ if error.code() == Some("held") => {
            if waits {
                Next::Again
            } else {
                Next::GiveUp
            }
        }
        _ if error.code() == Some("lease_lost") => {
            if waits || resolves {
                Next::Anew
            } else {
                Next::GiveUp
            }
        }
        // Who may not is not let in by asking again.
        ClientError::Refused(problem) if matches!(problem.status, 401 | 403) => Next::GiveUp,
        // The outcome is not known, and may be a grant.
        ClientError::Unknown { .. } | ClientError::Foreign { .. } if waits || resolves => {
            Next::Again
        }
        _ if error.code() == Some("unknown") && (waits || resolves) => Next::Again,
        _ if error.is_unconfirmed() && waits => Next::Again,
        _ => Next::GiveUp,
    }
}

fn granted(response: &AcquireResponse, sent_at: Timestamp) -> Option<Granted> {
    let token = palisade_core::Number::new(response.token).ok()?;
    let pair = Pair { token, lease_id: response.lease.parse().ok()? };
    let (ttl_ms, waited_ms) = (response.ttl_ms, response.waited_ms);
    Some(Granted { pair, ttl_ms, waited_ms, sent_at })
}

fn foreign(client: &Client, response: &AcquireResponse) -> ClientError {
    let body = format!("a grant with the token {}", response.token);
    ClientError::Foreign { url: client.url().to_owned(), status: 200, body }
}

fn fresh_id(edge: &Edge) -> String {
    format!("{:032x}", edge.entropy.next_u128())
}

/// 64 random bits.
pub(super) fn chance(edge: &Edge) -> u64 {
    let bits = edge.entropy.next_u128();
    u64::try_from(bits & u128::from(u64::MAX)).expect("masked to 64 bits")
}
