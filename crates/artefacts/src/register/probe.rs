//! Trying out what a store really does with conditions, before a fence is trusted to it.
//!
//! Stores say that they know conditional writes and let several racers win, or take `If-Match` on
//! an object that is not there. What a probe finds is proof only of lies: a store that has passed
//! may still fail in a race that the probe did not run.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use futures_util::future::join_all;

use super::{Cell, CellError, CompareAndSwap, Key, Swap, Version};

/// How many swaps race in one round, and how many rounds of each race there are.
const RACERS: usize = 16;
const ROUNDS: usize = 4;

/// A store that must not hold registers, or could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It does not do what a register rests on.
    #[error("{store} must not hold registers: {lie}")]
    Liar {
        /// The store's name.
        store: String,
        /// What it did.
        lie: Lie,
    },
    /// It could not be reached, or an answer got lost. Nothing is proved; try again.
    #[error("{store} could not be probed")]
    Inconclusive {
        /// The store's name.
        store: String,
        /// What it said.
        source: CellError,
    },
}

/// What a store did that none may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lie {
    /// Not just one of several that created the same object at once was told that it had.
    #[error("of {racers} that created one object at once, {winners} were told that they had")]
    RacingCreates {
        /// How many raced.
        racers: usize,
        /// How many were told so.
        winners: usize,
    },
    /// Not just one of several that replaced the same version at once was told that it had.
    #[error("of {racers} that replaced one version at once, {winners} were told that they had")]
    RacingSwaps {
        /// How many raced.
        racers: usize,
        /// How many were told so.
        winners: usize,
    },
    /// What is stored is not what the winner wrote.
    #[error("what is stored is not what the one wrote that was told so")]
    NotTheWinners,
    /// A condition on a version was met by an object that is not there.
    #[error("it took a condition on a version for met by an object that is not there")]
    SwapOfMissing,
    /// A condition on a version was met by another version.
    #[error("it took a condition on an old version for met")]
    SwapOfOldVersion,
    /// An object that was to be created was there, and was replaced.
    #[error("it replaced an object that was only to be created")]
    CreateOfExisting,
    /// Other bytes came under the same version.
    #[error("other bytes came with the same version")]
    SameVersion,
    /// An object came that nobody had written.
    #[error("it sent an object that nobody had written")]
    OutOfNothing,
}

/// Tries what `cells` does with conditions. `nonce` is random, so that the probe's objects are its
/// own; a few small ones stay behind ([`super::BucketCells::sweep_probe`]).
pub async fn probe(cells: Arc<dyn CompareAndSwap>, nonce: u128) -> Result<(), ProbeError> {
    let probe = Probe { cells, nonce };
    for round in 0..ROUNDS {
        let (key, cell) = probe.race_creates(round).await?;
        let newer = probe.race_swaps(round, &key, &cell).await?;
        probe.try_old_version(&key, &cell.version, &newer).await?;
        probe.try_create_again(&key, &newer).await?;
    }
    probe.try_missing(&probe.key("version-of-another")).await
}

struct Probe {
    cells: Arc<dyn CompareAndSwap>,
    nonce: u128,
}

impl Probe {
    fn key(&self, name: &str) -> Key {
        Key::of_probe(self.nonce, name)
    }

    fn liar(&self, lie: Lie) -> ProbeError {
        ProbeError::Liar { store: self.cells.name(), lie }
    }

    fn inconclusive(&self, source: CellError) -> ProbeError {
        ProbeError::Inconclusive { store: self.cells.name(), source }
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, ProbeError> {
        self.cells.read(key).await.map_err(|error| self.inconclusive(error))
    }

    /// Whether it was told to have swapped.
    fn swapped(&self, swap: Swap) -> Result<bool, ProbeError> {
        match swap {
            Swap::Swapped => Ok(true),
            Swap::Conflict => Ok(false),
            Swap::NotDone(error) | Swap::Unknown(error) => Err(self.inconclusive(error)),
        }
    }

    /// All at once on one version, each with bytes of its own; answers who was told to have won,
    /// and what is stored.
    async fn race(
        &self,
        key: &Key,
        expected: Option<&Version>,
        word: &str,
    ) -> Result<(BTreeSet<Bytes>, Option<Cell>), ProbeError> {
        let start = Arc::new(tokio::sync::Barrier::new(RACERS));
        let racers = (0..RACERS).map(|racer| {
            let bytes = Bytes::from(format!("{word} {racer} {:032x}", self.nonce));
            let (cells, start) = (Arc::clone(&self.cells), Arc::clone(&start));
            let (key, expected) = (key.clone(), expected.cloned());
            tokio::spawn(async move {
                start.wait().await;
                (cells.swap(&key, expected.as_ref(), bytes.clone()).await, bytes)
            })
        });
        let mut winners = BTreeSet::new();
        for raced in join_all(racers).await {
            let (swap, bytes) = raced
                .map_err(|error| CellError::new(self.cells.name(), "race", error))
                .map_err(|error| self.inconclusive(error))?;
            if self.swapped(swap)? {
                winners.insert(bytes);
            }
        }
        Ok((winners, self.read(key).await?))
    }

    async fn race_creates(&self, round: usize) -> Result<(Key, Cell), ProbeError> {
        let key = self.key(&format!("race-{round}"));
        if self.read(&key).await?.is_some() {
            return Err(self.liar(Lie::OutOfNothing));
        }
        let (winners, stored) = self.race(&key, None, "create").await?;
        if winners.len() != 1 {
            let (racers, winners) = (RACERS, winners.len());
            return Err(self.liar(Lie::RacingCreates { racers, winners }));
        }
        match stored {
            Some(cell) if winners.contains(&cell.bytes) => Ok((key, cell)),
            _ => Err(self.liar(Lie::NotTheWinners)),
        }
    }

    async fn race_swaps(&self, round: usize, key: &Key, from: &Cell) -> Result<Cell, ProbeError> {
        let word = format!("swap of round {round}");
        let (winners, stored) = self.race(key, Some(&from.version), &word).await?;
        if winners.len() != 1 {
            let (racers, winners) = (RACERS, winners.len());
            return Err(self.liar(Lie::RacingSwaps { racers, winners }));
        }
        match stored {
            Some(cell) if !winners.contains(&cell.bytes) => Err(self.liar(Lie::NotTheWinners)),
            Some(cell) if cell.version == from.version => Err(self.liar(Lie::SameVersion)),
            Some(cell) => Ok(cell),
            None => Err(self.liar(Lie::NotTheWinners)),
        }
    }

    async fn try_old_version(
        &self,
        key: &Key,
        old: &Version,
        now: &Cell,
    ) -> Result<(), ProbeError> {
        let bytes = Bytes::from(format!("on an old version {:032x}", self.nonce));
        let swap = self.cells.swap(key, Some(old), bytes).await;
        if self.swapped(swap)? || self.read(key).await?.as_ref() != Some(now) {
            return Err(self.liar(Lie::SwapOfOldVersion));
        }
        Ok(())
    }

    async fn try_create_again(&self, key: &Key, now: &Cell) -> Result<(), ProbeError> {
        let bytes = Bytes::from(format!("created again {:032x}", self.nonce));
        let swap = self.cells.swap(key, None, bytes).await;
        if self.swapped(swap)? || self.read(key).await?.as_ref() != Some(now) {
            return Err(self.liar(Lie::CreateOfExisting));
        }
        Ok(())
    }

    /// A condition on the version of another object, on an object that was never there.
    async fn try_missing(&self, other: &Key) -> Result<(), ProbeError> {
        let swap = self.cells.swap(other, None, Bytes::from_static(b"another")).await;
        self.swapped(swap)?;
        let Some(cell) = self.read(other).await? else {
            return Err(self.liar(Lie::NotTheWinners));
        };
        let missing = self.key("missing");
        let bytes = Bytes::from_static(b"on a version of another object");
        let swap = self.cells.swap(&missing, Some(&cell.version), bytes).await;
        if self.swapped(swap)? || self.read(&missing).await?.is_some() {
            return Err(self.liar(Lie::SwapOfMissing));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
