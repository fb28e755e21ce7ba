//! `sql-guard`: prints the fence for a customer's own database.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::output;

/// Flags of `sql-guard`.
#[derive(Debug, clap::Args)]
pub(crate) struct SqlGuardArgs {
    /// Which database's language.
    dialect: Dialect,
}

/// The databases that the kit is tested on.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Dialect {
    /// `PostgreSQL`.
    Postgres,
    /// `SQLite`.
    Sqlite,
    /// `MySQL` and `MariaDB`.
    Mysql,
}

pub(crate) fn run(args: &SqlGuardArgs) -> ExitCode {
    output::line(match args.dialect {
        Dialect::Postgres => include_str!("postgres.sql"),
        Dialect::Sqlite => include_str!("sqlite.sql"),
        Dialect::Mysql => include_str!("mysql.sql"),
    });
    ExitCode::SUCCESS
}
