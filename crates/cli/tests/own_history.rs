//! The seed story, run by real processes and told from Palisade's own journal: a worker stands
//! still past its lease, another is granted the job, the first one's commit is refused.

mod common;

use std::path::Path;
use std::process::Output;

use common::{PROGRAM, Stage};
use palisade_lab::drill::{Process, Proxy, WorkerOptions};
use serde_json::{Value, json};

fn palisade(args: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the test runs the binary that it tests")]
    std::process::Command::new(PROGRAM).args(args).output().expect("the binary runs")
}

fn parsed(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {error}"))
}

/// What a report says of each fault, without its words and its instants.
fn essence(report: &Value) -> Vec<(String, String, String, Value)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let findings = report["findings"].as_array().expect("a list").iter();
    let mut all: Vec<_> = findings
        .map(|finding| {
            let (kind, cause) = (text(&finding["kind"]), text(&finding["cause"]));
            (kind, cause, text(&finding["workers"][0]), finding["landed"].clone())
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// The log that the same run would have left with a lock in Redis: no tokens, nothing that the
/// server knows, and no word of the pause. Who keeps a lease renews it at a third of its time; the
/// journal tells until when it was kept.
fn redis_style(history: &Value, workers: [&Process; 2], job: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut names = std::collections::BTreeMap::new();
    let mut kept = std::collections::BTreeMap::new();
    for entry in history["events"].as_array().expect("a list") {
        let token = entry["token"].as_u64();
        if let (Some("granted"), Some(token)) = (entry["event"].as_str(), token) {
            names.insert(token, entry["worker"].as_str().expect("a name").to_owned());
        }
        let Some(worker) = token.and_then(|token| names.get(&token)) else { continue };
        let line = |event: &str, at: &Value| json!({"at": at, "worker": worker, "lock": job, "event": event});
        let with = |event: &str, more: Value| {
            let mut line = line(event, &entry["at_ms"]);
            line.as_object_mut()
                .expect("made above")
                .extend(more.as_object().expect("one").clone());
            line
        };
        match entry["event"].as_str().expect("each has a name") {
            "granted" => {
                lines.push(with("acquired", json!({"ttl_ms": entry["ttl_ms"]})));
                kept.insert(token, (number(&entry["at_ms"]), number(&entry["ttl_ms"])));
            }
            "lapsed" => {
                renew(&mut lines, kept.remove(&token), number(&entry["renewed_at_ms"]), &line);
            }
            "refused" => lines.push(with("effect", json!({"kind": "write", "detail": "refused"}))),
            "closed" if entry["reason"] == "completed" => {
                renew(&mut lines, kept.remove(&token), number(&entry["at_ms"]), &line);
                lines.push(with("effect", json!({"kind": "write"})));
                lines.push(line("completed", &entry["at_ms"]));
            }
            _ => {}
        }
    }
    for worker in workers {
        lines.extend(progress(worker, history, job));
    }
    lines.sort_by_key(|line| line["at"].as_u64());
    lines
}

/// The renewals of a lease from its grant, for so long, up to its last.
fn renew(
    lines: &mut Vec<Value>,
    lease: Option<(u64, u64)>,
    until_ms: u64,
    line: &impl Fn(&str, &Value) -> Value,
) {
    let (granted_ms, ttl_ms) = lease.expect("a lease is granted before it ends");
    let beats = std::iter::successors(Some(granted_ms), |at| Some(at + ttl_ms / 3)).skip(1);
    lines.extend(beats.take_while(|at| *at < until_ms).map(|at| line("renewed", &json!(at))));
    if until_ms > granted_ms {
        lines.push(line("renewed", &json!(until_ms)));
    }
}

/// What a worker told so far.
fn told(worker: &Process) -> Vec<Value> {
    worker.lines().iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// Waits until a worker has told of progress so long after its claim that no reader of a log can
/// take the two for simultaneous: in a log without tokens a quarter of a second is forgiven.
async fn well_on(worker: &Process) {
    let look = async || {
        let told = told(worker);
        let at = |name: &str| told.iter().rev().find(|event| event["event"] == name);
        match (at("claimed"), at("progress")) {
            (Some(from), Some(to)) if number(&to["at_ms"]) >= number(&from["at_ms"]) + 1_000 => {
                Ok(())
            }
            seen => Err(format!("{seen:?}")),
        }
    };
    let waited = palisade_lab::drill::wait_for("progress", common::LIMIT, look).await;
    waited.expect("it renders on");
}

/// A worker's progress, on the clock of the journal: its own counts from the machine's start.
fn progress(worker: &Process, history: &Value, job: &str) -> Vec<Value> {
    let told = told(worker);
    let claimed = told.iter().find(|event| event["event"] == "claimed").expect("it claimed");
    let granted = history["events"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|entry| entry["event"] == "granted" && entry["token"] == claimed["token"]);
    let granted_at = number(&granted.expect("it was granted")["at_ms"]);
    let claimed_at = number(&claimed["at_ms"]);
    let own = told.iter().filter(|event| event["event"] == "progress" && event["job"] == job);
    own.map(|event| {
        let at = granted_at + (number(&event["at_ms"]) - claimed_at);
        json!({"at": at, "worker": worker.name(), "lock": job, "event": "progress"})
    })
    .collect()
}

#[tokio::test]
async fn the_seed_story_is_told_from_our_own_journal_as_from_a_log_without_tokens() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 6).await;
    let job = stage.submit("slow", &clip).await.job;
    let hold = Some("/complete HTTP/1.1");
    let proxy = Proxy::start(stage.cluster.address(), hold).await.expect("a proxy");
    let how = WorkerOptions { url: Some(proxy.url()), ..WorkerOptions::default() };
    let a = stage.worker_with("render-a", how);
    let held = proxy.held().await;
    a.stop();
    // However slow the machine is, b is still at work when a wakes.
    let other = Proxy::start(stage.cluster.address(), hold).await.expect("a proxy");
    let how = WorkerOptions { url: Some(other.url()), ..WorkerOptions::default() };
    let b = stage.worker_with("render-b", how);
    well_on(&b).await;
    a.wake();
    held.let_go();
    stage.event(&a, "refused", &job).await;
    other.held().await.let_go();
    stage.over(&job).await;
    // The report of the pause comes with the next heartbeat.
    let client = stage.client();
    let has_pause = || async {
        let history = client.history(&job).await.map_err(|error| error.to_string())?;
        let told = serde_json::to_value(&history).expect("JSON");
        let mut events = told["events"].as_array().expect("a list").iter();
        if events.any(|e| e["event"] == "paused") { Ok(told) } else { Err(told.to_string()) }
    };
    let history = palisade_lab::drill::wait_for("the pause", common::LIMIT, has_pause).await;
    let history = history.expect("the worker reports its pause");

    let (url, folder) = (stage.cluster.url(), stage.dir.path());
    let own = palisade(&["history", &job, "--findings", "--json", "--server", &url]);
    assert_eq!(own.status.code(), Some(1), "findings are exit code 1");
    let own = parsed(&own);
    let fault = |kind: &str, landed: Value| {
        (kind.to_owned(), "pause".to_owned(), "render-a".to_owned(), landed)
    };
    let expected = [
        fault("late_effect", json!(false)),
        fault("overlap", Value::Null),
        fault("pause", Value::Null),
    ];
    assert_eq!(essence(&own), expected, "{own:#}\n{history:#}");
    let findings = own["findings"].as_array().expect("a list");
    let pause = findings.iter().find(|finding| finding["kind"] == "pause").expect("as asserted");
    assert_eq!(pause["confidence"], "certain", "the worker measured it: {pause:#}");
    let measured = history["events"].as_array().expect("a list").iter();
    let measured: Vec<_> = measured.filter_map(|entry| entry["pause_ms"].as_u64()).collect();
    assert!(measured.iter().any(|ms| *ms > 2_000), "{measured:?}");

    let log = folder.join("redis.jsonl");
    write_lines(&log, &redis_style(&history, [&a, &b], &job));
    let log = log.display().to_string();
    let theirs = parsed(&palisade(&["diagnose", &log, "--map", "resource=lock", "--json"]));
    assert_eq!(essence(&theirs), expected, "{theirs:#}");
    let data = stage.cluster.server_dir().display().to_string();
    for whole in [
        &["diagnose", "--own", "--json", "--server", &url][..],
        &["diagnose", "--data", &data, "--json"],
    ] {
        let output = palisade(whole);
        assert_eq!(output.status.code(), Some(1), "findings are exit code 1");
        let told = parsed(&output);
        assert_eq!(essence(&told), expected, "{whole:?}: {told:#}");
        assert!(told["summary"]["ttl"]["suggested_s"].as_f64().is_some(), "{told:#}");
    }
    streams(&url);
    draws(&stage, &job);
    shows_in_a_browser(&url, folder);
}

/// The journal on the command line, whole and from a position on.
fn streams(url: &str) {
    let positions = |more: &[&str]| -> Vec<u64> {
        let args = [&["events", "--json", "--server", url][..], more].concat();
        let output = palisade(&args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let entry = |line: &str| serde_json::from_str::<Value>(line).expect("one entry a line");
        text.lines().map(|line| entry(line)["position"].as_u64().expect("a position")).collect()
    };
    let all = positions(&[]);
    assert!(all.len() > 5, "{all:?}");
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(positions(&["--after", "3"]), all[3..]);
    assert_eq!(positions(&["--after", "now"]), [0; 0]);
}

/// A browser renders the report, in light and in dark, and loads nothing else.
fn shows_in_a_browser(url: &str, folder: &Path) {
    let html = folder.join("own.html");
    let path = html.display().to_string();
    let report = palisade(&["diagnose", "--own", "--html", &path, "--server", url]);
    assert_eq!(report.status.code(), Some(1), "{}", String::from_utf8_lossy(&report.stderr));
    let browser = Path::new("/usr/bin/chromium");
    if !browser.exists() {
        #[expect(clippy::print_stderr, reason = "a test that is not run says so")]
        let () = eprintln!("SKIPPED: no {}: nobody has looked at the report", browser.display());
        return;
    }
    let profile = folder.join("browser").display().to_string();
    #[expect(clippy::disallowed_methods, reason = "the test runs a browser")]
    let output = std::process::Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={profile}"))
        .arg(format!("file://{path}"))
        .output()
        .expect("the browser runs");
    let dom = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(dom.contains("<h1>Diagnosis</h1>") && dom.contains("</svg>"), "{dom}\n{log}");
    assert!(!log.contains("CONSOLE"), "the page complains: {log}");
}

fn write_lines(path: &Path, lines: &[Value]) {
    let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    std::fs::write(path, text).expect("the log is written");
}

/// The picture of the run, in the terminal and as SVG.
fn draws(stage: &Stage, job: &str) {
    let (url, svg) = (stage.cluster.url(), stage.dir.path().join("story.svg"));
    let file = svg.display().to_string();
    let args = ["timeline", job, "--server", &url, "--svg", &file, "--width", "100"];
    let drawn = palisade(&args);
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    let text = String::from_utf8_lossy(&drawn.stdout);
    assert!(text.contains("render-a") && text.contains("render-b"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let picture = std::fs::read_to_string(&svg).expect("the SVG is there");
    assert!(picture.starts_with("<svg") && picture.contains("render-a"), "{picture}");
    if let Some(keep) = std::env::var_os("PALISADE_KEEP_PICTURES") {
        std::fs::create_dir_all(&keep).expect("a folder for pictures");
        let html = Path::new(&keep).join("story.html").display().to_string();
        let kept = Path::new(&keep).join("story.svg");
        std::fs::copy(&svg, kept).expect("the picture is copied");
        let report = palisade(&["history", job, "--findings", "--html", &html, "--server", &url]);
        std::fs::write(Path::new(&keep).join("story.txt"), [drawn.stdout, report.stdout].concat())
            .expect("the report is kept");
    }
}
