//! Batches: one transaction, a savepoint for each command, one commit, and what to do when it
//! goes wrong.

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
    /// Everything was rolled back, and nothing is on the disk: they can be run again.
    RolledBack(Fault),
    /// Nobody knows whether it is on the disk.
    Unknown(Fault),
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
        let mut batch = Batch::default();
        match self.together(&commands, moment, &mut batch) {
            Ok(()) => {}
            Err(Trouble::RolledBack(fault)) if commands.len() > 1 => {
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
            Trouble::RolledBack(fault) => {
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
        if let Err(trouble) = self.together(&[command], moment, &mut single) {
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
        batch: &mut Batch,
    ) -> Result<(), Trouble> {
        self.begin().map_err(Trouble::RolledBack)?;
        for command in commands {
            match self.one(command.clone(), moment) {
                Ok(answer) => batch.answers.push(answer),
                Err(fault) => {
                    self.roll_back();
                    return Err(Trouble::RolledBack(fault));
                }
            }
        }
        if let Err(fault) = self.flush(moment.at) {
            self.roll_back();
            return Err(Trouble::RolledBack(fault));
        }
        if let Err(fault) = self.commit_now() {
            self.roll_back();
            return Err(match fault {
                // The commit's mark was not written, so nothing before it counts.
                Fault::Full(_) => Trouble::RolledBack(fault),
                fault => Trouble::Unknown(fault),
            });
        }
        self.position += self.entries.len() as u64;
        batch.events = std::mem::take(&mut self.entries);
        Ok(())
    }

    /// Runs one command under a savepoint. The fault of one command is its own, unless SQLite
    /// rolled back everything, or there is no room: then it is the batch's.
    fn one(&mut self, command: Command, moment: Moment) -> Result<Result<Answer, Failure>, Fault> {
        self.run_sql("SAVEPOINT command")?;
        let mark = Mark {
            book: self.book.mark(),
            lock_book: self.lock_book.mark(),
            entries: self.entries.len(),
            meta: self.meta,
            wrote: self.wrote,
        };
        match ops::apply(self, command, moment) {
            Ok(answer) => {
                self.run_sql("RELEASE command")?;
                Ok(answer.map_err(Failure::Refused))
            }
            Err(fault) if self.connection.is_autocommit() || matches!(fault, Fault::Full(_)) => {
                Err(fault)
            }
            Err(fault) => {
                tracing::error!(%fault, "a command failed");
                self.roll_back_to(&mark)?;
                Ok(Err(Failure::Unavailable(fault.to_string())))
            }
        }
    }

    fn roll_back_to(&mut self, mark: &Mark) -> Result<(), Fault> {
        self.run_sql("ROLLBACK TO command")?;
        self.run_sql("RELEASE command")?;
        self.book.roll_back_to(mark.book);
        self.lock_book.roll_back_to(mark.lock_book);
        self.entries.truncate(mark.entries);
        self.cache = JobCache::default();
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
        journal::append(&self.connection, self.position, &self.entries)?;
        for ((session, claim), grants) in std::mem::take(&mut self.grants) {
            claim::write(&self.connection, &session, &claim, &grants)?;
        }
        // With every write, so that the clock never falls behind what it has stamped.
        self.meta.clock = self.meta.clock.max(now);
        self.meta.write(&self.connection)
    }
}
