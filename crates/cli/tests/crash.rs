//! Processes that end without a word: a worker, a server, all of them.

mod common;

use common::{Stage, completed, renderers};
use palisade_lab::drill::{WorkerOptions, wait_for};

/// A ttl so long that only the session's end can explain a takeover.
const LONG_TTL_MS: u64 = 600_000;

fn long() -> WorkerOptions {
    WorkerOptions { ttl_ms: LONG_TTL_MS, ..WorkerOptions::default() }
}

#[tokio::test]
async fn a_killed_workers_job_is_granted_again_in_seconds_and_its_renderer_dies_with_it() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 6).await;
    let job = stage.submit("slow", &clip).await.job;
    let mut first = stage.worker_with("first", long());
    stage.event(&first, "progress", &job).await;
    assert!(!renderers(&stage.cluster.worker_dir("first")).is_empty(), "it renders");

    first.kill();
    first.ended().await.expect("it ends");
    stage.assert_no_renderer("first").await;
    let _second = stage.worker_with("second", long());

    let job = stage.over(&job).await;
    assert_eq!((job.state.as_str(), completed(&job)), ("complete", 1), "{job:#?}");
    let outcomes: Vec<_> = job.attempts.iter().map(|a| (&*a.worker, &*a.outcome)).collect();
    assert_eq!(outcomes, [("first", "superseded"), ("second", "completed")]);
    assert_eq!((job.losses, job.failures), (1, 0), "a loss is no failure");
    stage.assert_scratch_is_empty("second").await;
}

#[tokio::test]
async fn a_worker_that_restarts_under_its_name_inherits_nothing_and_cleans_up() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 4).await;
    let job = stage.submit("slow", &clip).await.job;
    let mut first = stage.worker_with("same", long());
    stage.event(&first, "progress", &job).await;
    first.kill();
    first.ended().await.expect("it ends");

    let second = stage.worker_with("same", long());
    stage.event(&second, "claimed", &job).await;
    let job = stage.over(&job).await;
    assert_eq!((job.state.as_str(), completed(&job)), ("complete", 1));
    let sessions: std::collections::BTreeSet<_> = job.attempts.iter().map(|a| &a.session).collect();
    assert_eq!(sessions.len(), 2, "a session of its own each");
    stage.assert_scratch_is_empty("same").await;
}

#[tokio::test]
async fn grandchildren_in_sessions_of_their_own_die_with_the_worker_too() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 1).await;
    let job = stage.submit("family", &clip).await.job;
    let mut worker = stage.worker_with("parent", long());
    stage.event(&worker, "started", &job).await;
    let folder = stage.cluster.worker_dir("parent");
    wait_for("the grandchild", common::LIMIT, async || {
        let seen = renderers(&folder);
        if seen.iter().any(|(_, _, words)| words.contains("setsid") || words.contains("while")) {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        }
    })
    .await
    .expect("it is there");
    worker.kill();
    worker.ended().await.expect("it ends");
    stage.assert_no_renderer("parent").await;
}

#[tokio::test]
async fn a_render_goes_on_while_the_server_is_killed_and_started_again() {
    let mut stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 8).await;
    let slow = stage.submit("slow", &clip).await.job;
    let worker = stage.worker("worker");
    stage.event(&worker, "progress", &slow).await;
    let waiting = stage.submit("slow", &stage.clip("other.mp4", 2).await).await.job;

    stage.cluster.kill_server().await.expect("it ends");
    stage.cluster.start_server().await.expect("it starts again");

    let slow = stage.over(&slow).await;
    assert_eq!(slow.state, "complete", "{slow:#?}");
    assert_eq!(slow.attempts.len(), 1, "the same attempt completed: {:#?}", slow.attempts);
    let waiting = stage.over(&waiting).await;
    assert_eq!(waiting.state, "complete", "what was acknowledged is done: {waiting:#?}");
}

#[tokio::test]
async fn with_every_worker_and_the_server_gone_jobs_are_claimable_within_a_ttl_of_the_start() {
    let mut stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 30).await;
    let job = stage.submit("slow", &clip).await.job;
    let mut worker = stage.worker("worker");
    stage.event(&worker, "progress", &job).await;
    worker.kill();
    stage.cluster.kill_server().await.expect("it ends");
    worker.ended().await.expect("it ends");

    stage.cluster.start_server().await.expect("it starts again, alone");

    let seen = stage.cluster.job_when(&job, "claimable", |job| job.claimable).await;
    assert_eq!(seen.expect("it is shown so").state, "running");
}
