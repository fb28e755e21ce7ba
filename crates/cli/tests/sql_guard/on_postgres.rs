//! The stories on `PostgreSQL`, at each of its isolation levels, and what it has of its own.

use crate::{
    crowd,
    database::{A, B, Database, fence},
    orders::{self, Tally},
    paused,
    postgres::{Postgres, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, isolation},
    refusals,
};

#[test]
fn in_every_order_of_two_transactions_the_newer_one_stands() {
    let judged = Tally { refused: 35, waits: 60, again: 0 };
    // Who waited is asked to begin again, and is judged then.
    let begun_again = Tally { again: 60, ..judged };
    for (level, expected) in
        [(READ_COMMITTED, judged), (REPEATABLE_READ, begun_again), (SERIALIZABLE, begun_again)]
    {
        let postgres = Postgres::start();
        assert_eq!(orders::both_write(&postgres, &isolation(level)), expected, "{level}");
    }
}

#[test]
fn a_holder_that_dies_after_its_raise_has_fenced_the_one_before() {
    let postgres = Postgres::start();
    let expected = Tally { refused: 25, waits: 18, again: 0 };
    assert_eq!(orders::b_dies(&postgres, ""), expected);
}

#[test]
fn refusals_have_stable_codes_and_fences_are_kept() {
    let postgres = Postgres::start();
    refusals::an_older_number_is_stale(&postgres);
    refusals::a_stranger_with_the_number_is_foreign(&postgres);
    refusals::the_other_kind_of_number_is_wrong(&postgres);
    refusals::what_is_not_allowed_is_invalid(&postgres);
    refusals::only_what_is_committed_raises(&postgres);
    refusals::the_operator_resets_a_fence(&postgres);
    refusals::a_second_installation_keeps_the_fences(&postgres);
    refusals::every_resource_has_a_fence_of_its_own(&postgres);
}

#[test]
fn the_highest_of_many_writers_stands() {
    for level in [READ_COMMITTED, SERIALIZABLE] {
        let postgres = Postgres::start();
        crowd::the_highest_of_many_writers_stands(&postgres, &isolation(level));
    }
}

#[test]
fn a_paused_holder_is_ended_by_the_limit_on_silence() {
    let limit = "SET idle_in_transaction_session_timeout = '300ms';";
    for level in [READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE] {
        let postgres = Postgres::start();
        paused::the_limit_on_silence_ends_it(&postgres, &isolation(level), limit);
    }
}

#[test]
fn a_holder_that_was_paused_before_its_guard_is_refused() {
    let cases = [
        ("BEGIN; SELECT count(*) FROM exports;", false),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM exports;", true),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM exports;", true),
        // Nothing was read yet: the snapshot is the guard's own.
        ("BEGIN ISOLATION LEVEL SERIALIZABLE;", false),
    ];
    let postgres = Postgres::start();
    for (begin, begins_again) in cases {
        paused::a_pause_before_the_guard_is_noticed(&postgres, begin, begins_again);
        let tables = "TRUNCATE exports, writes, palisade_fence;";
        postgres.session("").rows(tables);
    }
}

#[test]
fn the_guard_limits_silence_for_its_transaction_alone() {
    let postgres = Postgres::start();
    let mut session = postgres.session("");
    let show = "SHOW idle_in_transaction_session_timeout;";
    session.rows("BEGIN;");
    session.rows(&postgres.guard("limits", A));
    assert_eq!(session.rows(show), ["30s"]);
    session.rows("COMMIT;");
    assert_eq!(session.rows(show), ["0"]);
    session.rows("SET idle_in_transaction_session_timeout = '2min'; BEGIN;");
    session.rows(&postgres.guard("limits", A));
    assert_eq!(session.rows(show), ["2min"], "a limit of your own is kept");
}

#[test]
fn fences_do_not_wait_for_each_other() {
    let postgres = Postgres::start();
    let (mut first, mut second) = (postgres.session("BEGIN;"), postgres.session("BEGIN;"));
    for resource in ["one", "three"] {
        first.rows(&postgres.guard(resource, A));
    }
    for resource in ["two", "four"] {
        second.rows(&postgres.guard(resource, B));
    }
}

#[test]
fn an_application_may_guard_and_raise_and_nothing_else() {
    let postgres = Postgres::start();
    postgres.session("").rows(
        "CREATE ROLE shop_application LOGIN; CREATE ROLE stranger LOGIN; \
         GRANT EXECUTE ON FUNCTION palisade_guard(text, bigint, text, text), \
             palisade_raise(text, bigint, text, text) TO shop_application;",
    );
    let mut application = postgres.connect("shop_application", "shop");
    application.rows(&postgres.raise("rights", A));
    application.rows(&postgres.guard("rights", B));
    application.refused("PF001", &postgres.raise("rights", A));
    let denied = "42501";
    application.refused(denied, &postgres.reset("'rights'", "33", "'grants'"));
    application.refused(denied, "UPDATE palisade_fence SET number = 1;");
    application.refused(denied, "DELETE FROM palisade_fence;");
    let mut stranger = postgres.connect("stranger", "shop");
    stranger.refused(denied, &postgres.guard("rights", B));
    stranger.refused(denied, &postgres.raise("rights", B));
}

#[test]
fn the_fence_is_one_whatever_the_search_path() {
    let postgres = Postgres::start();
    let mut session = postgres.session("CREATE SCHEMA other; SET search_path = other, public;");
    session.rows(postgres.kit());
    assert_eq!(session.rows("SHOW search_path;"), ["other, public"], "it is put back");
    assert_eq!(session.rows("SELECT count(*) FROM other.palisade_fence;"), ["0"]);

    // A table that is nearer, of any caller, is not the fence.
    session.rows("SELECT public.palisade_raise('path', 34, 'b81f90c2');");
    session.rows("CREATE TEMP TABLE palisade_fence (LIKE public.palisade_fence INCLUDING ALL);");
    session.refused("PF001", "SELECT public.palisade_guard('path', 33, '5c0e1d7a');");
    session.rows("DROP TABLE pg_temp.palisade_fence; SET search_path = public;");
    assert_eq!(fence(&mut session, "path"), B.number);
}
