//! The command as people call it: arguments in, report and exit code out.

#![expect(clippy::unwrap_used, reason = "a test's own helpers may fail loudly")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/tests/cases")
}

fn case(name: &str) -> String {
    cases().join(name).to_str().unwrap().to_owned()
}

fn diagnose(args: &[&str], input: &str) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the test starts the binary that it tests")]
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_palisade"))
        .arg("diagnose")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments does not wait for its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn kinds(value: &Value) -> Vec<&str> {
    let findings = value["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

#[test]
fn every_case_ends_with_the_exit_code_that_its_findings_call_for() {
    let mut count = 0;
    for entry in std::fs::read_dir(cases()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".expected.json") else { continue };
        let expected: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let log = ["jsonl", "csv", "logfmt", "log"]
            .iter()
            .map(|extension| cases().join(format!("{stem}.{extension}")))
            .find(|log| log.exists())
            .unwrap();
        let mut args = vec!["--json"];
        let none = Vec::new();
        let more = expected["args"].as_array().unwrap_or(&none);
        args.extend(more.iter().map(|arg| arg.as_str().unwrap()));
        args.push(log.to_str().unwrap());
        let output = diagnose(&args, "");
        let value = json(&output);
        let wanted = expected["expect"].as_array().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(!wanted.is_empty())), "{stem}");
        for finding in wanted {
            assert!(
                kinds(&value).contains(&finding["kind"].as_str().unwrap()),
                "{stem}: {value:#}"
            );
        }
        let unreadable = expected["unreadable_lines"].as_u64().unwrap_or(0);
        assert_eq!(value["unreadable_lines"].as_u64(), Some(unreadable), "{stem}");
        count += 1;
    }
    assert!(count >= 10, "only {count} cases");
}

#[test]
fn the_text_tells_the_story_and_marks_the_mistake() {
    let output = diagnose(&["--color", "never", &case("pause-overlap.jsonl")], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "render-a stood still for 40.1 s",
        ">> 09:00:48.100  render-a goes on after 40.1 s of silence",
        "prevented by:",
        "suggested ttl:",
        "┣",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn standard_input_is_read_like_a_file() {
    let log = std::fs::read_to_string(case("renewal-ignored.logfmt")).unwrap();
    let output = diagnose(&["--json", "-"], &log);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(kinds(&json(&output)).contains(&"renewal_ignored"));
}

#[test]
fn the_page_and_the_picture_are_written_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let (page, picture) = (folder.path().join("r.html"), folder.path().join("t.svg"));
    let log = case("fenced-pause.jsonl");
    let output = diagnose(&["--html", page.to_str().unwrap(), &log], "");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg ") && html.contains("late_effect") && html.ends_with("</html>\n"));
    let output = diagnose(
        &["--timeline", "export-31", "--svg", picture.to_str().unwrap(), "--width", "80", &log],
        "",
    );
    assert!(String::from_utf8(output.stdout).unwrap().contains("gpu-2"));
    assert!(std::fs::read_to_string(picture).unwrap().starts_with("<svg "));
}

/// A history of two workers, each with a file and a clock of its own, the second's 7 s slow.
fn two_files(folder: &Path, with_pause: bool) -> [String; 2] {
    let mut files = [String::new(), String::new()];
    let mut say = |at_ms: u64, worker: usize, job: u64, event: &str| {
        let shown_ms = at_ms - if worker == 1 { 7_000 } else { 0 };
        files[worker].push_str(&format!(
            "{{\"at\":{shown_ms},\"worker\":\"w{worker}\",\"resource\":\"job-{job}\",\
             \"event\":\"{event}\",\"ttl_ms\":30000}}\n"
        ));
    };
    for job in 0..20 {
        let start = 1_773_478_800_000 + job * 60_000;
        let (first, second) = if job % 2 == 0 { (0, 1) } else { (1, 0) };
        say(start, first, job, "acquired");
        say(start + 4_000, second, job, "denied");
        say(start + 9_000, first, job, "renewed");
        if with_pause && job == 10 {
            say(start + 39_400, second, job, "acquired");
            say(start + 48_000, second, job, "renewed");
            say(start + 52_000, first, job, "effect");
            say(start + 55_000, second, job, "effect");
            say(start + 55_100, second, job, "completed");
            continue;
        }
        say(start + 15_000, first, job, "released");
        say(start + 15_400, second, job, "acquired");
        say(start + 24_000, second, job, "effect");
        say(start + 24_100, second, job, "completed");
        say(start + 24_200, second, job, "released");
    }
    ["a.jsonl", "b.jsonl"].map(|name| {
        let path = folder.join(name);
        std::fs::write(&path, &files[usize::from(name == "b.jsonl")]).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

#[test]
fn a_slow_clock_makes_no_finding_and_hides_none() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = two_files(folder.path(), false);
    let output = diagnose(&["--json", &a, &b], "");
    let value = json(&output);
    assert_eq!(kinds(&value), Vec::<&str>::new(), "{value:#}");
    let clock = &value["files"][1]["clock"];
    let offset_ms = clock["offset_ms"].as_i64().unwrap();
    assert!((6_600..=7_400).contains(&offset_ms), "{clock}");
    assert_eq!(clock["sureness"], "sure");

    let [a, b] = two_files(folder.path(), true);
    let value = json(&diagnose(&["--json", &a, &b], ""));
    let kinds = kinds(&value);
    for kind in ["pause", "overlap", "late_effect", "duplicate_effect"] {
        assert!(kinds.contains(&kind), "no {kind}: {value:#}");
    }
    assert!(!kinds.contains(&"lost_grant"), "{value:#}");
}

#[test]
fn what_cannot_be_used_ends_with_code_2_and_says_what_is_allowed() {
    let log = case("pause-overlap.jsonl");
    let cases: [(&[&str], &str); 7] = [
        (&["--map", "when=ts", &log], "must be one of at, worker"),
        (&["--event", "x=granted", &log], "must be one of requested"),
        (&["--format", "xml", &log], "must be json, csv, logfmt or pattern"),
        (&["--pattern", "(", &log], "not a regular expression"),
        (&["--profile", "nobody", &log], "bullmq, celery, kubernetes, redisson, sidekiq"),
        (&["/does/not/exist"], "cannot read /does/not/exist"),
        (&["--map", "event=nothing", &log], "none of the 43 lines could be read"),
    ];
    for (args, part) in cases {
        let output = diagnose(args, "");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(diagnose(&[], "").status.code(), Some(2));
}

#[test]
fn a_profile_of_ones_own_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("mine.toml");
    std::fs::write(
        &profile,
        "about = 'ours'\nttl_ms = 30000\n[fields]\nat = 't'\nworker = 'who'\n[events]\n\
         took = 'acquired'\n",
    )
    .unwrap();
    let log = "{\"t\":1773478800,\"who\":\"a\",\"resource\":\"r\",\"event\":\"took\"}\n";
    let output = diagnose(&["--json", "--profile", profile.to_str().unwrap(), "-"], log);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(json(&output)["summary"]["attempts"], 1);
}
