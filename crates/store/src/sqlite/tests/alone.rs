//! Each command of a batch succeeds or not by itself.

use palisade_core::job::JobState;

use crate::{
    Failure,
    command::{Answer, Command},
    conformance::bench::manifest,
    query::{Query, View},
};

use super::driver::Driver;

#[test]
fn a_command_that_fails_leaves_its_neighbours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let broken = driver.granted("alice");
    let sound = driver.granted("bob");
    driver.bring("output");
    let complete = |job, pair| {
        let manifest = manifest("output");
        Command::Complete(crate::command::Complete { job, pair, manifest })
    };
    // A record that does not read as what was written, found only once the job's row has been
    // changed: its half-done completion must not stay.
    let job = broken.job.id.0.get();
    let spoil = format!("UPDATE jobs SET wish = 'not JSON' WHERE id = {job}");
    driver.engine.connection.execute(&spoil, []).unwrap();
    driver.engine.cache = super::super::cache::JobCache::default();
    let one = driver.submit_of("one");
    let two = driver.submit_of("two");
    let commands = vec![
        Command::Submit(one),
        complete(broken.job.id, broken.pair),
        complete(sound.job.id, sound.pair),
        Command::Submit(two),
    ];
    let batch = driver.engine.apply_batch(commands, driver.now);
    assert!(
        matches!(
            &batch.answers[..],
            [
                Ok(Answer::Submit(_)),
                Err(Failure::Unavailable(what)),
                Ok(Answer::Complete(_)),
                Ok(Answer::Submit(_))
            ] if what.contains("corrupt")
        ),
        "{:?}",
        batch.answers
    );
    assert_eq!(driver.job(sound.job.id).state, JobState::Complete);
    let View::Leases(leases) = driver.engine.query(&Query::Leases).unwrap() else {
        panic!("leases are asked for")
    };
    assert_eq!(leases.iter().map(|lease| lease.token).collect::<Vec<_>>(), [broken.pair.token]);
}

#[test]
fn a_command_that_fails_midway_leaves_nothing_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    for source in ["one", "two", "three"] {
        driver.submit(source);
    }
    // The claim grants the first, and breaks at the second.
    let spoil = "UPDATE jobs SET wish = 'not JSON' WHERE id = (SELECT max(id) - 2 FROM jobs)";
    driver.engine.connection.execute(spoil, []).unwrap();
    driver.engine.cache = super::super::cache::JobCache::default();
    let mut claim = driver.claim_of("alice");
    claim.lease_ids.extend([1, 2].map(palisade_core::LeaseId));
    let four = driver.submit_of("four");
    let counter = driver.engine.meta.counter;
    let commands = vec![Command::Claim(claim.clone()), Command::Submit(four)];
    let batch = driver.engine.apply_batch(commands, driver.now);
    assert!(
        matches!(&batch.answers[..], [Err(Failure::Unavailable(_)), Ok(Answer::Submit(_))]),
        "{:?}",
        batch.answers
    );
    let counts = driver.engine.query(&Query::Counts).unwrap();
    assert!(matches!(&counts, View::Counts(counts) if counts[0].1 == 4), "{counts:?}");
    assert_eq!(driver.engine.query(&Query::Leases), Ok(View::Leases(Vec::new())));
    assert_eq!(batch.events.len(), 1, "only the submission is told of");
    // The numbers that it drew stay drawn; the same claim asked again was granted nothing before.
    assert!(driver.engine.meta.counter > counter.next());
    claim.lease_ids.truncate(1);
    assert_eq!(driver.run(claim).grants.len(), 1);
}
