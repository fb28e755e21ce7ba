//! The one binary.

mod diagnose;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Runs expensive media exports on many workers, and stays correct when they crash or pause.
#[derive(Debug, Parser)]
#[command(name = "palisade", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explain what went wrong in somebody else's lock logs.
    Diagnose(diagnose::DiagnoseArgs),
}

/// What is returned when the arguments or the input cannot be used.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Diagnose(args) => diagnose::run(&args),
    };
    result.unwrap_or_else(|error| {
        // Nothing is left to do if even stderr is gone.
        let _ = writeln!(std::io::stderr(), "palisade: {error:#}");
        ExitCode::from(UNUSABLE)
    })
}
