//! Batches: one transaction, one commit, and what to do when it goes wrong: the same again with a
//! savepoint for each command, or each command by itself.

use palisade_core::{Timestamp, history::Event, lease::Moment};

use crate::{
    command::{Answer, Command},
    failure::Failure,
    fault::Fault,
    ops,
};

use super::{
    cache::JobCache,
    engine::{GAP_MS, SqliteEngine},
    records::{claim, journal, meta::Meta},
};

/// What a batch came to. All of it is durable.
#[derive(Debug, Default)]
pub struct Batch {
    /// One answer a command, in their order.
    pub answers: Vec<Result<Answer, Failure>>,
    /// What was appended to the journal, in its order.
    pub events: Vec<Event>,
}

/// Why the commands of a transaction were not done together.
enum Trouble {
    /// The fault of one command. Everything was rolled back.
    OfOne(Fault),
    /// SQLite rolled back everything, or there is no room. Nothing is on the disk.
    OfAll(Fault),
    /// Nobody knows whether it is on the disk.
    Unknown(Fault),
}

/// Whether each command has a savepoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Savepoints {
    /// None: they cost a seventh of the work, and are needed only when a command fails.
    Without,
    /// One each, so that a command that fails is rolled back alone.
    With,
}

/// A place to roll back to.
struct Mark {
    book: usize,
    lock_book: usize,
    entries: usize,
    meta: Meta,
    wrote: bool,
}

impl SqliteEngine {
    /// Runs commands in their order, in one transaction, and answers all after its commit. Each
    /// succeeds or not by itself. `now` is the clock's; if it has fallen, the engine's stays.
    pub fn apply_batch(&mut self, commands: Vec<Command>, now: Timestamp) -> Batch {
        let now = now.max(self.clock());
        if let Err(fault) = self.make_ready(now) {
            let failed = Failure::Unavailable(fault.to_string());
            return Batch {
                answers: commands.iter().map(|_| Err(failed.clone())).collect(),
                events: Vec::new(),
            };
        }
        let moment = Moment { at: now, life: self.meta.life };
        self.now = now;
        let mut batch = Batch::default();
        let mut outcome = self.together(&commands, moment, Savepoints::Without, &mut batch);
        if let Err(Trouble::OfOne(fault)) = &outcome {
            tracing::error!(%fault, "a command failed; its batch runs again with savepoints");
            outcome = self.together(&commands, moment, Savepoints::With, &mut batch);
        }
        match outcome {
            Ok(()) => {}
            Err(Trouble::OfOne(fault) | Trouble::OfAll(fault)) if commands.len() > 1 => {
                tracing::warn!(%fault, "a batch was rolled back; its commands run singly");
                batch = Batch::default();
                for command in commands {
                    self.alone(command, moment, &mut batch);
                }
            }
            Err(trouble) => batch = self.all_failed(commands.len(), trouble),
        }
        self.served_at = now;
        batch
    }

    /// Before anything runs: the connection is sound, and time that was not served is given back.
    fn make_ready(&mut self, now: Timestamp) -> Result<(), Fault> {
        if let Some(what) = &self.broken {
            tracing::warn!(what, "opening the database anew");
            return self.reopen(now);
        }
        if now.since_ms(self.served_at) > GAP_MS {
            let gap_ms = now.since_ms(self.served_at);
            tracing::warn!(gap_ms, "did not serve for a while; leases get their time back");
            return self.start(self.served_at, now);
        }
        Ok(())
    }

    fn all_failed(&mut self, commands: usize, trouble: Trouble) -> Batch {
        let failure = match trouble {
            Trouble::OfOne(fault) | Trouble::OfAll(fault) => {
                if matches!(fault, Fault::Engine(_)) {
                    self.broken = Some(fault.to_string());
                }
                Failure::Unavailable(fault.to_string())
            }
            Trouble::Unknown(fault) => {
                self.broken = Some(fault.to_string());
                Failure::Unknown(fault.to_string())
            }
        };
        Batch { answers: vec![Err(failure); commands], events: Vec::new() }
    }

    fn alone(&mut self, command: Command, moment: Moment, batch: &mut Batch) {
        let mut single = Batch::default();
        if self.broken.is_some() {
            let failed = Failure::Unavailable("the database failed".to_owned());
            batch.answers.push(Err(failed));
            return;
        }
        let alone = self.together(&[command], moment, Savepoints::Without, &mut single);
        if let Err(trouble) = alone {
            single = self.all_failed(1, trouble);
        }
        batch.answers.append(&mut single.answers);
        batch.events.append(&mut single.events);
    }

    /// Runs commands in one transaction. On trouble nothing of it is left in memory.
    fn together(
        &mut self,
        commands: &[Command],
        moment: Moment,
        savepoints: Savepoints,
        batch: &mut Batch,
    ) -> Result<(), Trouble> {
        *batch = Batch::default();
        let done = self.begin().map_err(Trouble::OfAll).and_then(|()| {
            for command in commands {
                let command = command.clone();
                batch.answers.push(match savepoints {
                    Savepoints::Without => self.unguarded(command, moment)?,
                    Savepoints::With => self.guarded(command, moment)?,
                });
            }
            self.flush(moment.at).map_err(Trouble::OfAll)?;
            self.commit_now().map_err(|fault| match fault {
                // The commit's mark was not written, so nothing before it counts.
                Fault::Full(_) => Trouble::OfAll(fault),
                fault => Trouble::Unknown(fault),
            })
        });
        if done.is_err() {
            self.roll_back();
            return done;
        }
        batch.events = std::mem::take(&mut self.entries);
        Ok(())
    }

    fn unguarded(
        &mut self,
        command: Command,
        moment: Moment,
    ) -> Result<Result<Answer, Failure>, Trouble> {
        match ops::apply(self, command, moment) {
            Ok(answer) => Ok(answer.map_err(Failure::Refused)),
            Err(fault) if self.is_of_all(&fault) => Err(Trouble::OfAll(fault)),
            Err(fault) => Err(Trouble::OfOne(fault)),
        }
    }

    /// Runs one command under a savepoint: its fault is its own, unless it is everybody's.
    fn guarded(
        &mut self,
        command: Command,
        moment: Moment,
    ) -> Result<Result<Answer, Failure>, Trouble> {
        self.run_sql("SAVEPOINT command").map_err(Trouble::OfAll)?;
        let mark = Mark {
            book: self.book.mark(),
            lock_book: self.lock_book.mark(),
            entries: self.entries.len(),
            meta: self.meta,
            wrote: self.wrote,
        };
        match self.unguarded(command, moment) {
            Ok(answer) => {
                self.run_sql("RELEASE command").map_err(Trouble::OfAll)?;
                Ok(answer)
            }
            Err(Trouble::OfOne(fault)) => {
                self.roll_back_to(&mark).map_err(Trouble::OfAll)?;
                Ok(Err(Failure::Unavailable(fault.to_string())))
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn is_of_all(&self, fault: &Fault) -> bool {
        self.connection.is_autocommit() || matches!(fault, Fault::Full(_))
    }

    fn roll_back_to(&mut self, mark: &Mark) -> Result<(), Fault> {
        self.run_sql("ROLLBACK TO command")?;
        self.run_sql("RELEASE command")?;
        self.book.roll_back_to(mark.book);
        self.lock_book.roll_back_to(mark.lock_book);
        self.entries.truncate(mark.entries);
        self.cache = JobCache::default();
        self.endpoints = None;
        let drawn = self.meta.counter;
        self.meta = Meta { counter: drawn, ..mark.meta };
        self.wrote = mark.wrote;
        // Grants are noted only with a job that was written: those of this command are the ones
        // whose tokens it drew.
        let first = mark.meta.counter;
        for grants in self.grants.values_mut() {
            grants.retain(|(_, token)| *token <= first);
        }
        self.grants.retain(|_, grants| !grants.is_empty());
        Ok(())
    }

    /// Writes what was gathered for the whole batch. A batch that wrote nothing needs none of it.
    fn flush(&mut self, now: Timestamp) -> Result<(), Fault> {
        if !self.wrote && self.meta.counter == self.committed.counter {
            return Ok(());
        }
        journal::append(&self.connection, self.meta.journal_next, &self.entries)?;
        self.meta.journal_next += self.entries.len() as u64;
        for ((session, claim), grants) in std::mem::take(&mut self.grants) {
            claim::write(&self.connection, &session, &claim, &grants, now)?;
        }
        // With every write, so that the clock never falls behind what it has stamped.
        self.meta.clock = self.meta.clock.max(now);
        self.meta.write(&self.connection)
    }
}
