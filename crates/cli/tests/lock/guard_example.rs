//! Writes a report, by whoever holds the lock.

use std::sync::Arc;

use palisade_api::{
    Client, ClientError, LockGuard,
    client::ObjectWrite,
    guard::{Edge, LockState, LockWish},
};
use palisade_worker::{clock::BoottimeClock, entropy::OsEntropy};

/// Waits for the lock, works under it, releases it. Answers whether the work was done.
pub(crate) async fn report(server: &str) -> Result<bool, ClientError> {
    let client = Client::new(server)?;
    let wish = LockWish {
        name: "reports/newest".parse().expect("a name"),
        holder: "reporter".parse().expect("a name"),
        ttl_ms: 30_000,
        wait_ms: 60_000,
        doubt_grace_ms: 60_000,
    };
    let edge = Edge { clock: Arc::new(BoottimeClock), entropy: Arc::new(OsEntropy) };
    let guard = LockGuard::acquire(&client, wish, edge).await?;
    let lost = guard.lost();
    tokio::select! {
        biased;
        // The work is dropped where it stands.
        () = lost.cancelled() => Ok(false),
        done = work(&client, &guard) => {
            done?;
            guard.release().await?;
            Ok(true)
        }
    }
}

async fn work(client: &Client, guard: &LockGuard) -> Result<(), ClientError> {
    let report = "the report of a program";
    // In doubt, nothing is begun until the lock is held again.
    let held = |state: &LockState| *state == LockState::Held;
    let mut state = guard.state();
    let _error = state.wait_for(held).await.map(drop);
    let bytes = futures_util::stream::iter([Ok(report.into())]);
    let key = "reports/newest.txt".parse().expect("a key");
    // A pause may come just here. The pair is what protects.
    let write = ObjectWrite::of(guard.pair());
    client.put_object(&key, "text/plain", bytes, &write).await.map(drop)
}
