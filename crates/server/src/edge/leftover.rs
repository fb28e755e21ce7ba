//! What a handler did not read of a body is read and thrown away, within bounds, before the
//! answer goes out: a client that is still sending would else see a broken connection in place of
//! its refusal.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
use futures_util::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// How much is thrown away at most, in bytes.
const DRAINED_BYTES_MAX: usize = 256 << 20;
/// How long throwing away may take.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may send nothing of what it still has to send.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// Runs a request, then reads on what it left of its body.
pub(crate) async fn drain_leftover(request: Request, next: Next) -> Response {
    let asks_first = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let lent = Lent(Arc::new(Mutex::new(State { body: Some(body), touched: false })));
    let owner = lent.clone();
    let mut response = next.run(Request::from_parts(parts, Body::new(lent))).await;
    let (leftover, touched) = owner.take_back();
    let Some(leftover) = leftover else { return response };
    // Who asks first has sent nothing yet, and will not once it is refused.
    let drained = (touched || !asks_first) && drain(leftover).await;
    if !drained {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn drain(body: Body) -> bool {
    let mut pieces = body.into_data_stream();
    let all = async {
        let mut drained = 0;
        loop {
            match tokio::time::timeout(SILENCE_MAX, pieces.next()).await {
                Ok(None) => return true,
                Ok(Some(Ok(piece))) => drained += piece.len(),
                Ok(Some(Err(_))) | Err(_) => return false,
            }
            if drained > DRAINED_BYTES_MAX {
                return false;
            }
        }
    };
    tokio::time::timeout(DRAIN_TIME_MAX, all).await.unwrap_or(false)
}

/// A body that its handler has on loan.
#[derive(Debug, Clone)]
struct Lent(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    body: Option<Body>,
    touched: bool,
}

impl Lent {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is left, and whether any of it was asked for.
    fn take_back(&self) -> (Option<Body>, bool) {
        self.with(|state| (state.body.take().filter(|body| !body.is_end_stream()), state.touched))
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|state| {
            state.touched = true;
            match &mut state.body {
                Some(body) => Pin::new(body).poll_frame(context),
                None => Poll::Ready(None),
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.with(|state| state.body.as_ref().is_none_or(HttpBody::is_end_stream))
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|state| state.body.as_ref().map(HttpBody::size_hint).unwrap_or_default())
    }
}
