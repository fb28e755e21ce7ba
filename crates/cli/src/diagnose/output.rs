//! Prints reports and pictures.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use palisade_audit::report::{Report, json, text};
use palisade_audit::timeline::{Style, Timeline, draw_svg, draw_text, timeline_json};

/// Columns where there is no terminal to ask.
const WIDTH: usize = 100;
/// How wide a picture in a file of its own is, in units.
const SVG_WIDTH: u64 = 1_200;

/// How pictures and reports are to look.
#[derive(Debug, clap::Args)]
pub(crate) struct LookArgs {
    /// Columns to use [default: the terminal's, or 100].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// When to use colour.
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto")]
    color: String,
}

/// Prints a report, as text or as JSON.
pub(crate) fn report(look: &LookArgs, as_json: bool, report: &Report<'_>) -> anyhow::Result<()> {
    if as_json { print_json(&json(report)) } else { print(&text(report, look.style())) }
}

fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    print(&format!("{text}\n"))
}

/// Writes a report to a file, as HTML.
pub(crate) fn html(path: &Path, report: &Report<'_>) -> anyhow::Result<()> {
    std::fs::write(path, palisade_audit::report::html(report))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Prints a picture, as text or as JSON, and writes it to a file if that was asked for.
pub(crate) fn timeline(
    look: &LookArgs,
    as_json: bool,
    svg: Option<&Path>,
    timeline: &Timeline,
) -> anyhow::Result<()> {
    if let Some(path) = svg {
        std::fs::write(path, draw_svg(timeline, SVG_WIDTH))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if as_json {
        return print_json(&timeline_json(timeline));
    }
    print(&draw_text(timeline, look.style()))
}

impl LookArgs {
    fn style(&self) -> Style {
        let terminal = std::io::stdout().is_terminal();
        let colour = match self.color.as_str() {
            "always" => true,
            "never" => false,
            _ => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let width = self.width.or(columns).unwrap_or_else(|| terminal_width(terminal));
        Style { width: width.clamp(60, 400), colour }
    }
}

fn terminal_width(terminal: bool) -> usize {
    if !terminal {
        return WIDTH;
    }
    comfy_table::Table::new()
        .set_content_arrangement(comfy_table::ContentArrangement::Dynamic)
        .width()
        .map_or(WIDTH, usize::from)
}

/// Prints; that a reader has gone (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
