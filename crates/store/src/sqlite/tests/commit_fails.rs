//! An IO error at the commit: nobody knows what reached the disk, so that is what is answered.

use palisade_core::Number;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Failure, command::Command};

use super::{children, driver::Driver};

/// No file grows or is written any more: a real error of the system at every write.
fn writes_fail(fail: bool) {
    let now = getrlimit(Resource::Fsize);
    let current = if fail { Some(0) } else { now.maximum };
    setrlimit(Resource::Fsize, Rlimit { current, maximum: now.maximum }).unwrap();
}

#[test]
fn an_error_at_the_commit_is_unknown_and_the_database_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::commit_fails::child_cannot_write";
    // Ignored, so that the write fails instead of ending the process.
    let child = children::spawn(test, folder.path(), Some("trap '' XFSZ"));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("all as it should be"), "{said}");
}

#[test]
#[ignore = "a child of the test above"]
fn child_cannot_write() {
    let Some(folder) = children::folder() else { return };
    let mut driver = Driver::begin(&folder);
    let grant = driver.granted("alice");
    let submit = driver.submit_of("another source");
    let last = driver.engine.meta.counter;
    driver.pass_ms(2_000);

    writes_fail(true);
    let outcome = driver.try_run(submit.clone());
    assert!(matches!(outcome, Err(Failure::Unknown(_))), "{outcome:?}");
    // Not even a renewal is answered until it is known what the disk has.
    let beat = Driver::beat_of("alice", 1, &grant);
    let outcome = driver.try_run(beat.clone());
    assert!(matches!(outcome, Err(Failure::Unavailable(_))), "{outcome:?}");

    writes_fail(false);
    let life = driver.engine.meta.life;
    driver.now = driver.now.plus_ms(40_000);
    let claim = driver.claim_of("bob");
    let commands = vec![Command::Claim(claim), Command::Heartbeat(beat)];
    let batch = driver.engine.apply_batch(commands, driver.now);
    assert!(batch.answers.iter().all(Result::is_ok), "{:?}", batch.answers);
    assert_eq!(driver.engine.meta.life, life + 1, "it counts as a start");
    assert_eq!(driver.job(grant.job.id).attempts.len(), 1, "the lease got its time back");
    // Asked again it is done, and the number of the unknown outcome is not drawn again.
    let submitted = driver.run(submit);
    assert!(submitted.submission > last.next(), "{submitted:?}");
    assert!(submitted.submission < Number::MAX);
    let completed = driver.complete(grant.job.id, grant.pair);
    assert_eq!(completed.completion.token, grant.pair.token);
    println!("all as it should be");
}
