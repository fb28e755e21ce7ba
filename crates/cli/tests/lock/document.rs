//! Every example of `docs/fencing.md` is run, in its order, against a server.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use palisade_lab::drill::{Clip, WorkerOptions, make_clip};

use crate::{
    common::PROGRAM,
    guard_example,
    stage::{Stage, text},
};

const DOCUMENT: &str = include_str!("../../../../docs/fencing.md");

/// A fenced block: its first line, and what is in it.
fn blocks(document: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        found.push((info.to_owned(), body.join("\n") + "\n"));
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "the test runs a page's examples")]
fn run(stage: &Stage, script: &str) -> Output {
    let folder = Path::new(PROGRAM).parent().expect("a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    Command::new("sh")
        .args(["-euc", script])
        .current_dir(stage.dir.path())
        .env("PATH", path)
        .env("PALISADE_SERVER", stage.cluster.url())
        .output()
        .expect("a shell runs")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_does_what_the_page_says() {
    let stage = Stage::set().await;
    let tool = stage.path("make-report");
    std::fs::write(&tool, "#!/bin/sh\necho \"the report, by token $PALISADE_TOKEN\"\n")
        .expect("a file");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let clip = Clip { width: 320, height: 180, seconds: 2, rate: 25, tone_hz: 300 };
    make_clip(clip, &stage.path("clip.mov")).await.expect("ffmpeg makes it");
    let worker = stage.cluster.start_worker("worker", &WorkerOptions::default());
    let _worker = worker.expect("it starts");
    let (mut scripts, mut programs) = (0, 0);
    for (info, body) in blocks(DOCUMENT) {
        let code = match info.as_str() {
            "sh" => 0,
            // Compiled and run as modules of these tests.
            "rust register" => {
                assert_eq!(body, include_str!("register_example.rs"), "the page's copy differs");
                programs += 1;
                continue;
            }
            "rust guard" => {
                assert_eq!(body, include_str!("guard_example.rs"), "the page's copy differs");
                assert!(guard_example::report(&stage.cluster.url()).await.expect("it is written"));
                programs += 1;
                continue;
            }
            other => match other.strip_prefix("sh exit=") {
                Some(code) => code.parse().expect("a number"),
                None => panic!("a block that nobody runs: {other}"),
            },
        };
        let done = run(&stage, &body);
        let said = format!("{body}\n{}{}", text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(code), "{said}");
        scripts += 1;
    }
    assert_eq!((scripts, programs), (10, 2), "the page has lost an example");
    assert!(stage.read("reports/august.txt").expect("it was put").starts_with("the report"));
    assert_eq!(stage.read("reports/newest.txt").as_deref(), Some("the report of a program"));
    assert_eq!(stage.read("reports/july.txt").as_deref(), Some("the report\n"));
    assert_eq!(stage.read("reports/draft.txt"), None, "it was deleted in the end");
}
