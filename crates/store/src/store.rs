//! The seam between Palisade and whatever keeps its records.

use async_trait::async_trait;
use palisade_core::Timestamp;
use tokio::sync::broadcast;

use crate::{
    command::{Answer, Command, Verb},
    events::Batch,
    failure::Failure,
    query::{Query, View},
};

/// Keeps Palisade's records. The contract:
///
/// - **Rules.** Every command is decided by `core`'s rules, on records read inside the transaction
///   that writes their result.
/// - **Durable, then answered.** An answer leaves after the commit of the batch in which it was
///   decided, replays and refusals included: they may rest on a neighbour that is not yet durable.
///   What was answered is there after a crash. Renewals of a lease other than the first in a
///   life of the store need no durability.
/// - **Alone among neighbours.** A command that is refused or fails does not undo the others of
///   its batch; commands of one call are run in their order, but each succeeds or not by itself.
/// - **Numbers.** A number that was answered is never drawn again: not after a restart, a rollback
///   or a deletion.
/// - **Time.** Deadlines are counted on the store's own clock, which never runs backwards; only
///   time in which it served counts against a lease.
/// - **Failures.** [`Failure::Unavailable`] means that nothing was done; [`Failure::Unknown`] that
///   it may have been.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Runs commands, in their order. One answer a command.
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>>;

    /// Reads. Sees everything that was answered before.
    async fn query(&self, query: Query) -> Result<View, Failure>;

    /// Listens to the journal from now on: entries come after their commit.
    fn changes(&self) -> broadcast::Receiver<Batch>;

    /// The clock by which this store counts deadlines.
    fn now(&self) -> Timestamp;

    /// Whether other servers may be working on the same records.
    fn is_shared(&self) -> bool {
        false
    }
}

/// Conveniences over every store.
#[async_trait]
pub trait StoreExt: Store {
    /// Runs one command, typed.
    async fn run<V: Verb + 'static>(&self, verb: V) -> Result<V::Answer, Failure> {
        let mut answers = self.execute(vec![verb.into()]).await;
        let answer = answers.pop().expect("one answer a command")?;
        Ok(V::answer(answer).expect("each command is answered by its own kind"))
    }

    /// Runs several commands of one kind, typed.
    async fn run_all<V: Verb + 'static>(&self, verbs: Vec<V>) -> Vec<Result<V::Answer, Failure>> {
        let commands = verbs.into_iter().map(Into::into).collect();
        let answers = self.execute(commands).await;
        let typed = |answer| V::answer(answer).expect("each is answered by its own kind");
        answers.into_iter().map(|answer| answer.map(typed)).collect()
    }
}

impl<S: Store + ?Sized> StoreExt for S {}
