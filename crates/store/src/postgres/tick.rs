//! What time does, once a second: the clock is recorded, spent jobs are given up, lapsed locks go to
//! those who wait; and this server says that it is there.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::command::Command;

use super::{engine::Engine, records::session, trouble::Trouble, values::instant};

const EVERY: Duration = Duration::from_secs(1);
/// Ticks between two clearings of what was heard.
const FORGET_EVERY: u32 = 60;
/// A server that says nothing for so long is gone.
const PRESENT: &str = "INSERT INTO servers (id, seen_at_ms) VALUES ($1, $2) \
    ON CONFLICT (id) DO UPDATE SET seen_at_ms = excluded.seen_at_ms";
const OTHERS: &str = "SELECT EXISTS (SELECT 1 FROM servers WHERE id <> $1 \
    AND seen_at_ms > $2::bigint - 5000)";
const FORGET_SERVERS: &str = "DELETE FROM servers WHERE seen_at_ms < $1::bigint - 60000";

/// Ticks for as long as the process runs. `id` is this server's among the others.
pub(super) async fn keep_time(engine: Arc<Engine>, id: String) {
    let mut ticks: u32 = 0;
    loop {
        // Time that is made by hand passes by hand: a tick of our own would come between two steps
        // of whoever makes it.
        if engine.clock.is_databases() {
            // What went wrong was told by the batch; the next tick tries again.
            drop(engine.apply_batch(vec![Command::Tick]).await);
        }
        if let Err(trouble) = be_present(&engine, &id, ticks).await {
            tracing::warn!(?trouble, "the other servers cannot be looked at now");
            if trouble.is_read_only() {
                engine.look_elsewhere();
            }
        }
        ticks = ticks.wrapping_add(1);
        tokio::time::sleep(EVERY).await;
    }
}

async fn be_present(engine: &Engine, id: &str, ticks: u32) -> Result<(), Trouble> {
    let client = engine.reader().await?;
    let now = instant(engine.clock.now());
    client.execute(PRESENT, &[&id, &now]).await.map_err(Trouble::before_commit)?;
    let row = client.query_one(OTHERS, &[&id, &now]).await.map_err(Trouble::before_commit)?;
    engine.news.others.store(row.get(0), Ordering::Relaxed);
    if ticks.is_multiple_of(FORGET_EVERY) {
        client.execute(FORGET_SERVERS, &[&now]).await.map_err(Trouble::before_commit)?;
        client.execute(session::FORGET, &[&now]).await.map_err(Trouble::before_commit)?;
    }
    Ok(())
}
