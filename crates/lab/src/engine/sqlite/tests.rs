//! A full disk under the real store, as the simulator fills it.

use palisade_core::{Tenant, Timestamp, retry::RetryPolicy, transition::Wish};
use palisade_store::{
    Failure,
    command::{Answer, Command, Submit},
};

use super::{Engine, SqliteRecords};
use crate::{engine::jobs_of, sim::spec_of};

const NOW: Timestamp = Timestamp(1_000_000);

fn submit(number: u64) -> Command {
    let wish = Wish {
        tenant: Tenant::default_tenant(),
        spec: spec_of(number),
        retry: RetryPolicy {
            failures_allowed: 1,
            losses_allowed: 1,
            backoff_ms: 0,
            backoff_ms_max: 0,
        },
        backup_after_ms: None,
        priority: 0,
        run_at: Timestamp::default(),
        fresh: false,
        publish: None,
    };
    Command::Submit(Submit { wish, request_id: format!("r{number}").parse().ok() })
}

#[test]
fn a_full_disk_is_unavailable_and_nothing_acknowledged_is_lost() {
    let mut records = SqliteRecords::new(NOW);
    let (mut acknowledged, mut refused) = (Vec::new(), 0);
    for batch in 0..40 {
        let commands: Vec<_> = (batch * 10..batch * 10 + 10).map(submit).collect();
        if batch % 2 == 1 {
            records.fill_disk();
        }
        for answer in records.apply_all(&commands, NOW) {
            match answer {
                Ok(Answer::Submit(submitted)) => acknowledged.push(submitted.job),
                Err(Failure::Unavailable(_)) => refused += 1,
                other => panic!("a full disk is answered {other:?}"),
            }
        }
    }
    assert!(refused > 20, "the disk was full, and {refused} were refused");
    assert!(acknowledged.len() > 200, "what fits is taken: {}", acknowledged.len());
    records.crash();
    records.start(NOW);
    let found: Vec<_> = jobs_of(&records).iter().map(|job| job.id).collect();
    assert_eq!(found, acknowledged);
}
