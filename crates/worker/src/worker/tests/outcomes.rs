//! What becomes of an attempt.

use bytes::Bytes;
use palisade_api::Problem;
use palisade_core::Digest;

use crate::testing::{Bench, Fault, Standing, Verb, rendered_failure};

#[tokio::test]
async fn a_job_is_claimed_rendered_uploaded_and_completed_under_its_pair() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    let input = std::fs::read(&run.request.inputs[&"source".parse().unwrap()]).unwrap();
    assert_eq!(input, b"input 0");
    run.progress(40.0);
    assert_eq!(bench.event("progress").await["percent"], 40.0);
    run.finish(b"output");
    let completed = bench.event("completed").await;
    assert_eq!(completed["token"], token);
    {
        let state = bench.server.state();
        let [complete] = &state.completes[..] else { panic!("{:?}", state.completes) };
        assert_eq!((complete.token, &complete.lease), (token, &format!("{token:032x}")));
        let [output] = &complete.manifest.outputs[..] else { panic!("{complete:?}") };
        assert_eq!(output.digest, Digest::of(b"output"));
        assert_eq!(state.uploaded[&output.digest], b"output");
        assert_eq!(complete.manifest.provenance.toolchain, "cp 9");
    }
    assert_eq!(bench.left(), [] as [std::path::PathBuf; 0]);
    let names: Vec<_> = bench.words().iter().map(|event| event["event"].clone()).collect();
    let stations = ["claimed", "started", "progress", "uploading", "completing", "completed"];
    assert_eq!(names, stations);
    bench.end(worker).await;
}

#[tokio::test]
async fn a_completion_of_unknown_outcome_is_repeated_until_it_is_answered() {
    let bench = Bench::new();
    bench.server.script(Verb::Complete, |nth| match nth {
        0 => Some(Fault::LoseReply),
        1..=3 => Some(Fault::Away),
        _ => None,
    });
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    run.finish(b"output");
    assert_eq!(bench.event("completed").await["token"], token);
    {
        let state = bench.server.state();
        assert_eq!(state.completes.len(), 5);
        assert!(state.completes.iter().all(|complete| *complete == state.completes[0]));
        assert_eq!((state.fails.len(), state.releases.len()), (0, 0));
    }
    // Another call may be answered between the faults: then it is told that the server is back.
    let told: Vec<_> = bench
        .words()
        .iter()
        .map(|event| event["event"].as_str().expect("a name").to_owned())
        .filter(|name| name.starts_with("server_"))
        .collect();
    assert!(told.starts_with(&["server_away".to_owned()]), "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "told once each: {told:?}");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_server_that_is_away_while_a_render_finishes_gets_the_completion_when_it_is_back() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    let all = [Verb::Complete, Verb::Heartbeat, Verb::Claim];
    bench.server.all(&all, Fault::Away);
    run.finish(b"output");
    bench.event("completing").await;
    // Far longer than the doubt's grace: what may have been committed is not thrown away.
    bench.pass(2 * bench.config.doubt_grace_ms).await;
    assert_eq!(bench.count("aborted"), 0);
    bench.server.all(&all, None);
    bench.event("completed").await;
    bench.end(worker).await;
}

#[tokio::test]
async fn outputs_that_the_server_misses_are_sent_again() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    // The collector took them between the upload and the commit.
    bench.server.script(Verb::Complete, |nth| {
        (nth < 2).then_some(Fault::First(|state| state.uploaded.clear()))
    });
    run.finish(b"output");
    bench.event("completed").await;
    {
        let state = bench.server.state();
        assert_eq!(state.uploaded[&Digest::of(b"output")], b"output");
        assert_eq!(state.completes.len(), 3);
    }
    bench.end(worker).await;
}

#[tokio::test]
async fn outputs_that_are_missed_again_and_again_fail_the_attempt() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    bench.server.all(&[Verb::Complete], Fault::First(|state| state.uploaded.clear()));
    run.finish(b"output");
    let failed = bench.event("failed").await;
    assert_eq!((&failed["reason"], &failed["final"]), (&"upload_lost".into(), &false.into()));
    assert_eq!(bench.left().len(), 0);
    bench.end(worker).await;
}

#[tokio::test]
async fn a_completion_that_comes_too_late_is_refused_and_leaves_nothing() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    // Replaced between the keeper's last look and the arrival of the completion.
    let replaced = Fault::First(|state| {
        for attempt in state.attempts.values_mut() {
            attempt.standing = Standing::Closed("superseded");
        }
    });
    bench.server.all(&[Verb::Complete], replaced);
    run.finish(b"output");
    let refused = bench.event("refused").await;
    assert_eq!((&refused["verb"], &refused["code"]), (&"complete".into(), &"stale_token".into()));
    assert_eq!(bench.left().len(), 0);
    assert_eq!(bench.server.reported(), (1, 0, 0));
    bench.end(worker).await;
}

#[tokio::test]
async fn a_failure_is_reported_until_it_is_answered() {
    let bench = Bench::new();
    bench.server.script(Verb::Fail, |nth| (nth < 3).then_some(Fault::Away));
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    run.end(rendered_failure("bad_input"));
    let failed = bench.event("failed").await;
    assert_eq!((&failed["reason"], &failed["final"]), (&"bad_input".into(), &true.into()));
    {
        let state = bench.server.state();
        assert_eq!(state.fails.len(), 4);
        assert!(state.fails.iter().all(|fail| fail.token == token && fail.is_final));
    }
    assert_eq!(bench.left().len(), 0);
    bench.end(worker).await;
}

#[tokio::test]
async fn an_input_that_is_not_what_was_submitted_fails_as_changed_and_is_not_rendered() {
    for (digest, bytes) in [(b"promised", "pretence"), (b"promised", "promised and more")] {
        let bench = Bench::new();
        let worker = bench.start().await;
        let digest = Digest::of(digest);
        bench.server.submit_with(&bench.recipe(), digest, Bytes::from_static(bytes.as_bytes()));
        assert_eq!(bench.event("failed").await["reason"], "input_changed");
        assert!(!bench.server.state().fails[0].is_final);
        assert!(bench.runner.runs.lock().unwrap().is_empty());
        assert_eq!(bench.left().len(), 0);
        bench.end(worker).await;
    }
}

#[tokio::test]
async fn a_download_that_breaks_is_begun_anew() {
    let bench = Bench::new();
    bench.server.script(Verb::Blob, |nth| (nth < 2).then_some(Fault::Away));
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    run.finish(b"output");
    bench.event("completed").await;
    bench.end(worker).await;
}

#[tokio::test]
async fn a_full_store_fails_the_attempt_with_the_servers_words_to_be_tried_later() {
    let bench = Bench::new();
    let full = Problem::new(507, "insufficient_storage", "the blob folder is full");
    bench.server.all(&[Verb::Upload], Fault::Refuse(full));
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    run.finish(b"output");
    let failed = bench.event("failed").await;
    assert_eq!((&failed["reason"], &failed["final"]), (&"disk_full".into(), &false.into()));
    assert!(failed["message"].as_str().unwrap().contains("the blob folder is full"), "{failed}");
    assert_eq!(bench.left().len(), 0);
    bench.end(worker).await;
}

#[tokio::test]
async fn an_output_that_is_a_link_is_not_followed() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    let secret = bench.folder().join("secret");
    std::fs::write(&secret, "of another customer").unwrap();
    let out = run.request.scratch.join("out");
    std::fs::create_dir_all(&out).unwrap();
    std::os::unix::fs::symlink(&secret, out.join("link.bin")).unwrap();
    run.finish_with(out.join("link.bin"));
    assert_eq!(bench.event("failed").await["reason"], "bad_output");
    assert!(bench.server.state().uploaded.is_empty());
    assert!(secret.exists());
    bench.end(worker).await;
}
