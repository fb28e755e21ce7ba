//! The server away while a render runs: doubt, then certainty.

mod common;

use common::{Stage, completed};
use palisade_lab::drill::{Proxy, WorkerOptions};

#[tokio::test]
async fn away_for_less_than_the_grace_the_render_is_frozen_then_thawed_and_completes() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 8).await;
    let job = stage.submit("slow", &clip).await.job;
    let proxy = Proxy::start(stage.cluster.address(), None).await.expect("a proxy");
    let how = WorkerOptions { ttl_ms: 2_000, url: Some(proxy.url()), ..WorkerOptions::default() };
    let worker = stage.worker_with("worker", how);
    stage.event(&worker, "progress", &job).await;

    proxy.cut();
    stage.event(&worker, "frozen", &job).await;
    let folder = stage.cluster.worker_dir("worker");
    palisade_lab::drill::wait_for("the renderer to stand still", common::LIMIT, async || {
        let seen = common::renderers(&folder);
        let ffmpeg = seen.iter().find(|(_, _, words)| words.trim_start().starts_with("ffmpeg"));
        match ffmpeg {
            Some((_, 'T', _)) => Ok(()),
            _ => Err(format!("{seen:?}")),
        }
    })
    .await
    .expect("ffmpeg is stopped");
    proxy.mend();

    stage.event(&worker, "thawed", &job).await;
    let job = stage.over(&job).await;
    assert_eq!(job.state, "complete", "{job:#?}");
    assert_eq!(job.attempts.len(), 1, "the same token completed: {:#?}", job.attempts);
}

#[tokio::test]
async fn away_for_longer_than_the_grace_the_render_is_given_up() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 60).await;
    let job = stage.submit("slow", &clip).await.job;
    let proxy = Proxy::start(stage.cluster.address(), None).await.expect("a proxy");
    let how = WorkerOptions {
        ttl_ms: 1_000,
        url: Some(proxy.url()),
        more: vec!["--doubt-grace".to_owned(), "2s".to_owned()],
        ..WorkerOptions::default()
    };
    let worker = stage.worker_with("worker", how);
    stage.event(&worker, "progress", &job).await;

    proxy.cut();
    let aborted = stage.event(&worker, "aborted", &job).await;
    assert_eq!(aborted["reason"], "doubt_grace_over");
    stage.assert_no_renderer("worker").await;
    stage.assert_scratch_is_empty("worker").await;
}

#[tokio::test]
async fn away_while_a_render_finishes_the_completion_is_repeated_until_it_is_answered() {
    let mut stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 2).await;
    let job = stage.submit("slow", &clip).await.job;
    let hold = Some("/complete HTTP/1.1");
    let proxy = Proxy::start(stage.cluster.address(), hold).await.expect("a proxy");
    let how = WorkerOptions { ttl_ms: 30_000, url: Some(proxy.url()), ..WorkerOptions::default() };
    let worker = stage.worker_with("worker", how);
    let held = proxy.held().await;
    stage.cluster.kill_server().await.expect("it ends");
    held.let_go();
    stage.cluster.start_server().await.expect("it starts again");

    stage.event(&worker, "completed", &job).await;
    let job = stage.over(&job).await;
    assert_eq!((job.state.as_str(), completed(&job)), ("complete", 1));
    assert_eq!(job.attempts.len(), 1, "{:#?}", job.attempts);
}

#[tokio::test]
async fn a_worker_that_is_asked_to_end_finishes_its_render_and_takes_no_other() {
    let stage = Stage::set().await;
    let first = stage.submit("slow", &stage.clip("first.mp4", 4).await).await.job;
    let mut worker = stage.worker("leaving");
    stage.event(&worker, "progress", &first).await;
    let second = stage.submit("slow", &stage.clip("second.mp4", 2).await).await.job;

    worker.terminate();
    assert!(worker.ended().await.expect("it ends").0.success());

    let first = stage.client().job(&first).await.expect("it is there");
    assert_eq!(first.state, "complete", "{first:#?}");
    let second = stage.client().job(&second).await.expect("it is there");
    assert_eq!((second.state.as_str(), second.attempts.len()), ("queued", 0));
}

#[tokio::test]
async fn a_worker_that_is_asked_twice_hands_its_render_back_at_once() {
    let stage = Stage::set().await;
    let job = stage.submit("slow", &stage.clip("long.mp4", 60).await).await.job;
    let mut worker = stage.worker("leaving");
    stage.event(&worker, "progress", &job).await;

    worker.terminate();
    let draining = |worker: &palisade_lab::drill::Process| {
        worker.lines().iter().any(|line| line.contains("\"draining\""))
    };
    palisade_lab::drill::wait_for("the worker to drain", common::LIMIT, async || {
        if draining(&worker) { Ok(()) } else { Err(worker.log()) }
    })
    .await
    .expect("it says so");
    worker.terminate();
    worker.ended().await.expect("it ends");

    let job = stage.client().job(&job).await.expect("it is there");
    assert_eq!(job.state, "queued", "{job:#?}");
    assert_eq!(job.attempts[0].outcome, "released");
    assert_eq!((job.losses, job.failures), (0, 0), "it counts for nothing");
    stage.assert_no_renderer("leaving").await;
    stage.assert_scratch_is_empty("leaving").await;
}
