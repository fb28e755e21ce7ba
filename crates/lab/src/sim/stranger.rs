//! A client with a bug, or one that means no good: it shows tokens it was never granted, right
//! tokens with wrong lease ids, and pairs of other jobs. Nothing it does may come to anything.

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, LeaseId,
    job::{Failure as Report, FailureKind},
    lease::Pair,
};
use palisade_store::{
    Failure,
    command::{Answer, Command, Complete, Fail, Heartbeat, Release},
};

use crate::designs::Design;

use super::{
    network::Address,
    worker::manifest_of,
    world::{Event, World},
};

/// The stranger.
#[derive(Debug, Default)]
pub(crate) struct Stranger {
    calls: BTreeSet<u64>,
    /// What it was answered although nothing was granted to it.
    pub believed: Vec<String>,
}

impl World {
    /// Tries something with a pair that was not granted for the job.
    pub(super) fn stranger_tries(&mut self) {
        self.schedule(self.now + 4_000, Event::StrangerTries);
        if self.healed || !self.design.is_palisade() {
            return;
        }
        let received = &self.tally.received;
        let Some(one) = self.dice.pick(received).cloned() else { return };
        let Some(other) = self.dice.pick(received).cloned() else { return };
        let (job, pair): (JobId, Pair) = if other.job != one.job && self.dice.per_mille(500) {
            (one.job, other.pair)
        } else {
            (one.job, Pair { lease_id: LeaseId(self.dice.next_u128()), ..one.pair })
        };
        let command = match self.dice.below(4) {
            0 => {
                let manifest = manifest_of(Digest::of(b"a stranger's film"));
                Command::Complete(Complete { job, pair, manifest })
            }
            1 => {
                let failure = Report {
                    reason: "sabotage".to_owned(),
                    message: "a stranger says so".to_owned(),
                    kind: FailureKind::Final,
                };
                Command::Fail(Fail { job, pair, failure, chance: 0 })
            }
            // It says that it lives, which would keep a dead worker's job for ever.
            2 => Command::Heartbeat(Heartbeat {
                session: "stranger".parse().expect("a fine id"),
                seq: self.calls,
                leases: vec![(job, pair)],
                pending: Vec::new(),
                pauses: Vec::new(),
            }),
            _ => Command::Release(Release { job, pair }),
        };
        let call = self.new_call();
        self.stranger.calls.insert(call);
        self.command(Address::Stranger, call, command);
    }

    /// The server answered a stranger.
    pub(super) fn stranger_hears(&mut self, call: u64, answer: &Result<Answer, Failure>) {
        if self.stranger.calls.contains(&call)
            && let Ok(answer) = answer
            && !self.says_nothing(answer)
        {
            self.stranger.believed.push(format!("{answer:?}"));
        }
    }

    /// A heartbeat is always answered; a liar says `held` to anybody, and renews nothing.
    fn says_nothing(&self, answer: &Answer) -> bool {
        let Answer::Heartbeat(beats) = answer else { return false };
        beats.leases == [None] || self.design == Design::LyingDispatch
    }
}
