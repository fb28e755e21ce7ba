//! A lock's story, run by real processes: told by `diagnose --own`, listed by `history`, and drawn
//! by `timeline`.

use serde_json::Value;

use crate::stage::{Holder, Stage, signal, text};

/// Says its pid, waits to be let go, writes, says how that ended, and waits for its end.
const WRITER: &str = r#"
echo "pid $$"
while ! [ -e "$DIR/go-$NAME" ]; do sleep 0.05; done
echo "of $NAME" | "$P" object put report -
echo "wrote $?"
while ! [ -e "$DIR/end-$NAME" ]; do sleep 0.05; done"#;

fn writer(stage: &Stage, name: &str, ttl: &str) -> Holder {
    let flags = ["door", "--ttl", ttl, "--wait", "10m"];
    stage.lock_argv(name, &flags, &["sh", "-c", WRITER], &[("NAME", name)])
}

/// Alice is stopped past her lock's time, with her command; bob is granted the lock and writes;
/// alice's command wakes and is refused; then her lock's keeper hears that it is lost.
async fn play(stage: &Stage) {
    let mut alice = writer(stage, "alice", "2s");
    let command: u32 = alice.said("pid ").await.parse().expect("a pid");
    alice.process.stop();
    signal(command, "STOP");
    let mut bob = writer(stage, "bob", "5m");
    bob.said("pid ").await;
    stage.let_go("go-bob");
    assert_eq!(bob.said("wrote ").await, "0");
    let gone = ["lock", "door", "--wait", "0s", "--holder", "carol", "--", "true"];
    assert_ne!(stage.palisade(&gone, "").status.code(), Some(0), "bob holds it");
    stage.let_go("go-alice");
    signal(command, "CONT");
    assert_eq!(alice.said("wrote ").await, "5");
    alice.process.wake();
    assert_eq!(alice.code().await, Some(118), "{}", alice.process.log());
    stage.let_go("end-bob");
    assert_eq!(bob.code().await, Some(0), "{}", bob.process.log());
}

fn told(stage: &Stage, args: &[&str], code: i32) -> String {
    let output = stage.palisade(args, "");
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// `kind cause workers landed` of each finding.
fn essence(report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).expect("JSON");
    let findings = report["findings"].as_array().expect("a list").iter();
    let mut all: Vec<_> = findings
        .map(|found| {
            assert_eq!(found["resource"], "lock door", "{found:#}");
            assert!(!found["evidence"].as_array().expect("a list").is_empty(), "{found:#}");
            let text = |name: &str| found[name].as_str().expect("a text").to_owned();
            let workers = found["workers"].as_array().expect("a list").iter();
            let workers: Vec<_> = workers.filter_map(Value::as_str).collect();
            let (kind, cause) = (text("kind"), text("cause"));
            format!("{kind} {cause} {} {}", workers.join(","), found["landed"])
        })
        .collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locks_story_is_told_and_drawn_from_our_own_journal() {
    let stage = Stage::set().await;
    play(&stage).await;
    let expected =
        ["late_effect pause alice false", "overlap pause alice,bob null", "pause pause alice null"];
    assert_eq!(essence(&told(&stage, &["diagnose", "--own", "--json"], 1)), expected);
    let of_lock = ["history", "--lock", "door", "--findings", "--json"];
    assert_eq!(essence(&told(&stage, &of_lock, 1)), expected);

    let listed = told(&stage, &["history", "--lock", "door"], 0);
    for part in ["granted to alice", "of alice was closed, superseded", "report: REFUSED put by"] {
        assert!(listed.contains(part), "no {part:?} in\n{listed}");
    }
    let svg = stage.path("door.svg").display().to_string();
    for width in ["80", "200"] {
        let draw = ["timeline", "--lock", "door", "--width", width, "--svg", &svg];
        let drawn = told(&stage, &draw, 0);
        let columns: usize = width.parse().expect("a number");
        assert!(drawn.lines().all(|line| line.chars().count() <= columns), "{drawn}");
        let lane = |name: &str| {
            let found = drawn.lines().find(|line| line.trim_start().starts_with(name));
            found.unwrap_or_else(|| panic!("no {name} in\n{drawn}"))
        };
        for sign in ['┣', '·', '╳', '⊘'] {
            assert!(lane("alice").contains(sign), "no {sign} in\n{drawn}");
        }
        assert!(lane("bob").contains('┣') && lane("bob").contains('▲'), "{drawn}");
        assert!(drawn.contains("put #"), "effects show their tokens:\n{drawn}");
    }
    let picture = std::fs::read_to_string(&svg).expect("the SVG is there");
    assert!(picture.starts_with("<svg") && picture.contains("lock door"), "{picture}");
    assert!(picture.contains("effect refused (put)"), "{picture}");

    let shown = told(&stage, &["timeline", "--lock", "door", "--json"], 0);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(
        (&shown["resource"], &shown["lanes"][0]["worker"]),
        (&"lock door".into(), &"alice".into())
    );
    assert_eq!(shown["lanes"][0]["pauses"].as_array().map(Vec::len), Some(1), "{shown:#}");

    let unknown = stage.palisade(&["timeline", "--lock", "window"], "");
    assert_eq!(unknown.status.code(), Some(4), "{}", text(&unknown.stderr));
    let neither = stage.palisade(&["timeline"], "");
    assert_eq!(neither.status.code(), Some(2), "{}", text(&neither.stderr));
}
