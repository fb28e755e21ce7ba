//! Random commands on the reference and on PostgreSQL: every answer, event and view is the same,
//! with gaps, restarts of the server and crashes of the database in between.
//!
//! The numbers that PostgreSQL draws are handed to the reference: a batch that looks twice leaves
//! numbers out, which nobody minds.

use std::sync::Arc;

use palisade_core::{
    Timestamp,
    history::{Event, What},
    lock::Lock,
};

use crate::{
    command::Command,
    conformance::ManualClock,
    memory::MemoryEngine,
    postgres::{GAP_MS, engine::Engine, open, records::job},
    query::View,
    sqlite::tests::comparison::{
        generator::{Generator, Seen},
        queries,
    },
};

use super::cluster::Cluster;

const STEPS: usize = 250;
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);

struct Twins<'a> {
    seed: u64,
    cluster: &'a Cluster,
    database: String,
    clock: Arc<ManualClock>,
    postgres: Engine,
    memory: MemoryEngine,
    now: Timestamp,
    served_at: Timestamp,
    published: usize,
}

impl<'a> Twins<'a> {
    async fn new(seed: u64, cluster: &'a Cluster) -> Self {
        let clock = Arc::new(ManualClock::at(BEGINNING));
        let database = cluster.database().await;
        let postgres = engine(cluster, &database, &clock).await;
        let memory = MemoryEngine::new(BEGINNING);
        let (now, served_at) = (BEGINNING, BEGINNING);
        Self { seed, cluster, database, clock, postgres, memory, now, served_at, published: 0 }
    }

    fn advance(&mut self, ms: u64) {
        self.clock.advance_ms(ms);
        self.now = self.now.plus_ms(ms);
    }

    /// Lets time pass; now and then nobody serves meanwhile, or the database crashes.
    async fn pass(&mut self, generator: &mut Generator) {
        match generator.below(40) {
            0 => {
                self.advance(generator.below(60_000));
                // What a crash leaves of unlogged tables, and another start of the server.
                let crash = "TRUNCATE leases, sessions, pauses, lock_waiters, servers; \
                             UPDATE meta SET started = 'before the crash'";
                self.cluster.sql(&self.database, crash).await;
                self.postgres = engine(self.cluster, &self.database, &self.clock).await;
                self.memory.start(self.now);
            }
            1 => {
                self.advance(GAP_MS + 1 + generator.below(60_000));
                self.memory.wake(self.served_at, self.now);
            }
            // Another server: nothing that counts was in the memory of this one.
            2 => self.postgres = engine(self.cluster, &self.database, &self.clock).await,
            _ => self.advance(generator.below(1_400)),
        }
    }

    async fn step(&mut self, generator: &mut Generator, step: usize) {
        self.pass(generator).await;
        let mut commands = generator.commands(self.now);
        commands.push(Command::Tick);
        let (seed, now) = (self.seed, self.now);
        let batch = self.postgres.apply_batch(commands.clone()).await;
        self.served_at = now;
        // A batch that had to be run again has gaps between its numbers.
        self.memory.draw_these(batch.drawn.iter().copied());
        for (command, answer) in commands.into_iter().zip(&batch.answers) {
            let expected = self.memory.apply(command.clone(), now);
            assert_eq!(answer, &expected, "seed {seed}, step {step}: {command:?}");
            generator.learn(&command, answer);
        }
        assert_eq!(self.memory.undrawn(), 0, "seed {seed}, step {step}");
        let events = self.memory.take_announcements();
        let told = |events: &[Event]| events.iter().map(without_renewal).collect::<Vec<_>>();
        assert_eq!(told(&batch.events), told(&events), "seed {seed}, step {step}");
        // Ticks carry out most of them.
        let published = |event: &&Event| matches!(event.what, What::Published { .. });
        self.published += events.iter().filter(published).count();
    }

    async fn compare_views(&mut self, generator: &Generator, step: usize) {
        let seed = self.seed;
        for query in queries(generator, self.now) {
            let expected = without_renewals(self.memory.query(&query));
            let shown = without_renewals(self.postgres.query(&query).await.unwrap());
            assert_eq!(shown, expected, "seed {seed}, step {step}: {query:?}");
        }
    }

    /// What is searched for says the same as the record beside it.
    async fn compare_columns(&self) {
        let client = self.postgres.reader().await.unwrap();
        let sql = "SELECT id, version, record, state, fence, run_at_ms FROM jobs";
        for row in client.query(sql, &[]).await.unwrap() {
            let (record, _) = job::decode(&row).unwrap();
            let columns: (i64, String, i64, i64) = (row.get(0), row.get(3), row.get(4), row.get(5));
            let (fence, run_at) = (record.fence.get().cast_signed(), record.run_at.0.cast_signed());
            let state = record.state.as_str().to_owned();
            assert_eq!(columns, (job::id(record.id), state, fence, run_at));
        }
    }
}

/// A lock's renewals are logged here with its row, and so outlive a crash after which the reference
/// knows of the first in each life alone. That is shown, and decides nothing.
fn without_renewals(view: View) -> View {
    let forget = |mut lock: Lock| {
        if let Some(held) = &mut lock.holding {
            held.lease.renewed_at = Timestamp(0);
        }
        lock
    };
    match view {
        View::Lock(lock) => View::Lock(lock.map(|lock| Box::new(forget(*lock)))),
        View::Locks(locks) => View::Locks(locks.into_iter().map(forget).collect()),
        View::Events(entries) => View::Events(
            entries.iter().map(|(position, event)| (*position, without_renewal(event))).collect(),
        ),
        other => other,
    }
}

/// The same of the entry that tells how a lock's lease ended.
fn without_renewal(event: &Event) -> Event {
    let mut event = event.clone();
    if let What::LockClosed { renewed_at, .. } = &mut event.what {
        *renewed_at = renewed_at.map(|_| Timestamp(0));
    }
    event
}

async fn engine(cluster: &Cluster, database: &str, clock: &Arc<ManualClock>) -> Engine {
    let options = cluster.options(database, Arc::<ManualClock>::clone(clock));
    open::engine(&options).await.unwrap()
}

async fn run(seed: u64, cluster: &Cluster) -> Seen {
    let mut twins = Twins::new(seed, cluster).await;
    let mut generator = Generator::new(seed);
    for step in 0..STEPS {
        twins.step(&mut generator, step).await;
        if step % 50 == 49 {
            twins.compare_views(&generator, step).await;
        }
    }
    twins.compare_columns().await;
    Seen { published: twins.published, ..generator.seen() }
}

/// The seeds run in this process; `PALISADE_SEED` runs one more, `PALISADE_SEEDS` that many.
fn seeds() -> Vec<u64> {
    let given = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut seeds: Vec<_> = (0..given("PALISADE_SEEDS").unwrap_or(10)).collect();
    seeds.extend(given("PALISADE_SEED"));
    seeds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_come_to_the_same_on_postgres_and_on_the_reference() {
    let cluster = Cluster::start();
    let (seeds, mut all) = (seeds(), Seen::default());
    for seed in &seeds {
        all += run(*seed, &cluster).await;
    }
    // A comparison of refusals alone would prove little.
    assert!(all.completed > 5 && all.granted > 100, "{all:?}");
    assert!(all.locked > 50 && all.written > 5, "{all:?}");
    assert!(all.condemned > 5 && all.forgotten > 5 && all.delivered > 5, "{all:?}");
    assert!(all.published > 1, "{all:?}");
}
