//! One lock, many who want it all the time: hand-overs a second, over HTTP, durable before the
//! answer; and whether each was served in the order in which it came. A hand-over is one commit, so
//! the floor is what the disk syncs a second, measured just before, in the same folder.
//!
//! `cargo run --release -p palisade-server --example contended_lock [CLIENTS] [SECONDS]`

use std::{io::Write as _, path::Path, sync::Arc};

use palisade_api::{
    Client,
    wire::{AcquireRequest, PairWire},
};
use palisade_artefacts::MemoryBlobs;
use palisade_core::{
    Number, Timestamp,
    clock::Clock,
    history::{Event, What},
    recipe::RecipeBook,
};
use palisade_server::{Server, ServerConfig, ServerParts, SystemEntropy};
use palisade_store::{
    Store,
    query::{Query, View},
    sqlite::SqliteStore,
};

/// The wall clock: this runs for seconds.
#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the clock that the store is given")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)))
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (clients, seconds) = (arguments.next().unwrap_or(32), arguments.next().unwrap_or(5));
    let folder = tempfile::tempdir().expect("a folder");
    let floor = syncs(folder.path());
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(folder.path(), Arc::new(WallClock)).expect("a store"));
    let parts = ServerParts {
        store: Arc::clone(&store),
        blobs: Arc::new(MemoryBlobs::new()),
        recipes: RecipeBook::new(),
        entropy: Arc::new(SystemEntropy),
    };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let config = ServerConfig { listen, ..ServerConfig::default() };
    let server = Server::start(config, parts).await.expect("a server");
    let until = WallClock.now().plus_ms(seconds * 1_000);
    let tasks: Vec<_> =
        (0..clients).map(|index| tokio::spawn(client(server.url(), index, until))).collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.expect("a client ends well");
    }
    let (granted, in_order) = look_at_order(&*store).await;
    report(clients, (count / seconds, floor), granted, in_order);
    server.stop().await;
}

#[expect(clippy::print_stdout, reason = "an example prints what it measured")]
fn report(clients: u64, (rate, floor): (u64, u64), granted: usize, in_order: bool) {
    println!(
        "{clients} clients, one lock: {rate} hand-overs/s (the disk syncs {floor}/s); {granted} \
         grants, in order: {in_order}"
    );
}

/// How often 4 KiB are appended and synced in a second.
fn syncs(folder: &Path) -> u64 {
    let mut file = std::fs::File::create(folder.join("floor")).expect("a file");
    let (block, until) = ([7; 4_096], WallClock.now().plus_ms(1_000));
    let mut count = 0;
    while WallClock.now() < until {
        file.write_all(&block).expect("there is room");
        file.sync_data().expect("it is synced");
        count += 1;
    }
    count
}

/// Acquires and releases until the time is over. Answers how often it held the lock.
async fn client(url: String, index: u64, until: Timestamp) -> u64 {
    let client = Client::new(&url).expect("an address");
    let mut count = 0;
    while WallClock.now() < until {
        let wish = AcquireRequest {
            holder: format!("client-{index}"),
            ttl_ms: Some(30_000),
            wait_ms: 60_000,
            request_id: Some(format!("{index}-{count}")),
        };
        let held = client.acquire_lock("door", &wish).await.expect("it is granted in the end");
        let pair = PairWire { token: held.token, lease: held.lease };
        client.release_lock("door", &pair).await.expect("its holder may");
        count += 1;
    }
    count
}

/// How often it was granted, and whether whoever came first was served first: tickets rise with
/// the time of coming.
async fn look_at_order(store: &dyn Store) -> (usize, bool) {
    let (mut after, mut tickets) = (0, Vec::<Number>::new());
    loop {
        let page = Query::Events { after, limit: 10_000 };
        let Ok(View::Events(events)) = store.query(page).await else { panic!("a journal") };
        let Some((last, _)) = events.last() else { break };
        after = *last;
        let granted = |event: &Event| match event.what {
            What::LockGranted { ticket, .. } => Some(ticket),
            _ => None,
        };
        tickets.extend(events.iter().filter_map(|(_, event)| granted(event)));
    }
    (tickets.len(), tickets.is_sorted_by(|a, b| a < b))
}
