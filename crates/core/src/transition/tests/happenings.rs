//! What may happen in a random interleaving.

use proptest::prelude::*;

use crate::job::FailureKind;

use super::world::Verb;

/// Something that happens. Numbers pick from what there is, whatever there is.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    Submit {
        key: u8,
        fresh: bool,
    },
    Claim {
        job: u8,
        worker: u8,
    },
    Say {
        grant: u8,
        verb: Verb,
    },
    /// Another job's pair.
    SayElsewhere {
        grant: u8,
        job: u8,
        verb: Verb,
    },
    /// A right token with a stranger's lease id, or with another grant's.
    SayAsStranger {
        grant: u8,
        other: u8,
        verb: Verb,
    },
    /// What was once said and answered is said again: the reply was lost, or the network is slow.
    Repeat {
        said: u8,
    },
    Withdraw {
        job: u8,
        submission: Option<u8>,
    },
    Retry {
        job: u8,
        submission: Option<u8>,
    },
    Publish {
        job: u8,
        submission: u8,
    },
    Tick {
        job: u8,
    },
    Suspect {
        grant: u8,
    },
    Wait {
        ms: u64,
    },
    Restart {
        away_ms: u64,
    },
}

fn verbs() -> impl Strategy<Value = Verb> {
    let kind = prop_oneof![4 => Just(FailureKind::Retryable), 1 => Just(FailureKind::Final)];
    prop_oneof![
        3 => Just(Verb::Beat),
        2 => (0..3_u8, prop::bool::weighted(0.8))
            .prop_map(|(outputs, present)| Verb::Complete { outputs, present }),
        3 => (kind, any::<u64>()).prop_map(|(kind, chance)| Verb::Fail { kind, chance }),
        2 => Just(Verb::Release),
    ]
}

pub(super) fn happenings() -> impl Strategy<Value = Happening> {
    use Happening::{
        Claim, Publish, Repeat, Restart, Retry, Say, SayAsStranger, SayElsewhere, Submit, Suspect,
        Tick, Wait, Withdraw,
    };
    let submission = || prop::option::weighted(0.8, any::<u8>());
    // Waits that end short of, at and past what a lease, a backoff and a backup wait for.
    let waits = prop_oneof![0..2_000_u64, Just(30_029), Just(30_030), 20_000..90_000_u64];
    prop_oneof![
        3 => (0..2_u8, any::<bool>()).prop_map(|(key, fresh)| Submit { key, fresh }),
        12 => (any::<u8>(), 0..3_u8).prop_map(|(job, worker)| Claim { job, worker }),
        12 => (recent(), verbs()).prop_map(|(grant, verb)| Say { grant, verb }),
        1 => (any::<u8>(), any::<u8>(), verbs())
            .prop_map(|(grant, job, verb)| SayElsewhere { grant, job, verb }),
        1 => (any::<u8>(), any::<u8>(), verbs())
            .prop_map(|(grant, other, verb)| SayAsStranger { grant, other, verb }),
        3 => any::<u8>().prop_map(|said| Repeat { said }),
        2 => (any::<u8>(), submission()).prop_map(|(job, submission)| Withdraw { job, submission }),
        3 => (any::<u8>(), submission()).prop_map(|(job, submission)| Retry { job, submission }),
        5 => (any::<u8>(), any::<u8>())
            .prop_map(|(job, submission)| Publish { job, submission }),
        2 => any::<u8>().prop_map(|job| Tick { job }),
        1 => any::<u8>().prop_map(|grant| Suspect { grant }),
        6 => waits.prop_map(|ms| Wait { ms }),
        1 => (0..100_000_u64).prop_map(|away_ms| Restart { away_ms }),
    ]
}

/// Counted from the newest: what was granted last is spoken of most.
fn recent() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0_u8), 2 => Just(1), 1 => any::<u8>()]
}
