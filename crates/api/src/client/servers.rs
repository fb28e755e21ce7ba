//! Which of several servers is asked. They serve one store, and none of them is special: whoever
//! does not answer is left, for whichever comes next.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::{Request, Url};

use super::ClientError;

/// The addresses of the servers of one store, and the one that is asked now. Shared by all clones
/// of a client: what one call learns, the next one knows.
#[derive(Debug)]
pub(super) struct Servers {
    all: Vec<String>,
    /// Rises for ever; modulo the count it is the place in `all`.
    turn: AtomicUsize,
}

impl Servers {
    /// Addresses separated by commas, asked in this order.
    pub(super) fn parse(list: &str) -> Result<Self, ClientError> {
        let address = |url: &str| ClientError::Address { url: url.to_owned() };
        let mut all = Vec::new();
        for url in list.split(',') {
            let parsed = Url::parse(url.trim()).map_err(|_| address(url))?;
            if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
                return Err(address(url));
            }
            // As requests have it: a host in small letters, no port that goes without saying.
            all.push(parsed.as_str().trim_end_matches('/').to_owned());
        }
        Ok(Self { all, turn: AtomicUsize::new(0) })
    }

    /// How many there are; at least one.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// The turn: who is asked now, and how often that has changed.
    pub(super) fn turn(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    /// The address of the server that is asked now.
    pub(super) fn now(&self) -> &str {
        &self.all[self.turn() % self.all.len()]
    }

    /// Goes on to the next server, unless somebody else has left the one of `turn` already: calls
    /// that fail together must not chase each other around.
    pub(super) fn leave(&self, turn: usize) {
        let next = turn.wrapping_add(1);
        let _ = self.turn.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Points a request that was made for one of the servers at the one that is asked now.
    pub(super) fn point(&self, request: &mut Request) {
        let url = request.url().as_str();
        let Some(rest) = self.all.iter().find_map(|base| {
            // A base that is the beginning of another one's name is not its server.
            url.strip_prefix(base.as_str()).filter(|rest| rest.starts_with('/'))
        }) else {
            return;
        };
        if let Ok(moved) = Url::parse(&format!("{}{rest}", self.now())) {
            *request.url_mut() = moved;
        }
    }
}
