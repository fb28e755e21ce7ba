//! Whole logs with known stories: each `cases/NAME.expected.json` says how to read `NAME.*`, what
//! must be found in it, and what must not.

#![expect(clippy::unwrap_used, reason = "a test's own helpers may fail loudly")]

use std::path::{Path, PathBuf};

use palisade_audit::findings::{Analyser, Findings};
use palisade_audit::read::{Reader, Tally, Translation, built_in};
use palisade_audit::report::{File, Report, html, json, text};
use palisade_audit::timeline::{Collector, Style, Timeline};
use serde_json::Value;

struct Told {
    name: String,
    findings: Findings,
    tally: Tally,
    timelines: Vec<Timeline>,
}

fn cases() -> Vec<(Value, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".expected.json") else { continue };
        let expected = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let log = ["jsonl", "csv", "logfmt", "log"]
            .iter()
            .map(|extension| folder.join(format!("{stem}.{extension}")))
            .find(|log| log.exists())
            .unwrap();
        cases.push((expected, log));
    }
    cases.sort_by(|a, b| a.1.cmp(&b.1));
    cases
}

fn translation(expected: &Value) -> Translation {
    let mut translation = Translation::new();
    let args: Vec<&str> = expected["args"]
        .as_array()
        .map(|args| args.iter().map(|arg| arg.as_str().unwrap()).collect())
        .unwrap_or_default();
    for pair in args.chunks(2) {
        match pair[0] {
            "--map" => translation.map(pair[1]).unwrap(),
            "--event" => translation.word(pair[1]).unwrap(),
            "--pattern" => translation.pattern(pair[1]).unwrap(),
            "--profile" => translation.profile(&built_in(pair[1]).unwrap()).unwrap(),
            other => panic!("{other} is not known here"),
        }
    }
    translation
}

fn tell(expected: &Value, log: &Path) -> Told {
    let translation = translation(expected);
    let name = log.file_name().unwrap().to_str().unwrap().to_owned();
    let bytes = std::fs::read(log).unwrap();
    let mut analyser = Analyser::new(translation.settings());
    let mut reader = Reader::new(&translation, 0, &name);
    reader.feed(&bytes, &mut |entry| analyser.push(entry));
    let tally = reader.finish(&mut |entry| analyser.push(entry));
    let findings = analyser.finish();
    let wanted = findings.findings.iter().map(|finding| finding.resource.as_str());
    let mut collector = Collector::new(wanted, Vec::new());
    let mut reader = Reader::new(&translation, 0, &name);
    reader.feed(&bytes, &mut |entry| collector.push(entry));
    reader.finish(&mut |entry| collector.push(entry));
    let timelines = collector.finish(&findings.findings);
    Told { name, findings, tally, timelines }
}

fn check(expected: &Value, told: &Value) -> Result<(), String> {
    let found = told["findings"].as_array().unwrap();
    for wanted in expected["expect"].as_array().unwrap() {
        let fits = |finding: &&Value| {
            let mut a: Vec<&str> = strings(&finding["workers"]);
            let mut b: Vec<&str> = strings(&wanted["workers"]);
            a.sort_unstable();
            b.sort_unstable();
            finding["kind"] == wanted["kind"]
                && finding["resource"] == wanted["resource"]
                && (wanted["workers"].is_null() || a == b)
                && (wanted["cause"].is_null() || finding["cause"] == wanted["cause"])
        };
        found.iter().find(fits).ok_or_else(|| format!("nothing fits {wanted}"))?;
    }
    for finding in found {
        if strings(&expected["forbid"]).contains(&finding["kind"].as_str().unwrap())
            || strings(&expected["quiet"]).contains(&finding["resource"].as_str().unwrap())
        {
            return Err(format!("a false alarm: {}", finding["headline"]));
        }
        let evidence = finding["evidence"].as_array().unwrap();
        if evidence.is_empty() || evidence.iter().any(|place| place["line"].as_u64() < Some(1)) {
            return Err(format!("no evidence for {}", finding["headline"]));
        }
    }
    let unreadable = expected["unreadable_lines"].as_u64().unwrap_or(0);
    if told["unreadable_lines"].as_u64() != Some(unreadable) {
        return Err(format!("unreadable lines: {}", told["unreadable_lines"]));
    }
    Ok(())
}

fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn every_case_is_explained_as_expected() {
    let cases = cases();
    assert!(cases.len() >= 10, "only {} cases", cases.len());
    for (expected, log) in cases {
        let told = tell(&expected, &log);
        let files = [File { name: told.name.clone(), tally: told.tally, skew: None }];
        let report = Report { findings: &told.findings, files: &files, timelines: &told.timelines };
        let value = json(&report);
        if let Err(why) = check(&expected, &value) {
            panic!("{}: {why}\n{:#}", told.name, value["findings"]);
        }
        let text = text(&report, Style { width: 100, colour: false });
        let page = html(&report);
        for finding in &told.findings.findings {
            assert!(text.contains(&finding.headline), "{text}");
            assert!(page.contains(finding.kind.name()));
        }
        assert_eq!(page.matches("<svg ").count(), told.timelines.len());
        for elsewhere in ["src=", "href=", "<script", "@import", "url(http"] {
            assert!(!page.contains(elsewhere), "the page needs {elsewhere}");
        }
    }
}

#[test]
fn an_expectation_that_is_not_met_is_noticed() {
    let (expected, log) =
        cases().into_iter().find(|(_, log)| log.ends_with("pause-overlap.jsonl")).unwrap();
    let told = tell(&expected, &log);
    let files = [File { name: told.name, tally: told.tally, skew: None }];
    let report = Report { findings: &told.findings, files: &files, timelines: &[] };
    let mut value = json(&report);
    assert!(check(&expected, &value).is_ok());
    value["findings"].as_array_mut().unwrap().remove(0);
    assert!(check(&expected, &value).is_err());
}
