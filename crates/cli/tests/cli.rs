//! The command line, as a person or a script meets it: real exports and bad input.

mod common;

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use common::Stage;

fn palisade(args: &[&OsStr]) -> Output {
    palisade_in(Path::new("."), args)
}

#[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
fn palisade_in(folder: &Path, args: &[&OsStr]) -> Output {
    Command::new(common::PROGRAM)
        .args(args)
        .current_dir(folder)
        .env_remove("PALISADE_SERVER")
        .output()
        .expect("the program runs")
}

fn words(args: &[&str]) -> Output {
    palisade(&args.iter().map(OsStr::new).collect::<Vec<_>>())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn make(path: &Path, seconds: u32) {
    let clip =
        palisade_lab::drill::Clip { width: 320, height: 180, seconds, rate: 25, tone_hz: 440 };
    palisade_lab::drill::make_clip(clip, path).await.expect("ffmpeg makes the clip");
}

#[tokio::test(flavor = "multi_thread")]
async fn export_without_a_server_runs_embedded_and_leaves_the_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let (clip, out) = (dir.path().join("clip.mp4"), dir.path().join("out.mp4"));
    make(&clip, 2).await;
    let before = std::fs::read(&clip).expect("the clip");

    let done = palisade(&[
        "export".as_ref(),
        clip.as_os_str(),
        "--recipe".as_ref(),
        "h264-720p".as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
    ]);

    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    assert_eq!(text(&done.stdout).trim(), out.display().to_string());
    assert!(std::fs::metadata(&out).expect("it is there").len() > 1_000);
    assert_eq!(std::fs::read(&clip).expect("the clip"), before, "the input is untouched");
}

#[tokio::test(flavor = "multi_thread")]
async fn relative_paths_are_taken_from_where_the_caller_stands() {
    let dir = tempfile::tempdir().expect("a folder");
    make(&dir.path().join("clip.mp4"), 1).await;

    let args = ["export", "clip.mp4", "--recipe", "h264-720p", "-o", "out.mp4", "--data", "data"];
    let done = palisade_in(dir.path(), &args.map(OsStr::new));

    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    assert!(dir.path().join("out.mp4").is_file());
    assert!(dir.path().join("data/workers").is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_options_protocols_patterns_or_two_lines_are_names_all_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let clip = dir.path().join("clip.mp4");
    make(&clip, 1).await;
    for name in
        ["-i.mp4", "a:b.mp4", "100%d.mp4", "it's \"so\".mp4", "two\nlines.mp4", "pipe:0.mp4"]
    {
        std::fs::copy(&clip, dir.path().join(name)).expect("a copy");
        #[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
        let done = Command::new(common::PROGRAM)
            .args(["export", name, "--recipe", "h264-720p", "-o", "out.mp4"])
            .current_dir(dir.path())
            .env_remove("PALISADE_SERVER")
            .output()
            .expect("the program runs");
        assert!(done.status.success(), "{name:?}: {}", text(&done.stderr));
        std::fs::remove_file(dir.path().join("out.mp4")).expect("it is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_export_twice_gives_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a folder");
    let clip = dir.path().join("clip.mp4");
    make(&clip, 2).await;
    let mut results = Vec::new();
    for name in ["one.mp4", "two.mp4"] {
        let out = dir.path().join(name);
        let (file, to) = (clip.display().to_string(), out.display().to_string());
        let done = words(&["export", &file, "--recipe", "h264-1080p", "-o", &to]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        results.push(std::fs::read(out).expect("it is there"));
    }
    assert!(results[0] == results[1], "bit for bit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_outputs_arrives_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    let (clip, out) = (dir.path().join("clip.mp4"), dir.path().join("stream"));
    make(&clip, 14).await;
    let (file, to) = (clip.display().to_string(), out.display().to_string());
    let done = words(&["export", &file, "--recipe", "hls", "-o", &to]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let playlist = std::fs::read_to_string(out.join("index.m3u8")).expect("the playlist");
    let segments: Vec<_> = playlist.lines().filter(|line| line.starts_with("segment-")).collect();
    assert!(segments.len() >= 2, "{playlist}");
    for segment in segments {
        assert!(out.join(segment).is_file(), "{segment} is missing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_export_leaves_no_file_and_says_why() {
    let dir = tempfile::tempdir().expect("a folder");
    let (file, out) = (dir.path().join("text.mp4"), dir.path().join("out.mp4"));
    std::fs::write(&file, "I am not a video.").expect("a file");
    let (from, to) = (file.display().to_string(), out.display().to_string());
    let done = words(&["export", &from, "--recipe", "h264-720p", "-o", &to]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(!out.exists());
    let left: Vec<_> = std::fs::read_dir(dir.path()).expect("the folder").flatten().collect();
    assert_eq!(left.len(), 1, "nothing half-written: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_flags_are_refused_with_their_name_and_what_is_allowed() {
    let stage = Stage::set().await;
    let url = stage.cluster.url();
    let clip = stage.clip("clip.mp4", 1).await.display().to_string();
    let input = format!("source={clip}");
    let cases: [(&[&str], i32, &str); 12] = [
        (&["submit", "--recipe", "nope", "--input", &input], 2, "recipe"),
        (&["submit", "--recipe", "h264-720p"], 2, "inputs.source"),
        (&["submit", "--recipe", "h264-720p", "--input", "source=/no/such"], 2, "source"),
        (&["submit", "--recipe", "h264-720p", "--input", "source=/tmp"], 2, "not a file"),
        (&["submit", "--recipe", "h264-720p", "--input", "nothing"], 2, "NAME=FILE"),
        (
            &["submit", "--recipe", "h264-720p", "--input", &input, "--param", "crf=99"],
            2,
            "parameters.crf",
        ),
        (&["submit", "--recipe", "h264-720p", "--input", &input, "--param", "nope=1"], 2, "nope"),
        (&["job", "42"], 2, "j42"),
        (&["job", "j999999"], 4, "j999999"),
        (&["cancel", "j999999"], 4, "j999999"),
        (&["jobs", "--state", "done"], 2, "queued, running"),
        (&["export", "/no/such", "--recipe", "h264-720p", "-o", "/tmp/x"], 2, "/no/such"),
    ];
    for (args, code, told) in cases {
        let mut all = vec!["--server", url.as_str()];
        all.extend(args);
        let done = words(&all);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(told), "{args:?} should name {told:?}: {said}");
    }
}

#[test]
fn a_server_that_is_not_there_has_an_exit_code_of_its_own() {
    let done = words(&["--server", "http://127.0.0.1:9", "jobs"]);
    assert_eq!(done.status.code(), Some(3), "{}", text(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_printed_as_json_where_it_is_asked_for() {
    let stage = Stage::set().await;
    let url = stage.cluster.url();
    let clip = stage.clip("clip.mp4", 1).await.display().to_string();
    let input = format!("source={clip}");
    let submit = ["submit", "--recipe", "slow", "--input", &input];
    let json = |args: &[&str]| {
        let mut all = vec!["--server", url.as_str(), "--json"];
        all.extend(args);
        let done = words(&all);
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(&done.stdout);
        parsed.unwrap_or_else(|_| panic!("{args:?}: {}", text(&done.stdout)))
    };
    let id = json(&submit)["job"].as_str().expect("an id").to_owned();
    assert_eq!(json(&["job", &id])["state"], "queued");
    assert_eq!(json(&["jobs"])["jobs"][0]["id"], id.as_str());
    assert_eq!(json(&["history", &id])["events"][0]["event"], "submitted");
    assert!(json(&["recipes"]).to_string().contains("h264-720p"));
    assert_eq!(json(&["cancel", &id])["state"], "cancelled");
    assert_eq!(json(&["job", "j999999"])["code"], "not_found", "a problem is JSON too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_has_one_owner() {
    let stage = Stage::set().await;
    let data = stage.cluster.server_dir().display().to_string();
    let second = words(&["serve", "--data", &data, "--listen", "127.0.0.1:0"]);
    assert!(!second.status.success());
    let said = text(&second.stderr);
    assert!(said.contains(&data), "it names the folder: {said}");
    stage.client().ready().await.expect("the first serves on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demonstration_ends_well_and_shows_what_was_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("demo").display().to_string();
    let done = words(&["demo", "--dir", &out, "--seconds", "8", "--json"]);
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let jobs = report["jobs"].as_array().expect("the jobs");
    assert!(jobs.len() == 4 && jobs.iter().all(|job| job["state"] == "complete"), "{report:#}");
    let refused = report["events"].as_array().expect("the journal").iter();
    let refused: Vec<_> = refused.filter(|entry| entry["event"] == "refused").collect();
    // The one that was held back; and perhaps its repeat, if the woken worker had given it up.
    assert!(!refused.is_empty(), "{report:#}");
    for entry in refused {
        assert_eq!((&entry["verb"], &entry["code"]), (&"complete".into(), &"stale_token".into()));
    }
    let again = words(&["demo", "--dir", &dir.path().display().to_string()]);
    assert_eq!(again.status.code(), Some(2), "a folder that no demo made is left alone");
}

#[test]
fn a_raise_of_tokens_makes_no_store_and_takes_no_number_too_many() {
    let dir = tempfile::tempdir().expect("a folder");
    let nowhere = dir.path().join("nowhere");
    let raise = |by: &str| {
        let data = nowhere.as_os_str();
        palisade(
            &["admin", "tokens", "raise", "--by", by, "--data"]
                .map(OsStr::new)
                .iter()
                .copied()
                .chain([data])
                .collect::<Vec<_>>(),
        )
    };
    let refused = raise("1");
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("there is no store in") && told.contains("nowhere"), "{told}");
    assert!(!nowhere.exists() && refused.stdout.is_empty());
}

#[test]
fn a_database_that_is_away_is_unavailable_and_no_password_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().to_str().expect("text");
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("an address").port()
    };
    let url = format!("postgres://me:hunter2@127.0.0.1:{port}/exports");
    let serve = ["serve", "--data", data, "--listen", "127.0.0.1:0", "--store"];
    for (words, code) in [(&serve[..], 3), (&["admin", "tokens", "raise", "--store"][..], 3)] {
        let away = self::words(&[words, &[url.as_str()]].concat());
        let told = text(&away.stderr);
        assert_eq!(away.status.code(), Some(code), "{told}");
        assert!(told.contains(&format!("exports at 127.0.0.1:{port}")), "{told}");
        assert!(!told.contains("hunter2") && !told.contains("Tcp("), "{told}");
    }
    let keywords = words(&[&serve[..], &["host=localhost password=hunter2"]].concat());
    let told = text(&keywords.stderr);
    assert_eq!(keywords.status.code(), Some(2), "{told}");
    assert!(told.contains("not a URL") && !told.contains("hunter2"), "{told}");
}
