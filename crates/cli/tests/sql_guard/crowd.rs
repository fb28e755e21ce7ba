//! Stories: many writers at once, without a director.

use crate::{
    database::{Database, Holder, Outcome, fence, fresh_export, writers, written_by},
    session::Session,
};

const SESSIONS: usize = 8;
const NUMBERS: usize = 64;

/// The numbers from 1 on, in an order that only looks like chance.
fn shuffled(count: usize) -> Vec<i64> {
    let mut numbers: Vec<i64> = (1..).take(count).collect();
    let mut state = 34_u64;
    for index in (1..count).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let below = u64::try_from(index + 1).expect("small");
        numbers.swap(index, usize::try_from((state >> 33) % below).expect("small"));
    }
    numbers
}

/// Sixty-four writers on one row that has no fence yet. The highest stands at the end, numbers
/// never fall, and whoever did not write was refused as stale.
pub(crate) fn the_highest_of_many_writers_stands(database: &dyn Database, set: &str) {
    let mut monitor = database.session("");
    fresh_export(&mut monitor, "crowd");
    let numbers = shuffled(NUMBERS);
    let mut refused: Vec<i64> = std::thread::scope(|scope| {
        let workers: Vec<_> = numbers
            .chunks(NUMBERS / SESSIONS)
            .map(|mine| {
                scope.spawn(|| {
                    let mut session = database.session(set);
                    let stale = |number: &&i64| !is_written(database, &mut session, **number);
                    mine.iter().filter(stale).copied().collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });

    let written = writers(&mut monitor, "crowd");
    assert!(written.is_sorted_by(|one, next| one < next), "numbers fell: {written:?}");
    let highest = *numbers.iter().max().expect("some");
    assert_eq!(written.last(), Some(&highest));
    assert_eq!(written_by(&mut monitor, "crowd"), highest);
    assert_eq!(fence(&mut monitor, "crowd"), highest);
    refused.extend(&written);
    refused.sort_unstable();
    assert!(refused.iter().copied().eq((1..).take(NUMBERS)), "each number ends once: {refused:?}");
}

/// One writer's transaction, begun again for as long as the database asks for it. Whether it was
/// admitted.
fn is_written(database: &dyn Database, session: &mut Session, number: i64) -> bool {
    let holder = Holder { number, lease: "5c0e1d7a" };
    let steps = [
        database.begin().to_owned(),
        database.guard("crowd", holder),
        database.write("crowd", holder),
        "COMMIT;".to_owned(),
    ];
    'transaction: loop {
        for (index, step) in steps.iter().enumerate() {
            let answer = session.run(step);
            match database.outcome(answer) {
                Outcome::Done => {}
                Outcome::Refused(code) => {
                    assert_eq!(code, "PF001", "of {number}");
                    session.rows("ROLLBACK;");
                    return false;
                }
                Outcome::Again | Outcome::Busy => {
                    if index > 0 {
                        session.rows("ROLLBACK;");
                    }
                    continue 'transaction;
                }
            }
        }
        return true;
    }
}
