//! The stories on `MariaDB`, and what it has of its own.

use crate::{
    crowd,
    database::{A, B, Database, Holder, fence},
    mariadb::Mariadb,
    orders::{self, Tally},
    paused, refusals,
    session::Answer,
};

#[test]
fn in_every_order_of_two_transactions_the_newer_one_stands() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let mariadb = Mariadb::start();
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level};");
        let expected = Tally { refused: 35, waits: 60, again: 0 };
        assert_eq!(orders::both_write(&mariadb, &set), expected, "{level}");
    }
}

#[test]
fn a_holder_that_dies_after_its_raise_has_fenced_the_one_before() {
    let mariadb = Mariadb::start();
    let expected = Tally { refused: 25, waits: 18, again: 0 };
    assert_eq!(orders::b_dies(&mariadb, ""), expected);
}

#[test]
fn refusals_have_stable_codes_and_fences_are_kept() {
    let mariadb = Mariadb::start();
    refusals::an_older_number_is_stale(&mariadb);
    refusals::a_stranger_with_the_number_is_foreign(&mariadb);
    refusals::the_other_kind_of_number_is_wrong(&mariadb);
    refusals::what_is_not_allowed_is_invalid(&mariadb);
    refusals::only_what_is_committed_raises(&mariadb);
    refusals::the_operator_resets_a_fence(&mariadb);
    refusals::a_second_installation_keeps_the_fences(&mariadb);
    refusals::every_resource_has_a_fence_of_its_own(&mariadb);
}

#[test]
fn the_highest_of_many_writers_stands() {
    crowd::the_highest_of_many_writers_stands(&Mariadb::start(), "");
}

#[test]
fn a_fence_never_falls_where_each_statement_commits_by_itself() {
    let mariadb = Mariadb::start();
    let (mut monitor, mut owner) = (mariadb.session(""), mariadb.session(""));
    let mut sessions = [36, 35, 34, 33].map(|number| (number, mariadb.session("")));
    for round in 0..20 {
        // Behind one who holds the row they line up, and then go through their statements in step.
        let resource = format!("falls-{round}");
        owner.rows(&mariadb.raise(&resource, Holder { number: 1, ..A }));
        owner.rows(&format!("{} {}", mariadb.begin(), mariadb.guard(&resource, A)));
        for (place, (number, session)) in sessions.iter_mut().enumerate() {
            session.send(&mariadb.raise(&resource, Holder { number: *number, ..B }));
            while mariadb.waiting(&mut monitor) != Some(place + 1) {
                assert_eq!(session.poll(), None, "the row is held");
            }
        }
        owner.rows("ROLLBACK;");
        for (number, session) in &mut sessions {
            let answer = session.wait();
            let is_stale = matches!(&answer, Answer::Failed(failure) if failure.code == "PF001");
            assert!(is_stale || answer == Answer::Done(Vec::new()), "of {number}: {answer:?}");
        }
        assert_eq!(fence(&mut monitor, &resource), 36, "round {round}");
    }
}

#[test]
fn a_paused_holder_is_ended_by_the_limit_on_silence() {
    let mariadb = Mariadb::start();
    let limit = "SET SESSION idle_write_transaction_timeout = 1;";
    paused::the_limit_on_silence_ends_it(&mariadb, "", limit);
}

#[test]
fn a_holder_that_was_paused_before_its_guard_is_refused() {
    let mariadb = Mariadb::start();
    for begin in [
        "START TRANSACTION; SELECT count(*) FROM exports;",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT;",
    ] {
        paused::a_pause_before_the_guard_is_noticed(&mariadb, begin, false);
        let mut session = mariadb.session("");
        session.rows("TRUNCATE exports; TRUNCATE writes; TRUNCATE palisade_fence;");
    }
    // The mode in which an old snapshot is an error; a newer release's default.
    let begin = "SET SESSION innodb_snapshot_isolation = ON; \
                 START TRANSACTION WITH CONSISTENT SNAPSHOT;";
    paused::a_pause_before_the_guard_is_noticed(&mariadb, begin, true);
}

#[test]
fn the_guard_limits_silence_unless_there_is_a_limit() {
    let mariadb = Mariadb::start();
    let mut session = mariadb.session("");
    let show =
        "SELECT @@SESSION.idle_transaction_timeout, @@SESSION.idle_write_transaction_timeout;";
    assert_eq!(session.rows(show), ["0\t0"]);
    session.rows(&mariadb.raise("limits", A));
    assert_eq!(session.rows(show), ["0\t30"]);
    for (own, kept) in
        [("idle_transaction_timeout", "120\t0"), ("idle_write_transaction_timeout", "0\t120")]
    {
        let mut session = mariadb.session(&format!("SET SESSION {own} = 120;"));
        session.rows(&mariadb.raise("limits", A));
        assert_eq!(session.rows(show), [kept], "a limit of your own is kept");
    }
}

#[test]
fn fences_do_not_wait_for_each_other() {
    let mariadb = Mariadb::start();
    let mut owner = mariadb.session("");
    for resource in ["b", "d"] {
        owner.rows(&mariadb.raise(resource, A));
    }
    // Rows that are there, and gaps between them that are filled.
    let begin = "START TRANSACTION;";
    let (mut first, mut second) = (mariadb.session(begin), mariadb.session(begin));
    for resource in ["b", "a", "e"] {
        first.rows(&mariadb.guard(resource, B));
    }
    for resource in ["d", "c", "f"] {
        second.rows(&mariadb.guard(resource, B));
    }
}

#[test]
fn an_application_may_guard_and_raise_and_nothing_else() {
    let mariadb = Mariadb::start();
    mariadb.session("").rows(
        "CREATE USER shop_application@localhost; \
         GRANT EXECUTE ON PROCEDURE shop.palisade_guard TO shop_application@localhost; \
         GRANT EXECUTE ON PROCEDURE shop.palisade_raise TO shop_application@localhost;",
    );
    let mut application = mariadb.connect("shop_application", "shop");
    application.rows(&mariadb.raise("rights", A));
    application.rows(&mariadb.guard("rights", B));
    application.refused("PF001", &mariadb.raise("rights", A));
    let denied = "42000";
    application.refused(denied, &mariadb.reset("'rights'", "33", "'grants'"));
    application.refused(denied, "UPDATE palisade_fence SET number = 1;");
    application.refused(denied, "DELETE FROM palisade_fence;");
}

#[test]
fn nothing_is_cut_to_fit_in_a_lenient_mode() {
    let mariadb = Mariadb::start();
    let mut session = mariadb.session("SET SESSION sql_mode = '';");
    session.rows(mariadb.kit());
    let guard = |resource: &str, lease: &str| {
        let (resource, lease) = (format!("'{resource}'"), format!("'{lease}'"));
        mariadb.guard_of(&resource, "34", &lease, "'grants'")
    };
    session.refused("PF004", &guard(&"r".repeat(513), "b81f90c2"));
    session.refused("PF004", &guard("long", &"b".repeat(65)));
    session.rows(&guard(&"é".repeat(512), &"b".repeat(64)));
    session
        .refused("PF004", &mariadb.guard_of("'long'", "34", "'b81f90c2'", "'grantsgrantsgrants'"));
}
