//! Forgetting, over a restart, and in a store that was made before anything could be forgotten.

use palisade_core::{Timestamp, retention::KEEP_MS_MIN};

use crate::{
    command::{Command, Forget},
    conformance::bench::BEGINNING,
    query::{JournalSpan, Query, View},
};

use super::driver::Driver;

fn span(driver: &Driver) -> JournalSpan {
    match driver.engine.query(&Query::JournalSpan).unwrap() {
        View::JournalSpan(span) => span,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_store_that_forgot_all_goes_on_where_it_was_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let done = driver.granted("alice");
    driver.complete(done.job.id, done.pair);
    let before = span(&driver);
    let (all, none) = (BEGINNING.plus_ms(KEEP_MS_MIN), Timestamp(0));
    let forget = Forget { journal_before: all, answers_before: none, after: 0 };
    let now = driver.now;
    let batch = driver.engine.apply_batch(vec![Command::Forget(forget)], now);
    assert!(batch.answers.iter().all(Result::is_ok), "{:?}", batch.answers);
    let mut driver = driver.killed_and_restarted(folder.path(), 10);
    assert_eq!(span(&driver), JournalSpan { pruned: before.next - 1, next: before.next });
    driver.submit("after");
    let all = Query::Events { after: 0, limit: usize::MAX };
    let View::Events(entries) = driver.engine.query(&all).unwrap() else { panic!("entries") };
    assert_eq!(entries.first().map(|(position, _)| *position), Some(before.next));
    let left = "SELECT count(*) FROM journal_jobs";
    let left: u32 = driver.engine.connection.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1, "the index of a job's rows is forgotten with them");
}

#[test]
fn a_journal_from_before_knows_its_age_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    driver.granted("alice");
    let connection = &driver.engine.connection;
    let migration = include_str!("../../../migrations/sqlite/V6__retention.sql");
    let undo = "DROP TRIGGER meta_only_rises; DROP TRIGGER journal_never_changes; \
                DROP INDEX claims_by_age; DROP INDEX requests_by_age; \
                ALTER TABLE journal DROP COLUMN at_ms; ALTER TABLE claims DROP COLUMN at_ms; \
                ALTER TABLE requests DROP COLUMN at_ms; \
                CREATE TRIGGER meta_only_rises BEFORE UPDATE ON meta BEGIN SELECT 1; END; \
                CREATE TRIGGER journal_never_changes BEFORE UPDATE ON journal BEGIN SELECT 1; END;";
    let ages = "SELECT group_concat(at_ms) FROM journal";
    let age = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let (before, next) = (age(ages), span(&driver).next);
    connection.execute_batch(undo).unwrap();
    // A column that a CHECK of another names cannot be dropped alone: the row is made anew.
    let meta = "CREATE TABLE before AS SELECT one, store_id, counter, clock_ms, life, queued, \
                running, complete, failed, cancelled FROM meta; DROP TABLE meta; \
                ALTER TABLE before RENAME TO meta; \
                CREATE TRIGGER meta_only_rises BEFORE UPDATE ON meta BEGIN SELECT 1; END;";
    connection.execute_batch(meta).unwrap();
    connection.execute_batch(migration).unwrap();
    assert_eq!(age(ages), before);
    assert_eq!(span(&driver), JournalSpan { pruned: 0, next });
    assert!(!before.split(',').any(|at| at == "0"), "{before}");
}
