//! Processes that are stopped and wake: no lock reaches into them, the fence does.

mod common;

use common::{Stage, completed};
use palisade_lab::drill::{Proxy, WorkerOptions};

#[tokio::test]
async fn a_worker_stopped_past_its_lease_stops_by_itself_when_it_wakes() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 8).await;
    let job = stage.submit("slow", &clip).await.job;
    let paused = stage.worker("paused");
    stage.event(&paused, "progress", &job).await;

    paused.stop();
    let other = stage.worker("other");
    let done = stage.over(&job).await;
    assert_eq!(done.state, "complete");
    paused.wake();

    let aborted = stage.event(&paused, "aborted", &job).await;
    assert_eq!(aborted["reason"], "lost", "{aborted}");
    let after = stage.client().job(&job).await.expect("the job is there");
    assert_eq!(after.completion, done.completion, "the other's result stands");
    assert_eq!(completed(&after), 1);
    stage.assert_no_renderer("paused").await;
    stage.assert_scratch_is_empty("paused").await;
    drop(other);
}

#[tokio::test]
async fn a_completion_that_was_on_its_way_when_the_lease_went_is_refused_by_the_fence_alone() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 3).await;
    let job = stage.submit("slow", &clip).await.job;
    let hold = Some("/complete HTTP/1.1");
    let proxy = Proxy::start(stage.cluster.address(), hold).await.expect("a proxy");
    let how = WorkerOptions { url: Some(proxy.url()), ..WorkerOptions::default() };
    let zombie = stage.worker_with("zombie", how);
    let held = proxy.held().await;
    zombie.stop();

    let _other = stage.worker("other");
    let done = stage.over(&job).await;
    assert_eq!(done.state, "complete");
    assert_eq!(done.completion.as_ref().expect("it is complete").worker, "other");
    zombie.wake();
    held.let_go();

    let refused = stage.event(&zombie, "refused", &job).await;
    assert_eq!(refused["code"], "stale_token", "{refused}");
    let after = stage.client().job(&job).await.expect("the job is there");
    assert_eq!(after.completion, done.completion, "it left no trace");
    let history = stage.client().history(&job).await.expect("its history");
    let told = serde_json::to_value(&history).expect("JSON");
    let refusals = told["events"].as_array().expect("a list").iter();
    let refusals: Vec<_> = refusals.filter(|event| event["event"] == "refused").collect();
    assert_eq!(refusals.len(), 1, "the journal has the refusal: {told:#}");
    assert_eq!(refusals[0]["verb"], "complete");
    stage.assert_scratch_is_empty("zombie").await;
}

#[tokio::test]
async fn a_live_worker_keeps_a_job_that_takes_many_times_its_ttl() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 8).await;
    let job = stage.submit("slow", &clip).await.job;
    let how = WorkerOptions { ttl_ms: 1_000, ..WorkerOptions::default() };
    let worker = stage.worker_with("steady", how);
    stage.event(&worker, "progress", &job).await;
    let _idle = stage.worker("idle");
    let job = stage.over(&job).await;
    assert_eq!(job.state, "complete");
    assert_eq!(job.attempts.len(), 1, "age has no say: {:#?}", job.attempts);
}

#[tokio::test]
async fn a_server_that_was_stopped_for_three_ttls_takes_no_job_from_a_living_worker() {
    let mut stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 14).await;
    let job = stage.submit("slow", &clip).await.job;
    let how = WorkerOptions { ttl_ms: 2_000, ..WorkerOptions::default() };
    let worker = stage.worker_with("steady", how);
    stage.event(&worker, "progress", &job).await;
    let _idle = stage.worker("idle");

    stage.cluster.server().stop();
    // The worker says itself when it is in doubt: its ttl has passed unconfirmed.
    stage.event(&worker, "frozen", &job).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    stage.cluster.server().wake();

    stage.event(&worker, "thawed", &job).await;
    let job = stage.over(&job).await;
    assert_eq!(job.state, "complete");
    assert_eq!(job.attempts.len(), 1, "{:#?}", job.attempts);
}
