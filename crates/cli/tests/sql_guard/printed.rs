//! `palisade sql-guard` prints what the other tests test.

use std::process::Output;

use crate::server::command;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_palisade");

fn palisade(args: &[&str]) -> Output {
    command(PROGRAM).args(args).env_remove("PALISADE_SERVER").output().expect("the program runs")
}

#[test]
fn each_dialect_is_printed_whole_without_a_server() {
    for (dialect, kit) in [
        ("postgres", include_str!("../../src/commands/sql_guard/postgres.sql")),
        ("sqlite", include_str!("../../src/commands/sql_guard/sqlite.sql")),
        ("mysql", include_str!("../../src/commands/sql_guard/mysql.sql")),
    ] {
        let done = palisade(&["sql-guard", dialect]);
        assert!(done.status.success(), "{dialect}: {}", String::from_utf8_lossy(&done.stderr));
        let printed = String::from_utf8(done.stdout).expect("text");
        assert_eq!(printed.trim_end(), kit.trim_end(), "{dialect}");
        assert!(done.stderr.is_empty(), "{dialect}");
    }
}

#[test]
fn an_unknown_dialect_is_refused_with_those_there_are() {
    let done = palisade(&["sql-guard", "oracle"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("postgres") && said.contains("sqlite") && said.contains("mysql"));
}
