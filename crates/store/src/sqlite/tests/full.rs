//! No room: what fits is done, what does not is told so, and nothing is half there.

use palisade_core::transition::Beat;

use crate::{
    Failure,
    command::{Answer, Command},
    query::{Query, View},
};

use super::driver::Driver;

#[test]
fn a_full_disk_fails_what_does_not_fit_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    let mut commands = Vec::new();
    for index in 0..60 {
        let submit = driver.submit_of(&format!("input {index}"));
        commands.push(Command::Submit(submit));
    }
    let beat = Driver::beat_of("alice", 1, &grant);
    commands.insert(0, Command::Heartbeat(beat.clone()));
    commands.push(Command::Heartbeat(beat));
    let before = driver.job(grant.job.id);
    driver.engine.leave_room(Some(3)).unwrap();
    driver.now = driver.now.plus_ms(1_000);
    let batch = driver.engine.apply_batch(commands.clone(), driver.now);

    let done = |answers: &[Result<Answer, Failure>]| {
        answers.iter().filter(|answer| matches!(answer, Ok(Answer::Submit(_)))).count()
    };
    let fitted = done(&batch.answers);
    assert!(fitted > 0 && fitted < 60, "{fitted} fitted");
    for answer in &batch.answers {
        match answer {
            Ok(Answer::Submit(_)) | Err(Failure::Unavailable(_)) => {}
            Ok(Answer::Heartbeat(beats)) => assert_eq!(beats.leases, [Some(Beat::Held)]),
            other => panic!("neither done nor unavailable: {other:?}"),
        }
    }
    // Memory and disk agree on what was done, and the renewal among it stands.
    let counts = driver.engine.query(&Query::Counts).unwrap();
    let View::Counts(counts) = counts else { panic!("counts are asked for") };
    assert_eq!(counts[0].1, fitted as u64);
    assert_eq!(batch.events.len(), fitted);
    let after = driver.job(grant.job.id);
    assert_eq!(after.attempts[0].lease.renewed_at, driver.now);
    assert_eq!(after.attempts.len(), before.attempts.len());

    // With room again, the rest is done; no number comes twice.
    driver.engine.leave_room(None).unwrap();
    let again = driver.engine.apply_batch(commands, driver.now);
    assert_eq!(done(&again.answers), 60);
    let mut numbers: Vec<_> = batch
        .answers
        .iter()
        .chain(&again.answers)
        .filter_map(|answer| match answer {
            Ok(Answer::Submit(submitted)) => Some(submitted.submission),
            _ => None,
        })
        .collect();
    let drawn = numbers.len();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), drawn);
    let mut driver = driver.killed_and_restarted(folder.path(), 10);
    let next = driver.submit("one more").submission;
    assert!(next > *numbers.last().unwrap());
}
