//! Stories: a holder that stops, and wakes when another has its work.

use crate::{
    database::{A, B, Database, Outcome, fresh_export, writers, written_by},
    session::{Answer, Session},
};

/// A stops in the middle of its transaction and keeps the row. The database's limit on silence
/// ends that transaction, B goes on, and A's commit finds nobody. Both sessions say `set` first;
/// `limit` makes A's limit short, once it holds the row.
pub(crate) fn the_limit_on_silence_ends_it(database: &dyn Database, set: &str, limit: &str) {
    let (mut monitor, mut first, mut second) =
        (database.session(""), database.session(set), database.session(set));
    fresh_export(&mut monitor, "paused");
    hold(database, &mut first, "paused");
    first.rows(limit);
    first.pause();

    second.rows(database.begin());
    second.send(&database.guard("paused", B));
    let answer = second.wait();
    assert!(matches!(answer, Answer::Done(_)), "the limit lets B through: {answer:?}");
    second.rows(&database.write("paused", B));
    second.rows("COMMIT;");

    first.wake();
    let woken = first.run("COMMIT;");
    assert!(matches!(woken, Answer::Lost(_)), "A's transaction is gone: {woken:?}");
    assert_eq!(writers(&mut monitor, "paused"), [B.number], "A leaves no trace");
    assert_eq!(written_by(&mut monitor, "paused"), B.number);
    let mut first = database.session("");
    first.refused("PF001", &database.guard("paused", A));
}

/// A stops before its guard, after it has begun (and looked at `look`). When it wakes, it is
/// refused; perhaps asked first to begin again.
pub(crate) fn a_pause_before_the_guard_is_noticed(
    database: &dyn Database,
    begin: &str,
    begins_again: bool,
) {
    let (mut first, mut second) = (database.session(""), database.session(""));
    fresh_export(&mut second, "before");
    first.rows(begin);
    first.pause();
    second.rows(database.begin());
    second.rows(&database.guard("before", B));
    second.rows(&database.write("before", B));
    second.rows("COMMIT;");
    first.wake();

    if begins_again {
        let answer = first.run(&database.guard("before", A));
        assert!(matches!(database.outcome(answer), Outcome::Again | Outcome::Busy));
        first.rows("ROLLBACK;");
        first.rows(begin);
    }
    first.refused("PF001", &database.guard("before", A));
    first.rows("ROLLBACK;");
    assert_eq!(writers(&mut second, "before"), [B.number]);
}

/// Where no limit ends the paused one: others are told that they must wait, until it wakes or its
/// process is killed, which works on a stopped one too.
pub(crate) fn a_kill_ends_it(database: &dyn Database) {
    let (mut first, mut second) = (database.session(""), database.session(""));
    fresh_export(&mut second, "killed");
    hold(database, &mut first, "killed");
    first.pause();
    let answer = second.run(database.begin());
    assert!(matches!(database.outcome(answer), Outcome::Busy));
    first.die();
    second.rows(database.begin());
    second.rows(&database.guard("killed", B));
    second.rows(&database.write("killed", B));
    second.rows("COMMIT;");
    assert_eq!(writers(&mut second, "killed"), [B.number], "A leaves no trace");
}

/// A begins, shows its number and writes.
fn hold(database: &dyn Database, session: &mut Session, resource: &str) {
    session.rows(database.begin());
    session.rows(&database.guard(resource, A));
    session.rows(&database.write(resource, A));
}
