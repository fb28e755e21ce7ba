//! The journal as a stream.

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};

use crate::wire::EventView;

use super::{Client, ClientError, foreign, origin};

/// Where a stream of the journal begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsFrom {
    /// With the oldest entry from which the journal is whole.
    Beginning,
    /// With the next entry that is written.
    Now,
    /// With the entry after this position. Refused `history_gone` if it was forgotten.
    After(u64),
}

impl Client {
    /// Opens the journal's stream. With `follow` it has no end of its own: what ends it is a
    /// server that stops or a broken connection, and the caller comes back with the last position.
    pub async fn events(&self, from: EventsFrom, follow: bool) -> Result<EventStream, ClientError> {
        let after = match from {
            EventsFrom::Beginning => String::new(),
            EventsFrom::Now => "&after=now".to_owned(),
            EventsFrom::After(position) => format!("&after={position}"),
        };
        let url = format!("{}/v1/events?follow={follow}{after}", self.url());
        let response = self.send(self.http.get(url)).await?;
        let origin = origin(response.url());
        let chunks = response.bytes_stream().boxed();
        Ok(EventStream { client: self.clone(), origin, chunks, rest: Vec::new() })
    }
}

/// The journal's stream, one entry after another.
pub struct EventStream {
    client: Client,
    /// Who sends it, for errors.
    origin: String,
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    rest: Vec<u8>,
}

/// Longest event, in bytes.
const EVENT_BYTES_MAX: usize = 4 << 20;

impl EventStream {
    /// The next entry. None: the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<EventView>, ClientError> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<_> = self.rest.drain(..end + 2).collect();
                match entry(&block) {
                    Block::Entry(entry) => return Ok(Some(*entry)),
                    Block::Silence => continue,
                    Block::Foreign => return Err(foreign(self.origin.clone(), 200, &block)),
                }
            }
            if self.rest.len() > EVENT_BYTES_MAX {
                return Err(foreign(self.origin.clone(), 200, &self.rest));
            }
            match self.chunks.next().await {
                None => return Ok(None),
                Some(chunk) => {
                    let chunk = chunk.map_err(|error| self.client.broken(error))?;
                    self.rest.extend_from_slice(&chunk);
                }
            }
        }
    }
}

enum Block {
    Entry(Box<EventView>),
    /// A comment, which keeps the connection alive.
    Silence,
    Foreign,
}

fn entry(block: &[u8]) -> Block {
    let Ok(text) = std::str::from_utf8(block) else { return Block::Foreign };
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let (id, data) = (field("id: "), field("data: "));
    if id.is_none() && data.is_none() {
        return Block::Silence;
    }
    let position = id.and_then(|id| id.parse().ok());
    let event = data.and_then(|data| serde_json::from_str(data).ok());
    match (position, event) {
        (Some(position), Some(event)) => Block::Entry(Box::new(EventView { position, event })),
        _ => Block::Foreign,
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EventStream").field("client", &self.client).finish_non_exhaustive()
    }
}
