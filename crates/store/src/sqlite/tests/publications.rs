//! Publications and crashes: killed between every two steps, the end is the same; and what a name
//! shows is kept by the name.

use std::path::Path;

use palisade_core::{JobId, Number, job::PublicationOutcome, object::Content};

use crate::{
    command::{Answer, Command, Publish, Submit, Submitted},
    conformance::publications::{key, named},
    query::{Query, View},
    sqlite::tests::driver::Driver,
};

fn submit_as(driver: &mut Driver, source: &str, name: &str) -> Submitted {
    let Submit { wish, .. } = driver.submit_of(source);
    driver.run(Submit { wish: named(wish, name), request_id: None })
}

fn publish(driver: &mut Driver) -> usize {
    driver.run(Publish { limit: 10 }).carried_out.len()
}

/// What a name shows: the job, the number that wrote, and the version.
fn shown(driver: &Driver, name: &str) -> Option<(JobId, Number, Number)> {
    let View::Object(object) = driver.engine.query(&Query::Object(key(name))).unwrap() else {
        panic!("each query is answered by its own kind")
    };
    let object = object?;
    match object.content {
        Some(Content::Manifest { job, .. }) => Some((job, object.last.number, object.last.version)),
        other => panic!("{other:?}"),
    }
}

fn state(driver: &Driver, submitted: Submitted) -> &'static str {
    let job = driver.job(submitted.job);
    job.submission(submitted.submission).unwrap().publication_state().unwrap()
}

/// The generations that something of this kind keeps.
fn kept(driver: &Driver, kind: &str) -> Vec<(i64, i64)> {
    let sql = "SELECT keeper, generation FROM keepers WHERE kind = ?1 ORDER BY 1, 2";
    let mut statement = driver.engine.connection.prepare(sql).unwrap();
    let rows = statement.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Monday's and Tuesday's exports and Wednesday's second wish for Monday's, one step after another.
/// The process is killed after the step of that number.
fn days(folder: &Path, killed_after: usize) -> usize {
    let mut driver = Some(Driver::begin(folder));
    let mut steps = 0;
    let mut step = |driver: &mut Option<Driver>| {
        if steps == killed_after {
            let killed = driver.take().expect("it runs between the steps");
            *driver = Some(killed.killed_and_restarted(folder, 100));
        }
        steps += 1;
    };
    macro_rules! then {
        ($driver:ident => $done:expr) => {{
            let done = {
                let $driver = driver.as_mut().expect("it runs between the steps");
                $done
            };
            step(&mut driver);
            done
        }};
    }
    let monday = then!(driver => submit_as(driver, "monday", "film"));
    let tuesday = then!(driver => submit_as(driver, "tuesday", "film"));
    let first = then!(driver => driver.grant("alice"));
    let second = then!(driver => driver.grant("bob"));
    assert_eq!((first.job.id, second.job.id), (monday.job, tuesday.job));
    then!(driver => driver.complete(second.job.id, second.pair));
    then!(driver => publish(driver));
    then!(driver => driver.complete(first.job.id, first.pair));
    then!(driver => publish(driver));
    {
        let driver = driver.as_ref().unwrap();
        assert_eq!(shown(driver, "film").map(|(job, ..)| job), Some(tuesday.job));
        assert_eq!(state(driver, monday), "superseded");
    }
    let wednesday = then!(driver => submit_as(driver, "monday", "film"));
    // Nobody is told to: time does it, and a repeat finds nothing to do.
    then!(driver => {
        let ticked = driver.engine.apply_batch(vec![Command::Tick], driver.now);
        assert!(matches!(ticked.answers[..], [Ok(Answer::Tick(_))]));
    });
    assert_eq!(then!(driver => publish(driver)), 0);
    let driver = driver.unwrap();
    let (job, number, version) = shown(&driver, "film").expect("it is shown");
    assert_eq!((job, number), (monday.job, wednesday.submission));
    assert_eq!(state(&driver, tuesday), "published");
    assert_eq!(state(&driver, wednesday), "published");
    let recorded = driver.job(monday.job).submissions[1].publication.clone().unwrap().outcome;
    let Some(PublicationOutcome::Published { version: told, .. }) = recorded else {
        panic!("{recorded:?}")
    };
    assert_eq!(told, version);
    steps
}

#[test]
fn killed_between_any_two_steps_the_newest_wish_is_shown_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let steps = days(folder.path(), usize::MAX);
    for killed_after in 0..steps {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(days(folder.path(), killed_after), steps);
    }
}

#[test]
fn what_was_committed_and_not_published_is_published_after_the_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let submitted = submit_as(&mut driver, "source", "film");
    let grant = driver.grant("alice");
    driver.complete(grant.job.id, grant.pair);
    let mut driver = driver.killed_and_restarted(folder.path(), 10);
    assert_eq!((state(&driver, submitted), shown(&driver, "film")), ("pending", None));
    driver.pass_ms(1_000);
    assert_eq!(state(&driver, submitted), "published");
    let before = shown(&driver, "film");
    let mut driver = driver.killed_and_restarted(folder.path(), 10);
    driver.pass_ms(1_000);
    assert_eq!((publish(&mut driver), shown(&driver, "film")), (0, before));
}

#[test]
fn a_name_keeps_what_it_shows_and_lets_go_of_what_it_showed() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    for source in ["one", "two"] {
        submit_as(&mut driver, source, "film");
        let grant = driver.grant("alice");
        driver.complete(grant.job.id, grant.pair);
        assert_eq!(publish(&mut driver), 1);
        let (job, _, version) = shown(&driver, "film").unwrap();
        let of_job = i64::try_from(job.0.get()).unwrap();
        let outputs = kept(&driver, "output");
        let outputs = outputs.iter().filter(|(keeper, _)| *keeper == of_job);
        let version = i64::try_from(version.get()).unwrap();
        let expected: Vec<_> = outputs.map(|(_, generation)| (version, *generation)).collect();
        assert_eq!(expected.len(), 1);
        assert_eq!(kept(&driver, "object"), expected, "these alone, beside the jobs themselves");
    }
}

#[test]
fn the_database_refuses_to_take_back_what_came_of_a_publication() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    submit_as(&mut driver, "source", "film");
    let grant = driver.grant("alice");
    driver.complete(grant.job.id, grant.pair);
    publish(&mut driver);
    for sql in [
        "UPDATE submissions SET publication = NULL",
        "UPDATE submissions SET publish_key = 'other'",
        "UPDATE submissions SET publish_key = NULL",
        "UPDATE objects SET fence = fence - 1",
        "UPDATE objects SET kind = 'grants'",
    ] {
        assert!(driver.engine.connection.execute(sql, []).is_err(), "{sql}");
    }
}

#[test]
fn a_job_that_cannot_be_read_does_not_hold_up_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let mut submitted = Vec::new();
    for (source, name) in [("one", "first"), ("two", "second")] {
        submitted.push(submit_as(&mut driver, source, name));
        let grant = driver.grant("alice");
        driver.complete(grant.job.id, grant.pair);
    }
    let sql = "UPDATE jobs SET manifest = '{' WHERE id = ?1";
    let damaged = i64::try_from(submitted[0].job.0.get()).unwrap();
    driver.engine.connection.execute(sql, [damaged]).unwrap();
    assert_eq!(publish(&mut driver), 1);
    assert_eq!(state(&driver, submitted[1]), "published");
}
