//! The journal as a stream of server-sent events, from any position on.

use std::{collections::VecDeque, convert::Infallible};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::HeaderMap,
};
use futures_util::stream;
use palisade_core::{Invalid, history::Event};
use palisade_store::{
    events::Batch,
    query::{JournalSpan, Query, View},
};
use tokio::sync::broadcast;

use super::workers::streamed;
use crate::{
    app::App,
    edge::Params,
    problems::{self, Rejection, Reply},
};

/// How many entries are read at once.
const READ_AT_ONCE: usize = 500;
/// The highest position: what every JSON reader keeps exact.
const POSITION_MAX: u64 = (1 << 53) - 1;

/// `GET /v1/events`: entries after `after` (a position, or `now`), or after the `Last-Event-ID`
/// with which a browser comes back; all that the journal still has when neither is given. With
/// `follow=false` it ends when it has caught up.
pub(crate) async fn stream(
    State(app): State<App>,
    mut params: Params,
    headers: HeaderMap,
) -> Reply {
    let from_now = params.take_word("after", "now");
    let after = if from_now { None } else { params.take_number("after", 0..=POSITION_MAX)? };
    let follow = params.take_flag("follow")?.unwrap_or(true);
    params.finish("after, follow")?;
    let last_seen = headers.get("last-event-id").map(|value| {
        let text = value.to_str().unwrap_or("?");
        let position = text.parse().ok().filter(|position| *position <= POSITION_MAX);
        let allowed = "must be the id of an event that was received";
        position.ok_or_else(|| Invalid::new("last-event-id", text, allowed))
    });
    if app.stopping.is_cancelled() {
        return Err(problems::stopping());
    }
    let asked = last_seen.transpose()?.or(after);
    // Before the first look at the journal: what is written between the two wakes the stream.
    let news = app.store.changes();
    let span = span(&app).await?;
    let position = match asked {
        Some(after) if after < span.pruned => {
            return Err(problems::history_gone(after, span.pruned + 1));
        }
        Some(after) => after,
        None if from_now => span.next - 1,
        None => span.pruned,
    };
    let reader = Reader { app, news, position, read: VecDeque::new(), follow, ended: false };
    Ok(streamed(Body::from_stream(stream::unfold(reader, Reader::next)), "text/event-stream"))
}

async fn span(app: &App) -> Result<JournalSpan, Rejection> {
    match app.store.query(Query::JournalSpan).await? {
        View::JournalSpan(span) => Ok(span),
        _ => unreachable!("each query is answered by its own kind"),
    }
}

/// Where a stream stands.
struct Reader {
    app: App,
    news: broadcast::Receiver<Batch>,
    position: u64,
    read: VecDeque<(u64, Event)>,
    /// Whether to wait for what comes.
    follow: bool,
    ended: bool,
}

impl Reader {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            if self.ended || self.app.stopping.is_cancelled() {
                return None;
            }
            if let Some((position, event)) = self.read.pop_front() {
                self.position = position;
                return Some((Ok(written(position, &event)), self));
            }
            if !self.read_more().await {
                return None;
            }
            if !self.read.is_empty() {
                continue;
            }
            if !self.follow {
                return None;
            }
            if let Some(ping) = self.wait().await {
                return Some((Ok(ping), self));
            }
        }
    }

    /// Reads what came since. Answers false when the store does not answer, or has forgotten what
    /// comes next: the client comes back, and is told.
    async fn read_more(&mut self) -> bool {
        let query = Query::Events { after: self.position, limit: READ_AT_ONCE };
        match self.app.store.query(query).await {
            Ok(View::Events(entries)) => {
                self.read = entries.into();
                !self.has_gap() || self.is_whole().await
            }
            Ok(_) => unreachable!("each query is answered by its own kind"),
            Err(failure) => {
                tracing::error!(%failure, "cannot read the journal");
                false
            }
        }
    }

    /// Whether positions are missing in what was read.
    fn has_gap(&self) -> bool {
        let expected = self.position + 1..;
        self.read.iter().zip(expected).any(|((position, _), expected)| *position != expected)
    }

    /// Whether nothing behind this place was forgotten.
    async fn is_whole(&self) -> bool {
        span(&self.app).await.is_ok_and(|span| span.pruned <= self.position)
    }

    /// Waits for news. Answers a comment to send when there was none for a while.
    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            () = self.app.stopping.cancelled() => None,
            news = self.news.recv() => {
                // What was missed is read from the journal like anything else.
                self.ended = matches!(news, Err(broadcast::error::RecvError::Closed));
                None
            }
            () = tokio::time::sleep(self.app.config.ping_every) => {
                Some(Bytes::from_static(b": ping\n\n"))
            }
        }
    }
}

fn written(position: u64, event: &Event) -> Bytes {
    let json = serde_json::to_value(event).expect("events always serialise");
    let name = json.get("event").and_then(serde_json::Value::as_str).unwrap_or("event");
    // JSON on one line: no line break can end the event early.
    format!("id: {position}\nevent: {name}\ndata: {json}\n\n").into()
}
