//! The report as one JSON object.

use serde_json::{Value, json};

use super::Report;
use crate::event::Source;
use crate::findings::{Finding, Samples, Summary, TtlAdvice};
use crate::words::{clock, rfc3339, seconds};

/// One object: `findings`, `summary`, `unreadable_lines`, and what else there is to say of the
/// reading. Times are RFC 3339 in UTC, spans are seconds (`_s`).
pub fn json(report: &Report<'_>) -> Value {
    let findings: Vec<Value> =
        report.findings.findings.iter().map(|finding| finding_json(finding, report)).collect();
    let unreadable: Vec<Value> = report
        .files
        .iter()
        .flat_map(|file| &file.tally.unreadable)
        .map(|line| {
            json!({
                "file": report.file_name(line.source),
                "line": line.source.line,
                "why": line.why,
                "text": line.text,
            })
        })
        .collect();
    json!({
        "findings": findings,
        "findings_dropped": report.findings.dropped,
        "summary": summary_json(&report.findings.summary),
        "unreadable_lines": report.unreadable_lines(),
        "unreadable": unreadable,
        "files": files_json(report),
    })
}

fn finding_json(finding: &Finding, report: &Report<'_>) -> Value {
    let place = |source: &Source| json!({ "file": report.file_name(*source), "line": source.line });
    let steps: Vec<Value> = finding
        .story
        .iter()
        .map(|line| {
            json!({
                "at": rfc3339(line.at),
                "text": line.text,
                "mistake": line.mistake,
                "source": line.source.as_ref().map(place),
            })
        })
        .collect();
    json!({
        "kind": finding.kind.name(),
        "resource": finding.resource,
        "workers": finding.workers,
        "cause": finding.cause.name(),
        "confidence": finding.confidence.name(),
        "at": rfc3339(finding.at),
        "until": rfc3339(finding.until),
        "cost_s": seconds(finding.cost_ms),
        "headline": finding.headline,
        "story": story_text(finding),
        "steps": steps,
        "evidence": finding.evidence().iter().map(place).collect::<Vec<_>>(),
        "prevented_by": finding.prevented_by,
        "landed": finding.landed,
    })
}

/// The story as a text, a sentence to each step; the mistake is marked.
fn story_text(finding: &Finding) -> String {
    let sentences: Vec<String> = finding
        .story
        .iter()
        .map(|line| {
            let mark = if line.mistake { " [here is the mistake]" } else { "" };
            format!("At {} {}{mark}.", clock(line.at), line.text)
        })
        .collect();
    sentences.join(" ")
}

fn summary_json(summary: &Summary) -> Value {
    let kinds: serde_json::Map<String, Value> =
        summary.kinds.iter().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
    json!({
        "events": summary.events,
        "events_out_of_order": summary.out_of_order,
        "attempts": summary.attempts,
        "resources": summary.resources,
        "findings": kinds,
        "compute_s": seconds(summary.compute_ms),
        "duplicate_compute_s": seconds(summary.duplicate_ms),
        "duplicate_compute_percent": percent(summary.duplicate_ms, summary.compute_ms),
        "effects_landed": summary.effects_landed,
        "effects_refused": summary.effects_refused,
        "recoveries": samples_json(&summary.recoveries),
        "pauses": pauses_json(&summary.pauses),
        "ttl": summary.ttl.as_ref().map(ttl_json),
    })
}

fn samples_json(samples: &Samples) -> Value {
    json!({
        "count": samples.count(),
        "p50_s": samples.quantile_ms(50).map(seconds),
        "p99_s": samples.quantile_ms(99).map(seconds),
        "max_s": (samples.count() > 0).then(|| seconds(samples.max_ms())),
    })
}

fn pauses_json(pauses: &Samples) -> Value {
    let histogram: Vec<Value> = super::text::PAUSE_EDGES_MS
        .windows(2)
        .map(|edges| (edges, pauses.between(edges[0], edges[1])))
        .filter(|(_, count)| *count > 0)
        .map(|(edges, count)| {
            let to = (edges[1] != u64::MAX).then(|| seconds(edges[1]));
            json!({ "from_s": seconds(edges[0]), "to_s": to, "count": count })
        })
        .collect();
    let mut value = samples_json(pauses);
    value["histogram"] = Value::Array(histogram);
    value
}

fn ttl_json(advice: &TtlAdvice) -> Value {
    let choices: Vec<Value> = advice
        .choices
        .iter()
        .map(|choice| {
            json!({
                "ttl_s": seconds(choice.ttl_ms),
                "stall_per_crash_s": seconds(choice.stall_ms),
                "stalls_s": seconds(choice.stalls_ms),
                "pauses_that_lose_the_lease": choice.pauses_lost,
                "wasted_compute_s": seconds(choice.wasted_ms),
            })
        })
        .collect();
    json!({
        "current_s": seconds(advice.current_ms),
        "suggested_s": seconds(advice.suggested_ms),
        "choices": choices,
    })
}

fn files_json(report: &Report<'_>) -> Vec<Value> {
    report
        .files
        .iter()
        .map(|file| {
            let unknown: serde_json::Map<String, Value> = file
                .tally
                .unknown_words
                .iter()
                .map(|(word, count)| (word.clone(), json!(count)))
                .collect();
            json!({
                "file": file.name,
                "lines": file.tally.lines,
                "entries": file.tally.entries,
                "unreadable_lines": file.tally.unreadable_lines,
                "other_lines": file.tally.other_lines,
                "unknown_events": unknown,
                "clock": file.skew.as_ref().map(|skew| json!({
                    "offset_ms": skew.offset_ms,
                    "uncertainty_ms": skew.uncertainty_ms,
                    "pairs": skew.pairs,
                    "sureness": skew.sureness.name(),
                })),
            })
        })
        .collect()
}

/// A share in per cent, to two places; zero of nothing is zero.
#[expect(clippy::cast_precision_loss, reason = "hundredths of per cents are small")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    (part * 10_000).checked_div(whole).map_or(0.0, |hundredths| hundredths as f64 / 100.0)
}
