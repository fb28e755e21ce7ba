//! The database refuses what a bug would write.

use palisade_core::job::{Closed, Job, JobState};

use crate::{fault::Fault, tables::Tables};

use super::driver::Driver;

#[test]
fn what_breaks_an_invariant_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let done = driver.granted("alice");
    driver.complete(done.job.id, done.pair);
    let running = driver.granted("bob");
    driver.submit("waiting");
    let done = done.job.id.0.get();
    let running = running.job.id.0.get();
    let statements = [
        "UPDATE meta SET counter = counter - 1".to_owned(),
        "UPDATE meta SET counter = 9007199254740992".to_owned(),
        "UPDATE meta SET clock_ms = clock_ms - 1".to_owned(),
        "UPDATE meta SET life = life - 1".to_owned(),
        "UPDATE meta SET queued = -1".to_owned(),
        "INSERT INTO meta SELECT 2, store_id, 0, 0, 0, 0, 0, 0, 0, 0 FROM meta".to_owned(),
        format!("UPDATE jobs SET fence = 9007199254740992 WHERE id = {running}"),
        format!("UPDATE jobs SET state = 'stuck' WHERE id = {running}"),
        format!("UPDATE jobs SET state = 'complete', live = 0 WHERE id = {running}"),
        format!("UPDATE jobs SET state = 'failed', live = 0 WHERE id = {running}"),
        format!("UPDATE jobs SET live = 0 WHERE id = {running}"),
        format!("UPDATE jobs SET manifest = NULL WHERE id = {done}"),
        format!(
            "UPDATE jobs SET job_key = (SELECT job_key FROM jobs WHERE id <> {running} \
                 AND live = 1) WHERE id = {running}"
        ),
        format!("UPDATE attempts SET close_reason = 'failed' WHERE job = {done}"),
        format!("UPDATE attempts SET closed_at_ms = 1 WHERE job = {running}"),
        format!(
            "UPDATE attempts SET closed_at_ms = 1, close_reason = 'bored' \
                 WHERE job = {running}"
        ),
        format!(
            "UPDATE attempts SET closed_at_ms = 1, close_reason = 'failed' \
                 WHERE job = {running}"
        ),
        format!("UPDATE attempts SET token = 9007199254740992 WHERE job = {running}"),
        "UPDATE blobs SET size_bytes = NULL".to_owned(),
        "INSERT INTO blobs SELECT 77777, digest, 'uploading', NULL FROM blobs LIMIT 1".to_owned(),
        "UPDATE journal SET events = '[]'".to_owned(),
        "UPDATE submissions SET how = 'somehow'".to_owned(),
    ];
    for sql in statements {
        let written = driver.engine.connection.execute(&sql, []);
        assert!(written.is_err(), "{sql}");
    }
}

/// Writes a record as a buggy rule would have it.
fn put(driver: &mut Driver, before: &Job, job: &Job) -> Result<(), Fault> {
    driver.engine.begin().unwrap();
    let written = driver.engine.put_job(Some(before), job);
    driver.engine.roll_back();
    written
}

#[test]
fn a_record_that_turns_back_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    driver.complete(grant.job.id, grant.pair);
    let done = driver.job(grant.job.id);
    let granted = driver.granted("bob");
    let (running, pair) = (granted.job, granted.pair);
    let closed = done.attempts[0].closed.clone();

    let mut lower = running.clone();
    lower.fence = palisade_core::Number::ZERO;
    let mut undone = done.clone();
    (undone.state, undone.completion) = (JobState::Queued, None);
    let mut opened = done.clone();
    opened.attempts[0].closed = None;
    let mut closed_again = done.clone();
    let late = closed.map(|closed| Closed { at: closed.at.plus_ms(1), ..closed });
    closed_again.attempts[0].closed = late;
    for (before, after) in
        [(&running, &lower), (&done, &undone), (&done, &opened), (&done, &closed_again)]
    {
        let written = put(&mut driver, before, after);
        assert!(matches!(written, Err(Fault::Corrupt { .. })), "{after:?}: {written:?}");
    }
    // Nor is one written over another that has moved on since it was read.
    let mut stale = running.clone();
    stale.attempts[0].closed.clone_from(&done.attempts[0].closed);
    driver.complete(running.id, pair);
    assert!(matches!(put(&mut driver, &running, &stale), Err(Fault::Corrupt { .. })));
}

#[test]
fn commits_are_on_the_disk_before_they_return() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::begin(folder.path());
    let pragma = |name: &str| -> String {
        let read = |row: &rusqlite::Row<'_>| {
            row.get_ref(0)?
                .as_str()
                .map(str::to_owned)
                .or_else(|_| row.get::<_, i64>(0).map(|number| number.to_string()))
        };
        driver.engine.connection.query_row(&format!("PRAGMA {name}"), [], read).unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal");
    // 2 is FULL: the log is synced at every commit.
    assert_eq!(pragma("synchronous"), "2");
}

#[test]
fn claims_walk_an_index_however_many_wait() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::begin(folder.path());
    let plan = |sql: &str| -> String {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = driver.engine.connection.prepare(&sql).unwrap();
        let mut rows = statement.raw_query();
        let mut lines = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            lines.push(row.get::<_, String>(3).unwrap());
        }
        lines.join("; ")
    };
    for sql in crate::sqlite::due::STATEMENTS {
        let plan = plan(sql);
        assert!(plan.contains("USING COVERING INDEX jobs_due"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
    }
}
