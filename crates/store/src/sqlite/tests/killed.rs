//! kill -9 in the middle of load: what was acknowledged is there, and no number comes twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    sync::Arc,
};

use palisade_core::{JobId, Number, job::JobState};

use crate::{
    conformance::{Bench, bench::BEGINNING},
    query::{Query, View},
    sqlite::SqliteStore,
};

use super::{children, driver::Driver};

const ROUNDS: u64 = 4;

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = BTreeSet::new();
    let mut states = BTreeMap::new();
    for round in 1..=ROUNDS {
        let test = "sqlite::tests::killed::child_under_load";
        let mut child = children::spawn(test, folder.path(), None);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        for line in lines {
            let line = line.unwrap();
            // The test harness says things too.
            let Some(line) = line.strip_prefix("acknowledged ") else { continue };
            let [what, job, number] = line.split(' ').collect::<Vec<_>>()[..] else {
                // The last line may be cut off.
                continue;
            };
            acknowledged += 1;
            if acknowledged == 100 * round {
                // The pipe is drained to its end afterwards: what is in it was acknowledged.
                child.kill().unwrap();
            }
            let (Ok(job), Ok(number)) = (job.parse::<JobId>(), number.parse::<Number>()) else {
                continue;
            };
            if what == "granted" || what == "submitted" {
                assert!(numbers.insert(number), "{number} was drawn twice");
            }
            states.insert(job, (what.to_owned(), number));
        }
        child.wait().unwrap();
        assert!(acknowledged >= 100 * round, "the child ended early");
    }
    let mut driver = Driver::open(folder.path(), BEGINNING);
    for (id, (what, number)) in &states {
        let job = driver.job(*id);
        match what.as_str() {
            "submitted" => assert!(job.submission(*number).is_some(), "{id}"),
            "granted" => assert!(job.attempt(*number).is_some(), "{id}"),
            "completed" => {
                assert_eq!((job.state, job.completed_by()), (JobState::Complete, Some(*number)));
            }
            other => panic!("nobody writes {other}"),
        }
        let history = driver.engine.query(&Query::History(*id)).unwrap();
        assert!(matches!(history, View::History(entries) if !entries.is_empty()), "{id}");
    }
    let next = driver.submit("one more").submission;
    assert!(next > *numbers.last().unwrap());
    let check = "PRAGMA integrity_check";
    let sound: String = driver.engine.connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

/// Says what was answered, at once.
fn acknowledge(what: &str, job: JobId, number: Number) {
    let mut out = std::io::stdout().lock();
    // One write a line, so that a kill cuts at most the last.
    out.write_all(format!("acknowledged {what} {job} {number}\n").as_bytes()).unwrap();
}

#[test]
#[ignore = "a child of the test above"]
fn child_under_load() {
    let Some(folder) = children::folder() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        // Each life brings inputs of its own.
        let life = std::process::id();
        let bench = Bench::new("load", |clock| SqliteStore::open(&folder, clock).unwrap());
        let bench = Arc::new(bench);
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..16 {
            let bench = Arc::clone(&bench);
            tasks.spawn(async move { work(&bench, &format!("worker-{life}-{task}")).await });
        }
        tasks.join_all().await;
    });
}

/// Submits, claims and completes until it is killed.
async fn work(bench: &Bench<SqliteStore>, worker: &str) {
    use crate::StoreExt;
    loop {
        let source = format!("source of {worker} {}", bench.fresh());
        let digest = bench.bring(&source).await;
        let wish = crate::conformance::bench::wish_for(digest, source.len() as u64);
        let submitted = bench.submit(&wish).await;
        acknowledge("submitted", submitted.job, submitted.submission);
        let Some(grant) = bench.try_grant(worker).await else { continue };
        acknowledge("granted", grant.job.id, grant.pair.token);
        let complete = bench.complete_of(&grant).await;
        bench.store.run(complete).await.unwrap();
        acknowledge("completed", grant.job.id, grant.pair.token);
    }
}
