//! Lease locks: acquire, renew, release, look.

use std::time::Duration;

use reqwest::Method;

use crate::wire::{
    AcquireRequest, AcquireResponse, HistoryView, LockList, LockReleased, LockView, PairWire,
    RenewResponse,
};

use super::{CALL_TIMEOUT, Client, ClientError, Twice, objects::page};

/// How long the server may look through its journal.
const JOURNAL_TIMEOUT: Duration = Duration::from_mins(5);

impl Client {
    /// Asks for a lock; waits for `wait_ms` at the server. With a `request_id` it may be asked
    /// again after a lost answer, and gets the same grant.
    pub async fn acquire_lock(
        &self,
        name: &str,
        wish: &AcquireRequest,
    ) -> Result<AcquireResponse, ClientError> {
        let timeout = Duration::from_millis(wish.wait_ms) + CALL_TIMEOUT;
        let path = format!("/locks/{name}/acquire");
        let request = self.request(Method::POST, &path).timeout(timeout).json(wish);
        self.json_as(request, Twice::by(wish.request_id.as_ref())).await
    }

    /// Renews a lock. `timeout` is short: a late answer is worth little.
    pub async fn renew_lock(
        &self,
        name: &str,
        pair: &PairWire,
        timeout: Duration,
    ) -> Result<RenewResponse, ClientError> {
        let path = format!("/locks/{name}/renew");
        self.json(self.request(Method::POST, &path).timeout(timeout).json(pair)).await
    }

    /// Releases a lock. Repeated, it is answered the same.
    pub async fn release_lock(
        &self,
        name: &str,
        pair: &PairWire,
    ) -> Result<LockReleased, ClientError> {
        self.post_again(&format!("/locks/{name}/release"), pair).await
    }

    /// One lock.
    pub async fn lock(&self, name: &str) -> Result<LockView, ClientError> {
        self.get(&format!("/locks/{name}")).await
    }

    /// What happened to a lock, oldest first: the newest `limit` entries. The server looks through
    /// its journal for it.
    pub async fn lock_history(&self, name: &str, limit: u32) -> Result<HistoryView, ClientError> {
        let path = format!("/locks/{name}?history=true&limit={limit}");
        self.json(self.request(Method::GET, &path).timeout(JOURNAL_TIMEOUT)).await
    }

    /// Locks by name. `query` is the query string (`prefix=exports/&limit=10`).
    pub async fn locks(&self, query: &str) -> Result<LockList, ClientError> {
        self.get(&format!("/locks?{query}")).await
    }

    /// Locks by name: a page that begins after `cursor`.
    pub async fn locks_page(
        &self,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<LockList, ClientError> {
        self.locks(&page(prefix, cursor, limit)).await
    }
}
