//! The stories on `SQLite`, with both of its journals, and what it has of its own.

use crate::{
    crowd,
    database::{A, B, Database, Holder, Outcome, fence},
    orders::{self, Tally},
    paused, refusals,
    sqlite::Sqlite,
};

/// Each journal with each way to begin, and how many steps wait then: a transaction that begins
/// as a writer waits a step earlier.
const MODES: [(&str, &str, usize, Tally); 4] = [
    ("DELETE", "BEGIN IMMEDIATE;", 68, Tally { refused: 15, waits: 27, again: 0 }),
    ("WAL", "BEGIN IMMEDIATE;", 68, Tally { refused: 15, waits: 27, again: 0 }),
    ("DELETE", "BEGIN;", 60, Tally { refused: 25, waits: 18, again: 0 }),
    ("WAL", "BEGIN;", 60, Tally { refused: 25, waits: 18, again: 0 }),
];

#[test]
fn in_every_order_of_two_transactions_the_newer_one_stands() {
    for (journal, begin, waits, _) in MODES {
        let sqlite = Sqlite::with(journal, begin);
        let expected = Tally { refused: 35, waits, again: 0 };
        assert_eq!(orders::both_write(&sqlite, ""), expected, "{journal} {begin}");
    }
}

#[test]
fn a_holder_that_dies_after_its_raise_has_fenced_the_one_before() {
    for (journal, begin, _, expected) in MODES {
        let sqlite = Sqlite::with(journal, begin);
        assert_eq!(orders::b_dies(&sqlite, ""), expected, "{journal} {begin}");
    }
}

#[test]
fn refusals_have_stable_codes_and_fences_are_kept() {
    let sqlite = Sqlite::start();
    refusals::an_older_number_is_stale(&sqlite);
    refusals::a_stranger_with_the_number_is_foreign(&sqlite);
    refusals::the_other_kind_of_number_is_wrong(&sqlite);
    refusals::what_is_not_allowed_is_invalid(&sqlite);
    refusals::only_what_is_committed_raises(&sqlite);
    refusals::the_operator_resets_a_fence(&sqlite);
    refusals::a_second_installation_keeps_the_fences(&sqlite);
    refusals::every_resource_has_a_fence_of_its_own(&sqlite);
}

#[test]
fn the_highest_of_many_writers_stands() {
    for journal in ["DELETE", "WAL"] {
        let sqlite = Sqlite::with(journal, "BEGIN IMMEDIATE;");
        crowd::the_highest_of_many_writers_stands(&sqlite, "PRAGMA busy_timeout = 60000;");
    }
}

#[test]
fn a_paused_holder_keeps_the_file_until_it_is_killed() {
    for journal in ["DELETE", "WAL"] {
        paused::a_kill_ends_it(&Sqlite::with(journal, "BEGIN IMMEDIATE;"));
    }
}

#[test]
fn a_holder_that_was_paused_before_its_guard_is_refused() {
    paused::a_pause_before_the_guard_is_noticed(&Sqlite::start(), "BEGIN;", false);
    let sqlite = Sqlite::with("WAL", "BEGIN IMMEDIATE;");
    let begin = "BEGIN; SELECT count(*) FROM exports;";
    paused::a_pause_before_the_guard_is_noticed(&sqlite, begin, true);
}

#[test]
fn a_reader_waits_for_nobody_and_sees_no_half_of_a_transaction() {
    let sqlite = Sqlite::with("WAL", "BEGIN IMMEDIATE;");
    let (mut writer, mut reader) = (sqlite.session(""), sqlite.session(""));
    writer.rows(sqlite.begin());
    writer.rows(&sqlite.guard("read", A));
    let rows = reader.rows("SELECT * FROM palisade_guard;");
    assert!(rows.is_empty(), "{rows:?}");
    let answer = reader.run(&sqlite.raise("read", B));
    assert!(matches!(sqlite.outcome(answer), Outcome::Busy));
    writer.rows("COMMIT;");
    assert_eq!(reader.rows("SELECT * FROM palisade_guard;"), ["read|33|5c0e1d7a|grants"]);
}

#[test]
fn a_policy_for_conflicts_does_not_soften_the_guard() {
    let sqlite = Sqlite::start();
    let mut session = sqlite.session("");
    session.rows(&sqlite.raise("policy", B));
    for policy in ["OR IGNORE", "OR REPLACE", "OR FAIL", "OR ABORT", "OR ROLLBACK"] {
        let soften = |sql: String| sql.replacen("INSERT", &format!("INSERT {policy}"), 1);
        session.refused("PF001", &soften(sqlite.guard("policy", A)));
        let stranger = Holder { number: 34, lease: "00000000" };
        session.refused("PF002", &soften(sqlite.guard("policy", stranger)));
        session.rows(&soften(sqlite.guard("policy", B)));
        assert_eq!(fence(&mut session, "policy"), B.number, "{policy}");
    }
    let replace = sqlite.guard("policy", Holder { number: 35, ..B });
    session.rows(&replace.replacen("INSERT", "INSERT OR REPLACE", 1));
    assert_eq!(session.rows("SELECT * FROM palisade_guard;"), ["policy|35|b81f90c2|grants"]);
}

#[test]
fn values_of_another_type_are_invalid() {
    let sqlite = Sqlite::start();
    let mut session = sqlite.session("");
    let cases = [
        ("'types'", "'34'", "'b81f90c2'", "'grants'"),
        ("'types'", "34.0", "'b81f90c2'", "'grants'"),
        ("x'7479706573'", "34", "'b81f90c2'", "'grants'"),
        ("42", "34", "'b81f90c2'", "'grants'"),
        ("'types'", "34", "x'b81f90c2'", "'grants'"),
        ("'types'", "34", "'b81f90c2'", "x'6772616e7473'"),
    ];
    for (resource, number, lease, kind) in cases {
        session.refused("PF004", &sqlite.guard_of(resource, number, lease, kind));
    }
    assert_eq!(session.rows("SELECT count(*) FROM palisade_fence;"), ["0"]);
}
