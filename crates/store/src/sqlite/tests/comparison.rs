//! Random commands on the reference and on SQLite: every answer, event and view is the same, with
//! restarts and gaps in between.

pub(crate) mod generator;

use palisade_core::Timestamp;

use crate::{
    memory::MemoryEngine,
    query::{JobFilter, Query},
    sqlite::{GAP_MS, Place, SqliteEngine},
};

use generator::Generator;

const STEPS: usize = 250;

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
        let mut queries = vec![
            Query::Jobs(JobFilter { limit: usize::MAX, ..JobFilter::default() }),
            Query::Events { after: 0, limit: usize::MAX },
            Query::Events { after: 17, limit: 31 },
            Query::Leases,
            Query::Counts,
        ];
        for state in palisade_core::job::JobState::ALL {
            let filter = JobFilter { state: Some(state), limit: 10, ..JobFilter::default() };
            queries.push(Query::Jobs(filter));
        }
        queries.extend(Generator::blobs().into_iter().map(Query::Blob));
        queries.extend(generator.jobs().into_iter().map(Query::History));
        let seed = self.seed;
        for query in queries {
            let expected = self.memory.query(&query);
            let shown = self.sqlite().query(&query).unwrap();
            assert_eq!(shown, expected, "seed {seed}, step {step}: {query:?}");
        }
    }
}

fn run(seed: u64) {
    let mut twins = Twins::new(seed);
    let mut generator = Generator::new(seed);
    for step in 0..STEPS {
        twins.step(&mut generator, step);
        if step % 50 == 49 {
            twins.compare_views(&generator, step);
        }
    }
    let seen = generator.seen();
    // A comparison of refusals alone would prove little.
    assert!(seen.completed > 0 && seen.granted > 10, "seed {seed}: {seen:?}");
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
    for seed in seeds() {
        run(seed);
    }
}
