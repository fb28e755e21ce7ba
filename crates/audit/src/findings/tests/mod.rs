//! Each sort of fault, told by a small history of its own, and its near misses.

mod any_history;
mod holding;
mod losing;
mod misleading;
mod reports;
mod stalling;

use palisade_core::Timestamp;

use super::*;
use crate::{Entry, EventKind, Source};

/// 2026-03-14T09:00:00Z.
const START_MS: u64 = 1_773_478_800_000;

/// Reads `SECONDS WORKER EVENT [key=value…]` lines of one resource, `job` unless `on=` names it.
fn diagnose(history: &str) -> Findings {
    diagnose_with(Settings::default(), history)
}

fn diagnose_with(settings: Settings, history: &str) -> Findings {
    let mut analyser = Analyser::new(settings);
    for (index, line) in history.lines().map(str::trim).enumerate() {
        if line.is_empty() {
            continue;
        }
        let mut words = line.split_whitespace();
        let seconds: f64 = words.next().unwrap().parse().unwrap();
        let worker = words.next().unwrap();
        let event = EventKind::from_word(words.next().unwrap()).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let at = Timestamp(START_MS + (seconds * 1_000.0).round() as u64);
        let mut entry = Entry::new(at, worker, "job", event);
        entry.source = Source { file: 0, line: index as u64 + 1 };
        for word in words {
            let (key, value) = word.split_once('=').unwrap();
            match key {
                "on" => entry.resource = value,
                "ttl" => entry.ttl_ms = Some(value.parse::<u64>().unwrap() * 1_000),
                "token" => entry.token = Some(value.parse().unwrap()),
                "kind" => entry.kind = Some(value),
                "detail" => entry.detail = Some(value),
                "for" => entry.duration_ms = Some(value.parse::<u64>().unwrap() * 1_000),
                "file" => entry.source.file = value.parse().unwrap(),
                _ => panic!("unknown key {key}"),
            }
        }
        analyser.push(&entry);
    }
    analyser.finish()
}

/// `kind worker,worker cause` of each finding.
fn told(findings: &Findings) -> Vec<String> {
    let line = |finding: &Finding| {
        let workers = finding.workers.join(",");
        format!("{} {workers} {}", finding.kind.name(), finding.cause.name())
    };
    findings.findings.iter().map(line).collect()
}

fn has(findings: &Findings, expected: &str) {
    let told = told(findings);
    assert!(told.iter().any(|line| line == expected), "no {expected:?} in {told:#?}");
}

fn quiet(history: &str) {
    assert_eq!(told(&diagnose(history)), Vec::<String>::new(), "{history}");
}
