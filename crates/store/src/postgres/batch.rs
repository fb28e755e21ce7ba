//! A batch: one transaction, in which what the commands name is fetched, the rules run over it in
//! memory, and what changed is written and committed in one go.

use std::{sync::atomic::Ordering, time::Duration};

use deadpool_postgres::Client;
use palisade_core::{Timestamp, history::Event, lease::Moment};

use crate::{
    command::{Answer, Command},
    failure::Failure,
    fault::Fault,
};

use super::{
    engine::Engine,
    fetch::{self, Turn},
    flush, hints,
    life::{BACK_MS, ClockRow, GAP_MS},
    overlay::Overlay,
    session::{pipeline, question},
    trouble::Trouble,
    values::{Columns, instant},
    wants::Wants,
};

/// Tries of a batch while others are in the way. After them its commands run singly.
const TRIES: u32 = 6;
/// Rounds of fetching in one transaction. Few are needed, as what a command will want is guessed
/// and what it wants of one kind is asked for in growing numbers; but a command that has to go from
/// one record to the next is not refused for that, however many they are.
const ROUNDS_MAX: usize = 10_000;
/// Rounds that ask for the very same, of which nothing came.
const STALLED_MAX: usize = 8;
/// How old the clock's record may become while batches run, in ms.
const RECORD_EVERY_MS: u64 = 1_000;

const COMMIT: &str = "COMMIT";

/// What is introduced to each connection.
pub(super) const ALL: &[&str] = &[COMMIT];

/// What a batch came to. All of it is durable.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// One answer a command, in their order.
    pub(super) answers: Vec<Result<Answer, Failure>>,
    /// What was appended to the journal, in its order.
    pub(super) events: Vec<Event>,
    /// The journal's position before the first of them.
    pub(super) position: u64,
    /// The numbers that were drawn, in their order.
    pub(super) drawn: Vec<palisade_core::Number>,
}

impl Engine {
    /// Runs commands in their order, in one transaction, and answers all after its commit. Each
    /// succeeds or not by itself.
    pub(super) async fn apply_batch(&self, commands: Vec<Command>) -> Batch {
        match self.together(&commands).await {
            Ok(batch) => batch,
            Err(Trouble::Again(what)) if commands.len() > 1 => {
                tracing::warn!(what, "a batch was in others' way; its commands run singly");
                self.singly(commands).await
            }
            Err(Trouble::Fault(fault)) if commands.len() > 1 && !is_away(&fault) => {
                tracing::warn!(%fault, "a batch was rolled back; its commands run singly");
                self.singly(commands).await
            }
            Err(trouble) => Self::all_failed(commands.len(), &trouble),
        }
    }

    async fn singly(&self, commands: Vec<Command>) -> Batch {
        let mut batch = Batch::default();
        for command in commands {
            let alone = self.together(std::slice::from_ref(&command)).await;
            let mut alone = alone.unwrap_or_else(|trouble| Self::all_failed(1, &trouble));
            // Each of them told of its own events.
            batch.answers.append(&mut alone.answers);
            batch.events.append(&mut alone.events);
            batch.drawn.append(&mut alone.drawn);
        }
        batch
    }

    fn all_failed(commands: usize, trouble: &Trouble) -> Batch {
        tracing::error!(?trouble, commands, "a batch came to nothing");
        Batch { answers: vec![Err(trouble.failure()); commands], ..Batch::default() }
    }

    /// Runs commands in one transaction, again and again while others are in the way.
    async fn together(&self, commands: &[Command]) -> Result<Batch, Trouble> {
        let done = self.until_it_is_done(commands).await;
        if done.as_ref().is_err_and(Trouble::is_read_only) {
            self.look_elsewhere();
        }
        done
    }

    async fn until_it_is_done(&self, commands: &[Command]) -> Result<Batch, Trouble> {
        let mut learned = Wants::default();
        let mut tries = 0;
        loop {
            tries += 1;
            match self.attempt(commands, &mut learned).await {
                Ok(batch) => {
                    self.committed(&batch);
                    return Ok(batch);
                }
                Err(Trouble::Time) if tries < TRIES => self.mind_time().await?,
                Err(Trouble::Again(what)) if tries < TRIES => {
                    tracing::debug!(what, tries, "others are in the way; once more");
                    tokio::time::sleep(Duration::from_millis(1 << tries)).await;
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    fn committed(&self, batch: &Batch) {
        if let Some(last) = batch.drawn.last() {
            self.highest.fetch_max(last.get(), Ordering::SeqCst);
        }
        if !batch.events.is_empty() {
            self.news.committed(batch.position, batch.events.clone());
        }
    }

    async fn attempt(&self, commands: &[Command], learned: &mut Wants) -> Result<Batch, Trouble> {
        let client = self.writer().await?;
        // What it has fetched is large, and not everybody's who waits for it.
        let done = Box::pin(self.transaction(&client, commands, learned)).await;
        if done.is_err() {
            // A connection that cannot even roll back is not used again.
            if client.batch_execute("ROLLBACK").await.is_err() {
                drop(deadpool_postgres::Object::take(client));
            }
        }
        done
    }

    async fn transaction(
        &self,
        client: &Client,
        commands: &[Command],
        learned: &mut Wants,
    ) -> Result<Batch, Trouble> {
        let mut overlay = Overlay::default();
        let mut wants = hints::of(commands);
        wants.learn(learned);
        let (mut before, mut stalled) = (Wants::default(), 0);
        for round in 0..ROUNDS_MAX {
            let known = self.clock.now();
            let turn = if round == 0 { Turn::First } else { Turn::Later };
            let clock = fetch::round(client, &mut overlay, &wants, (turn, instant(known))).await?;
            let now = self.moment(clock, known)?;
            let answers = overlay.run(commands, now);
            let missing = overlay.take_wants();
            if missing.is_empty() {
                if now.at.since_ms(clock.recorded) >= RECORD_EVERY_MS {
                    // Whoever serves records the clock, also where no tick comes through.
                    overlay.clock = Some(now.at);
                }
                return self.finish(client, overlay, answers, now).await;
            }
            stalled = if missing == before { stalled + 1 } else { 0 };
            if stalled >= STALLED_MAX {
                return Err(Trouble::Again(format!("this did not come: {missing:?}")));
            }
            tracing::trace!(round, ?missing, "more has to be fetched");
            before = missing.clone();
            learned.learn(&missing);
            // The numbers are drawn anew after the last row was locked.
            let numbers = wants.numbers.max(missing.numbers);
            wants = Wants { numbers, ..missing };
        }
        Err(Trouble::Again("a batch asked for more again and again".to_owned()))
    }

    /// The moment of the batch, by the clock that was read after everything was locked.
    fn moment(&self, row: ClockRow, known: Timestamp) -> Result<Moment, Trouble> {
        let now = row.now(self.clock.wall(row.wall));
        let jumped_back = now.plus_ms(BACK_MS) < row.recorded;
        if jumped_back || now.since_ms(row.recorded) > GAP_MS {
            return Err(Trouble::Time);
        }
        let now = now.max(row.recorded);
        self.clock.hear(now);
        Ok(Moment { at: now.max(known), life: row.life })
    }

    /// Writes and commits, in one go: between the two no client is asked, so that none can hold
    /// the journal's lock while it is stopped.
    async fn finish(
        &self,
        client: &Client,
        mut overlay: Overlay,
        answers: Vec<Result<Answer, Failure>>,
        now: Moment,
    ) -> Result<Batch, Trouble> {
        let (mut questions, tells) = flush::questions(client, &mut overlay, instant(now.at));
        questions.push(question!(client, COMMIT));
        let mut results = pipeline(questions).await;
        let commit = results.pop().expect("the commit was asked for");
        let mut written = Vec::with_capacity(results.len());
        let mut broken = None;
        for result in results {
            match result {
                Ok(rows) => written.push(rows),
                // What the database refuses it does not commit.
                Err(error) if error.as_db_error().is_some() => {
                    return Err(Trouble::before_commit(error));
                }
                Err(error) => broken = Some(error),
            }
        }
        if let Some(error) = broken {
            return Err(Trouble::Unknown(error.to_string()));
        }
        commit.map_err(|error| Trouble::of_commit(&error))?;
        let position = match written.last().filter(|_| tells).and_then(|rows| rows.first()) {
            Some(row) => Columns::new("head", row).unsigned(0).map_err(Trouble::Fault)?,
            None => 0,
        };
        let drawn = overlay.drawn().to_vec();
        Ok(Batch { answers, events: overlay.entries, position, drawn })
    }
}

/// Whether the database is away as a whole: then there is no use in asking again singly.
fn is_away(fault: &Fault) -> bool {
    let Fault::Engine(error) = fault else { return matches!(fault, Fault::ReadOnly(_)) };
    error.downcast_ref::<tokio_postgres::Error>().is_none_or(|error| error.as_db_error().is_none())
}
