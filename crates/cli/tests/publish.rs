//! A real export in segments, published under a name, and replaced by a newer one as a whole.

mod common;

use std::collections::BTreeSet;

use common::{PROGRAM, Stage};
use palisade_api::wire::SubmitRequest;

const NAME: &str = "exports/holiday";

#[expect(clippy::disallowed_methods, reason = "the test runs the binary that it tests")]
fn program(args: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(args).kill_on_drop(true);
    command
}

/// Runs the program against the stage's server. Answers what it printed, and its notes.
async fn palisade(stage: &Stage, args: &[&str]) -> (String, String) {
    let done = program(args).env("PALISADE_SERVER", stage.cluster.url()).output().await;
    let done = done.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    let (out, notes) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{args:?}\n{out}\n{notes}");
    (out, notes)
}

/// A file below the name: its status, its version and its bytes.
async fn read(stage: &Stage, path: &str) -> (u16, String, Vec<u8>) {
    let url = format!("{}/v1/objects/{NAME}/{path}", stage.cluster.url());
    let answer = reqwest::get(url).await.expect("the server answers");
    let status = answer.status().as_u16();
    let tag = answer.headers().get("etag").map(|tag| tag.to_str().expect("ASCII").to_owned());
    (status, tag.unwrap_or_default(), answer.bytes().await.expect("all of it comes").to_vec())
}

/// Reads the playlist and all segments that it names. Answers the versions seen, how many segments
/// there are, and all their bytes.
async fn play(stage: &Stage) -> (BTreeSet<String>, usize, Vec<u8>) {
    let (status, tag, list) = read(stage, "index.m3u8").await;
    assert_eq!(status, 200);
    let list = String::from_utf8(list).expect("a playlist is text");
    let segments: Vec<_> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let (mut tags, mut film) = (BTreeSet::from([tag]), Vec::new());
    for segment in &segments {
        let (status, tag, bytes) = read(stage, segment).await;
        assert_eq!(status, 200, "{segment}\n{list}");
        // A transport stream's packets begin with this byte.
        assert_eq!(bytes[0], 0x47);
        tags.insert(tag);
        film.extend(bytes);
    }
    (tags, segments.len(), film)
}

#[tokio::test]
async fn a_published_film_is_played_through_its_name_and_replaced_as_a_whole() {
    let stage = Stage::set().await;
    let worker = stage.worker("worker");
    let (long, short) = (stage.clip("long.mp4", 20).await, stage.clip("short.mp4", 7).await);
    let file = long.display().to_string();
    let out = stage.dir.path().join("out").display().to_string();
    std::fs::create_dir(&out).expect("a folder");
    let fast = ["--recipe", "hls", "--param", "preset=ultrafast", "--publish", NAME];
    let mut export = vec!["export", &file, "--out", &out];
    export.extend(fast);
    let (_, notes) = palisade(&stage, &export).await;
    assert!(notes.contains("published as exports/holiday"), "{notes}");
    let (first, segments, film) = play(&stage).await;
    assert_eq!((first.len(), segments), (1, 4), "one version, segments of six seconds");
    let fetched = std::fs::read(format!("{out}/segment-00000.ts")).expect("it was fetched too");
    assert!(film.starts_with(&fetched));

    let source = format!("source={}", short.display());
    let mut submit = vec!["submit", "--input", &source];
    submit.extend(fast);
    let (job, _) = palisade(&stage, &submit).await;
    let job = job.trim();
    let (shown, _) = palisade(&stage, &["wait", job]).await;
    assert!(shown.contains("published as exports/holiday"), "{shown}");
    let (second, segments, other) = play(&stage).await;
    assert_eq!((second.len(), segments), (1, 2));
    assert!(second != first && other != film);
    let (status, ..) = read(&stage, "segment-00003.ts").await;
    assert_eq!(status, 404, "nothing of the older one is left under the name");

    // What was rendered first is asked for again: the newest wish, and no second rendering.
    let wish = SubmitRequest {
        publish: Some(NAME.to_owned()),
        parameters: [("preset".to_owned(), "ultrafast".into())].into(),
        ..stage.wish("hls", &long).await
    };
    let again = stage.client().submit(&wish).await.expect("it is recorded");
    assert!(again.cached);
    stage.client().wait(&again.job, common::LIMIT).await.expect("it is published");
    let (third, _, back) = play(&stage).await;
    assert!(back == film && third != first, "the same film, another version");
    drop(worker);
}

#[tokio::test]
async fn a_name_without_a_server_is_refused_before_anything_is_rendered() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let clip = dir.path().join("clip.mp4");
    std::fs::write(&clip, "a clip").expect("a file");
    let clip = clip.display().to_string();
    let args = ["export", "--recipe", "hls", "--publish", NAME, "--out", "there", &clip];
    let mut export = program(&args);
    export.current_dir(dir.path()).env_remove("PALISADE_SERVER");
    let done = export.output().await.expect("it runs");
    assert_eq!(done.status.code(), Some(2));
    let notes = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(notes.contains("publish:") && notes.contains("--server"), "{notes}");
}
