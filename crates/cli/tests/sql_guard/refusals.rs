//! Stories: who is refused, with which code, and what the fence remembers.

use crate::{
    database::{A, B, Database, Holder, fence, fresh_export, writers, written_by},
    session::Session,
};

/// A whole transaction, which must be admitted.
fn transact(database: &dyn Database, session: &mut Session, resource: &str, holder: Holder) {
    session.rows(database.begin());
    session.rows(&database.guard(resource, holder));
    session.rows(&database.write(resource, holder));
    session.rows("COMMIT;");
}

/// A transaction whose guard must be refused; the message.
fn refuse(database: &dyn Database, session: &mut Session, code: &str, guard: &str) -> String {
    session.rows(database.begin());
    let told = session.refused(code, guard);
    session.rows("ROLLBACK;");
    told
}

/// A holder below the fence is refused, told the fence where the database can say it, and what it
/// wrote in the same transaction is gone.
pub(crate) fn an_older_number_is_stale(database: &dyn Database) {
    let mut session = database.session("");
    fresh_export(&mut session, "stale");
    transact(database, &mut session, "stale", A);
    transact(database, &mut session, "stale", B);
    session.rows(database.begin());
    session.rows(&database.write("stale", A));
    let told = session.refused("PF001", &database.guard("stale", A));
    session.rows("ROLLBACK;");
    let names_it = told.contains(&B.number.to_string());
    assert!(names_it || database.waiting(&mut session).is_none(), "{told}");
    assert_eq!(writers(&mut session, "stale"), [A.number, B.number]);
    assert_eq!(written_by(&mut session, "stale"), B.number);
    assert_eq!(fence(&mut session, "stale"), B.number);
}

/// B's number alone admits nobody: not with another lease id, not with none.
pub(crate) fn a_stranger_with_the_number_is_foreign(database: &dyn Database) {
    let mut session = database.session("");
    fresh_export(&mut session, "foreign");
    transact(database, &mut session, "foreign", B);
    for lease in ["'00000000'", "'B81F90C2'", "'b81f90c'", "'b81f90c22'"] {
        let guard = database.guard_of("'foreign'", "34", lease, "'grants'");
        refuse(database, &mut session, "PF002", &guard);
    }
    for lease in ["''", "NULL"] {
        let guard = database.guard_of("'foreign'", "34", lease, "'grants'");
        refuse(database, &mut session, "PF004", &guard);
    }
    // The holder itself may show its pair as often as it likes.
    session.rows(database.begin());
    session.rows(&database.guard("foreign", B));
    session.rows(&database.guard("foreign", B));
    session.rows("COMMIT;");
    transact(database, &mut session, "foreign", B);
    assert_eq!(fence(&mut session, "foreign"), B.number);
}

/// Submissions' numbers and grants' tokens do not meet on one resource.
pub(crate) fn the_other_kind_of_number_is_wrong(database: &dyn Database) {
    let mut session = database.session("");
    session.rows(&database.raise("tokens", A));
    for number in ["1", "33", "34", "9007199254740991"] {
        let guard = database.guard_of("'tokens'", number, "''", "'submissions'");
        refuse(database, &mut session, "PF003", &guard);
    }
    assert_eq!(fence(&mut session, "tokens"), A.number);

    let submission =
        |number: &str| database.guard_of("'projections'", number, "''", "'submissions'");
    session.rows(&submission("40"));
    session.rows(&submission("40"));
    refuse(database, &mut session, "PF001", &submission("39"));
    let grant = database.guard_of("'projections'", "41", "'b81f90c2'", "'grants'");
    refuse(database, &mut session, "PF003", &grant);
    session.rows(&submission("41"));
    assert_eq!(fence(&mut session, "projections"), 41);
}

/// Values that are not allowed are refused, and make no row.
pub(crate) fn what_is_not_allowed_is_invalid(database: &dyn Database) {
    let mut session = database.session("");
    let (resource, lease, kind) = ("'invalid'", "'5c0e1d7a'", "'grants'");
    let cases = [
        ("''", "33", lease, kind),
        ("NULL", "33", lease, kind),
        (resource, "0", lease, kind),
        (resource, "-1", lease, kind),
        (resource, "9007199254740992", lease, kind),
        (resource, "NULL", lease, kind),
        (resource, "33", "''", kind),
        (resource, "33", "NULL", kind),
        (resource, "33", lease, "'locks'"),
        (resource, "33", lease, "'GRANTS'"),
        (resource, "33", lease, "''"),
        (resource, "33", lease, "NULL"),
        (resource, "33", "NULL", "'submissions'"),
    ];
    for (resource, number, lease, kind) in cases {
        let guard = database.guard_of(resource, number, lease, kind);
        refuse(database, &mut session, "PF004", &guard);
    }
    let count = "SELECT count(*) FROM palisade_fence WHERE resource IN ('', 'invalid');";
    assert_eq!(session.rows(count), ["0"]);
    session.rows(&database.guard_of("'highest'", "9007199254740991", lease, kind));
    assert_eq!(fence(&mut session, "highest"), 9_007_199_254_740_991);
}

/// A guard that is rolled back was never there: which is why a new holder raises first, in a
/// transaction of its own.
pub(crate) fn only_what_is_committed_raises(database: &dyn Database) {
    let mut session = database.session("");
    fresh_export(&mut session, "rolled-back");
    session.rows(database.begin());
    session.rows(&database.guard("rolled-back", B));
    session.rows(&database.write("rolled-back", B));
    session.rows("ROLLBACK;");
    transact(database, &mut session, "rolled-back", A);
    assert_eq!(writers(&mut session, "rolled-back"), [A.number]);

    session.rows(&database.raise("rolled-back", B));
    refuse(database, &mut session, "PF001", &database.guard("rolled-back", A));
    assert_eq!(fence(&mut session, "rolled-back"), B.number);
    assert_eq!(written_by(&mut session, "rolled-back"), A.number);
}

/// A fence that was raised by mistake is brought back by the operator, to the present holder.
pub(crate) fn the_operator_resets_a_fence(database: &dyn Database) {
    let mut session = database.session("");
    fresh_export(&mut session, "mistaken");
    session.rows(&database.raise("mistaken", Holder { number: 34_000_000, lease: "b81f90c2" }));
    refuse(database, &mut session, "PF001", &database.guard("mistaken", B));

    session.rows(&database.reset("'mistaken'", "34", "'grants'"));
    refuse(database, &mut session, "PF001", &database.guard("mistaken", A));
    transact(database, &mut session, "mistaken", B);
    let stranger = Holder { number: 34, lease: "00000000" };
    refuse(database, &mut session, "PF002", &database.guard("mistaken", stranger));

    // The kind may have been the mistake.
    session.rows(&database.reset("'mistaken'", "40", "'submissions'"));
    refuse(database, &mut session, "PF003", &database.guard("mistaken", B));
    session.rows(&database.guard_of("'mistaken'", "40", "''", "'submissions'"));

    let invalid = [
        ("'no such resource'", "34", "'grants'"),
        ("NULL", "34", "'grants'"),
        ("'mistaken'", "0", "'grants'"),
        ("'mistaken'", "9007199254740992", "'grants'"),
        ("'mistaken'", "NULL", "'grants'"),
        ("'mistaken'", "34", "'locks'"),
        ("'mistaken'", "34", "NULL"),
    ];
    for (resource, number, kind) in invalid {
        session.refused("PF004", &database.reset(resource, number, kind));
    }
    assert_eq!(fence(&mut session, "mistaken"), 40);
}

/// The kit may be installed again, by a newer release for example.
pub(crate) fn a_second_installation_keeps_the_fences(database: &dyn Database) {
    let mut session = database.session("");
    fresh_export(&mut session, "kept");
    session.rows(&database.raise("kept", B));
    session.rows(database.kit());
    assert_eq!(fence(&mut session, "kept"), B.number);
    refuse(database, &mut session, "PF001", &database.guard("kept", A));
    transact(database, &mut session, "kept", B);
}

/// Names are compared as they are written.
pub(crate) fn every_resource_has_a_fence_of_its_own(database: &dyn Database) {
    let mut session = database.session("");
    session.rows(&database.raise("export-é", B));
    for other in ["export-e", "Export-é", "EXPORT-É", "export-é2", "' OR 1 = 1 --"] {
        let other = other.replace('\'', "''");
        session.rows(&database.raise(&other, A));
        assert_eq!(fence(&mut session, &other), A.number, "{other}");
    }
    assert_eq!(fence(&mut session, "export-é"), B.number);
}
