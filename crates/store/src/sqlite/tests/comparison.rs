//! Random commands on the reference and on SQLite: every answer, event and view is the same, with
//! restarts and gaps in between.

pub(crate) mod generator;

use palisade_core::{Number, Timestamp, blob::collect::Stage};

use crate::{
    memory::MemoryEngine,
    query::{Cases, JobFilter, Page, Query, Scan},
    sqlite::{GAP_MS, Place, SqliteEngine},
};

use generator::{Generator, Seen};

const STEPS: usize = 400;

struct Twins {
    seed: u64,
    folder: tempfile::TempDir,
    sqlite: Option<SqliteEngine>,
    memory: MemoryEngine,
    now: Timestamp,
    served_at: Timestamp,
}

impl Twins {
    fn new(seed: u64) -> Self {
        let now = Timestamp(1_700_000_000_000);
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Folder(folder.path().to_owned());
        let sqlite = Some(SqliteEngine::open(place, now).unwrap());
        Self { seed, folder, sqlite, memory: MemoryEngine::new(now), now, served_at: now }
    }

    fn sqlite(&mut self) -> &mut SqliteEngine {
        self.sqlite.as_mut().expect("open between the steps")
    }

    /// Lets time pass; now and then the stores are gone meanwhile, or stand still.
    fn pass(&mut self, generator: &mut Generator) {
        match generator.below(40) {
            0 => {
                self.sqlite = None;
                self.now = self.now.plus_ms(generator.below(60_000));
                let place = Place::Folder(self.folder.path().to_owned());
                self.sqlite = Some(SqliteEngine::open(place, self.now).unwrap());
                self.memory.start(self.now);
                self.served_at = self.now;
            }
            1 => {
                self.now = self.now.plus_ms(GAP_MS + 1 + generator.below(60_000));
                self.memory.wake(self.served_at, self.now);
            }
            _ => self.now = self.now.plus_ms(generator.below(1_500)),
        }
    }

    fn step(&mut self, generator: &mut Generator, step: usize) {
        self.pass(generator);
        let commands = generator.commands(self.now);
        let (seed, now) = (self.seed, self.now);
        let batch = self.sqlite().apply_batch(commands.clone(), now);
        self.served_at = now;
        for (command, answer) in commands.into_iter().zip(&batch.answers) {
            let expected = self.memory.apply(command.clone(), now);
            assert_eq!(answer, &expected, "seed {seed}, step {step}: {command:?}");
            generator.learn(&command, answer);
        }
        let events = self.memory.take_announcements();
        assert_eq!(batch.events, events, "seed {seed}, step {step}");
    }

    fn compare_views(&mut self, generator: &Generator, step: usize) {
        let seed = self.seed;
        for query in queries(generator, self.now) {
            let expected = self.memory.query(&query);
            let shown = self.sqlite().query(&query).unwrap();
            assert_eq!(shown, expected, "seed {seed}, step {step}: {query:?}");
        }
    }
}

/// What is looked at now and then.
pub(crate) fn queries(generator: &Generator, until: Timestamp) -> Vec<Query> {
    let mut queries = vec![
        Query::Jobs(JobFilter { limit: usize::MAX, ..JobFilter::default() }),
        Query::Events { after: 0, limit: usize::MAX },
        Query::Events { after: 17, limit: 31 },
        Query::Leases,
        Query::Counts,
        Query::Objects(Page { limit: usize::MAX, ..Page::default() }),
    ];
    let scan = Scan { after: Number::ZERO, length: 20 };
    queries.extend([Query::Unkept(scan), Query::PastJobs { scan, until }]);
    for stage in [Stage::Idle, Stage::Condemned, Stage::Cleared] {
        queries.push(Query::Cases(Cases { stage, until, limit: 10 }));
    }
    for name in Generator::names() {
        queries.push(Query::Object(name.clone()));
        queries.push(Query::Resolve(name));
    }
    for state in palisade_core::job::JobState::ALL {
        let filter = JobFilter { state: Some(state), limit: 10, ..JobFilter::default() };
        queries.push(Query::Jobs(filter));
    }
    queries.extend(Generator::views());
    queries.extend(Generator::blobs().into_iter().map(Query::Blob));
    queries.push(Query::Endpoints);
    queries.extend(Generator::deliveries());
    queries.extend(generator.jobs().into_iter().map(Query::History));
    queries
}

/// Answers how often what happened.
fn run(seed: u64) -> Seen {
    let mut twins = Twins::new(seed);
    let mut generator = Generator::new(seed);
    for step in 0..STEPS {
        twins.step(&mut generator, step);
        if step % 50 == 49 {
            twins.compare_views(&generator, step);
        }
    }
    generator.seen()
}

/// The seeds run in this process; `PALISADE_SEED` runs one more, `PALISADE_SEEDS` that many.
fn seeds() -> Vec<u64> {
    let given = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut seeds: Vec<_> = (0..given("PALISADE_SEEDS").unwrap_or(12)).collect();
    seeds.extend(given("PALISADE_SEED"));
    seeds
}

#[test]
fn random_commands_come_to_the_same_on_sqlite_and_on_the_reference() {
    let (seeds, mut all) = (seeds(), Seen::default());
    for seed in &seeds {
        all += run(*seed);
    }
    // A comparison of refusals alone would prove little.
    assert!(all.completed > 10 && all.granted > 100, "{all:?}");
    assert!(all.locked > 100 && all.written > 10, "{all:?}");
    assert!(all.condemned > 10 && all.forgotten > 10 && all.delivered > 10, "{all:?}");
    assert!(all.published >= seeds.len(), "{all:?}");
}
