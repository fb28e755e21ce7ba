//! The one room that prints. Data goes to standard output, everything else to standard error.

mod job;
mod progress;
mod time;

pub(crate) use job::{job_details, job_table, publication};
pub(crate) use progress::ProgressLine;
pub(crate) use time::{clock_time, span};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Prints data as one JSON document.
pub(crate) fn json(data: &impl Serialize) {
    let text = serde_json::to_string_pretty(data).expect("wire types always serialise");
    line(&text);
}

/// Prints a line of data. A reader that has gone (`| head`) is no error.
pub(crate) fn line(text: &str) {
    let _ = try_line(text);
}

/// Prints a line of data, at once. Answers whether somebody still reads.
pub(crate) fn try_line(text: &str) -> bool {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).is_ok()
}

/// Prints a line for people, beside the data.
pub(crate) fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints an error.
pub(crate) fn complain(text: &str) {
    note(text);
}

/// A table in the house's style.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.map(str::to_uppercase));
    table
}
