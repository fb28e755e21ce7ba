//! Condemned generations: tombstones that no late upload brings back.

use palisade_core::{
    Digest,
    blob::{Blob, BlobState},
    history::Joined,
};

use crate::{
    Failure,
    command::{BeginBlob, Complete, FinishBlob, Pin},
    conformance::bench::manifest,
    fault::Fault,
    query::{Query, View},
    sqlite::SqliteEngine,
    tables::Tables,
};

use super::driver::Driver;

fn newest(driver: &Driver, content: &str) -> Blob {
    match driver.engine.query(&Query::Blob(Digest::of(content.as_bytes()))).unwrap() {
        View::Blob(Some(blob)) => blob,
        other => panic!("it was brought: {other:?}"),
    }
}

fn write(engine: &mut SqliteEngine, blob: &Blob) -> Result<(), Fault> {
    engine.begin().unwrap();
    let written = engine.put_blob(blob);
    match written {
        Ok(()) => engine.commit_now().unwrap(),
        Err(_) => engine.roll_back(),
    }
    written
}

fn condemn(driver: &mut Driver, content: &str) -> Blob {
    let blob = Blob { state: BlobState::Condemned, ..newest(driver, content) };
    write(&mut driver.engine, &blob).unwrap();
    blob
}

#[test]
fn a_late_upload_to_a_condemned_place_makes_nothing_present() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let digest = Digest::of(b"bytes");
    let pin = Pin::Until(driver.now.plus_ms(1_000));
    let begun = driver.run(BeginBlob { digest, pin });
    condemn(&mut driver, "bytes");
    let finish = FinishBlob { digest, generation: begun.generation, size_bytes: 5 };
    let Err(Failure::Refused(refusal)) = driver.try_run(finish) else { panic!("it is refused") };
    assert_eq!(refusal.code(), "stale_generation");
    // Whoever comes next gets a place of its own.
    let next = driver.run(BeginBlob { digest, pin });
    assert!(next.generation > begun.generation && !next.present);
    driver.run(FinishBlob { generation: next.generation, ..finish });
    assert_eq!(newest(&driver, "bytes").generation, next.generation);
    let late = driver.try_run(finish);
    assert!(matches!(late, Err(Failure::Refused(_))), "{late:?}");
    assert_eq!(newest(&driver, "bytes").state, BlobState::Present);
}

#[test]
fn a_commit_does_not_name_a_condemned_blob() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    driver.bring("output");
    condemn(&mut driver, "output");
    let complete = Complete { job: grant.job.id, pair: grant.pair, manifest: manifest("output") };
    let Err(Failure::Refused(refusal)) = driver.try_run(complete.clone()) else {
        panic!("it is refused")
    };
    assert_eq!(refusal.code(), "missing_blob");
    driver.bring("output");
    driver.run(complete);
}

#[test]
fn a_complete_job_that_lost_a_blob_answers_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let submit = driver.submit_of("source");
    let first = driver.run(submit.clone());
    let grant = driver.grant("alice");
    driver.complete(grant.job.id, grant.pair);
    assert_eq!(driver.run(submit.clone()).how, Joined::Cached);
    condemn(&mut driver, &format!("output of {}", first.job));
    let second = driver.run(submit);
    assert_eq!(second.how, Joined::New);
    assert!(second.job > first.job);
}

#[test]
fn the_database_itself_refuses_to_name_a_condemned_place_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    driver.bring("bytes");
    let condemned = condemn(&mut driver, "bytes");
    let back = Blob { state: BlobState::Present, ..condemned };
    assert!(matches!(write(&mut driver.engine, &back), Err(Fault::Engine(_))));
    assert_eq!(newest(&driver, "bytes"), condemned);
}
