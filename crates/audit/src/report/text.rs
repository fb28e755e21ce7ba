//! The report for people: each finding's story in plain sentences, then the sums.

use super::Report;
use super::json::percent;
use crate::findings::{Finding, Samples, Summary, TtlAdvice};
use crate::timeline::{Style, draw_text};
use crate::words::{clock, count, date, grouped, list, span};

/// The edges between the bars of the pauses' histogram, in ms.
pub(super) const PAUSE_EDGES_MS: [u64; 9] =
    [0, 1_000, 5_000, 15_000, 30_000, 60_000, 300_000, 1_800_000, u64::MAX];

/// How many findings are told in full.
const TOLD_MAX: usize = 50;

/// The report as a text for a terminal.
pub fn text(report: &Report<'_>, style: Style) -> String {
    let mut out = String::new();
    let findings = &report.findings.findings;
    if findings.is_empty() {
        out.push_str("No findings: nothing in this history went wrong.\n");
    }
    let paint = Paint { colour: style.colour };
    let mut told = 0;
    let mut resource = None;
    for finding in findings.iter().take(TOLD_MAX) {
        if resource != Some(&finding.resource) {
            if resource.is_some() {
                out.push('\n');
            }
            out.push_str(&heading(&finding.resource, findings, &paint));
            if let Some(timeline) = report.timeline(&finding.resource) {
                out.push('\n');
                out.push_str(&draw_text(timeline, style));
            }
            resource = Some(&finding.resource);
        }
        out.push('\n');
        tell(&mut out, finding, report, &paint);
        told += 1;
    }
    let more = (findings.len() - told) as u64 + report.findings.dropped;
    if more > 0 {
        out.push_str(&format!(
            "\n… and {}; --json tells all that were kept.\n",
            count(more, "more finding", "more findings")
        ));
    }
    out.push('\n');
    sums(&mut out, &report.findings.summary, &paint);
    reading(&mut out, report, &paint);
    out
}

fn heading(resource: &str, findings: &[Finding], paint: &Paint) -> String {
    let own = findings.iter().filter(|finding| finding.resource == resource);
    let first = own.clone().map(|finding| finding.at).min().unwrap_or_default();
    let number = count(own.count() as u64, "finding", "findings");
    format!("{} · {number} · {} (times in UTC)\n", paint.bold(resource), date(first))
}

fn tell(out: &mut String, finding: &Finding, report: &Report<'_>, paint: &Paint) {
    out.push_str(&format!("  {}  {}\n", paint.red(finding.kind.name()), finding.headline));
    out.push_str(&format!(
        "    cause: {} ({}) · workers: {}",
        finding.cause.name(),
        finding.confidence.name(),
        list(&finding.workers)
    ));
    if finding.cost_ms > 0 {
        out.push_str(&format!(" · cost: {} of compute", span(finding.cost_ms)));
    }
    out.push('\n');
    for line in &finding.story {
        let mark = if line.mistake { paint.red(">>") } else { "  ".to_owned() };
        let place = match line.source {
            Some(source) => paint.dim(&format!("  {}:{}", report.file_name(source), source.line)),
            None => String::new(),
        };
        out.push_str(&format!("    {mark} {}  {}{place}\n", clock(line.at), line.text));
    }
    out.push_str(&format!("    prevented by: {}\n", finding.prevented_by));
}

fn sums(out: &mut String, summary: &Summary, paint: &Paint) {
    out.push_str(&format!("{}\n", paint.bold("Sums")));
    out.push_str(&format!(
        "  {} over {}; {}\n",
        count(summary.events, "entry", "entries"),
        count(summary.resources, "resource", "resources"),
        count(summary.attempts, "attempt", "attempts"),
    ));
    for (kind, number) in &summary.kinds {
        out.push_str(&format!("  {:<18} {}\n", kind.name(), grouped(*number)));
    }
    out.push_str(&format!(
        "  compute {}, of which duplicate {} ({:.2} %)\n",
        span(summary.compute_ms),
        span(summary.duplicate_ms),
        percent(summary.duplicate_ms, summary.compute_ms)
    ));
    out.push_str(&format!(
        "  effects: {} landed, {} refused\n",
        grouped(summary.effects_landed),
        grouped(summary.effects_refused)
    ));
    out.push_str(&format!("  recovered crashes: {}\n", quantiles(&summary.recoveries)));
    out.push_str(&format!("  pauses: {}\n", quantiles(&summary.pauses)));
    histogram(out, &summary.pauses);
    if let Some(advice) = &summary.ttl {
        advise(out, advice);
    }
}

fn quantiles(samples: &Samples) -> String {
    match (samples.quantile_ms(50), samples.quantile_ms(99)) {
        (Some(median), Some(high)) => format!(
            "{} (half within {}, 99 % within {})",
            grouped(samples.count()),
            span(median),
            span(high)
        ),
        _ => "none".to_owned(),
    }
}

fn histogram(out: &mut String, pauses: &Samples) {
    let bars: Vec<(String, u64)> = PAUSE_EDGES_MS
        .windows(2)
        .map(|edges| {
            let name = if edges[1] == u64::MAX {
                format!("{} and more", span(edges[0]))
            } else {
                format!("{} to {}", span(edges[0]), span(edges[1]))
            };
            (name, pauses.between(edges[0], edges[1]))
        })
        .filter(|(_, number)| *number > 0)
        .collect();
    let most = bars.iter().map(|(_, number)| *number).max().unwrap_or(1);
    for (name, number) in bars {
        let length = usize::try_from((number * 40).div_ceil(most)).unwrap_or(40);
        out.push_str(&format!("    {name:>16}  {} {}\n", "█".repeat(length), grouped(number)));
    }
}

fn advise(out: &mut String, advice: &TtlAdvice) {
    out.push_str(&format!("  suggested ttl: {}", span(advice.suggested_ms)));
    if advice.current_ms > 0 {
        out.push_str(&format!(" (the longest seen is {})", span(advice.current_ms)));
    }
    out.push_str(", weighing how long crashes stall against what pauses waste:\n");
    out.push_str(
        "           ttl   a crash stalls    all of them   pauses past it   compute wasted\n",
    );
    let place = |choice: &crate::findings::TtlChoice| choice.ttl_ms == advice.suggested_ms;
    let best = advice.choices.iter().position(place).unwrap_or(0);
    for choice in &advice.choices[best.saturating_sub(2)..(best + 3).min(advice.choices.len())] {
        let mark = if choice.ttl_ms == advice.suggested_ms { ">>" } else { "  " };
        out.push_str(&format!(
            "    {mark}{:>10}   {:>14}   {:>12}   {:>14}   {:>14}\n",
            span(choice.ttl_ms),
            span(choice.stall_ms),
            span(choice.stalls_ms),
            grouped(choice.pauses_lost),
            span(choice.wasted_ms)
        ));
    }
}

fn reading(out: &mut String, report: &Report<'_>, paint: &Paint) {
    let unreadable = report.unreadable_lines();
    if unreadable > 0 {
        let number = count(unreadable, "line", "lines");
        out.push_str(&format!("\n{}: {number}\n", paint.bold("Could not be read")));
        let shown: Vec<_> = report.files.iter().flat_map(|file| &file.tally.unreadable).collect();
        for line in &shown {
            let name = report.file_name(line.source);
            out.push_str(&format!("  {name}:{}  {}\n", line.source.line, line.why));
            out.push_str(&format!("    {}\n", paint.dim(&line.text.replace('\t', " "))));
        }
        if unreadable > shown.len() as u64 {
            out.push_str(&format!("  … and {} more\n", grouped(unreadable - shown.len() as u64)));
        }
    }
    for file in report.files {
        for (word, number) in &file.tally.unknown_words {
            out.push_str(&format!(
                "  {}: the event `{word}` is not one of ours ({}); --event {word}=OURS translates it\n",
                file.name,
                count(*number, "line", "lines")
            ));
        }
        if let Some(skew) = file.skew.filter(|_| report.files.len() > 1) {
            out.push_str(&format!("  clock of {}: {}\n", file.name, skew_text(&skew)));
        }
    }
    if report.findings.summary.out_of_order > 0 {
        out.push_str(&format!(
            "  {} came too late to be put in order; sort the file by time to be safe\n",
            count(report.findings.summary.out_of_order, "entry", "entries")
        ));
    }
}

fn skew_text(skew: &crate::skew::Skew) -> String {
    use crate::skew::Sureness;
    let pairs = count(skew.pairs, "pair of entries", "pairs of entries");
    let room =
        skew.uncertainty_ms.map_or(String::new(), |ms| format!(", give or take {}", span(ms)));
    match skew.sureness {
        Sureness::Reference => "the others are measured by it".to_owned(),
        Sureness::Unknown if skew.contradicted > 0 => format!(
            "left as it is; {} would fit better with another, which is too little to go by",
            count(skew.contradicted, "pair of entries", "pairs of entries")
        ),
        Sureness::Unknown => "nothing connects it with the others; left as it is".to_owned(),
        Sureness::Sure | Sureness::Likely if skew.offset_ms == 0 => {
            format!("agrees{room} ({}, from {pairs})", skew.sureness.name())
        }
        Sureness::Sure | Sureness::Likely => {
            let way = if skew.offset_ms > 0 { "slow" } else { "fast" };
            format!(
                "{} {way}{room}; corrected ({}, from {pairs})",
                span(skew.offset_ms.unsigned_abs()),
                skew.sureness.name()
            )
        }
    }
}

/// Emphasis, where there is colour.
struct Paint {
    colour: bool,
}

impl Paint {
    fn wrap(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn red(&self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    fn dim(&self, text: &str) -> String {
        self.wrap("2", text)
    }
}
