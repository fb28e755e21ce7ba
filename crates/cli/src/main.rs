//! The one binary: parses the command line and hands on to the command's own room.
//!
//! Must not know: business rules.

mod args;
mod commands;
mod edge;
mod exit;
mod output;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let args = args::Args::parse();
    let json = args.common.json;
    match commands::run(args) {
        Ok(code) => code,
        Err(error) => exit::report(&error, json),
    }
}
