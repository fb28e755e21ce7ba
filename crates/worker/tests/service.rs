//! A worker before a real server: over HTTP, with children and the system's clock.

mod support;

use palisade_api::wire::CancelRequest;
use support::{
    clips::clip,
    road::{Forwarder, Road},
    service::{Service, Watched, left},
};

const TTL_MS: u64 = 2_000;
/// So long that no heartbeat comes in a test's time.
const LONG_TTL_MS: u64 = 3_600_000;

#[tokio::test]
async fn a_real_export_is_rendered_committed_and_leaves_no_scratch() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let source = clip(folder.path(), "ordinary.mp4");
    let mut worker = Watched::start(&service.server.url(), folder.path(), "alice", TTL_MS).await;
    let job = service.submit(&source, "h264-720p", &[("preset", "ultrafast")]).await;
    let completed = worker.event("completed").await;
    let view = service.over(&job).await;
    assert_eq!(view.state, "complete");
    let completion = view.completion.expect("complete");
    assert_eq!(completed["token"], completion.token);
    assert!(completion.manifest.provenance.toolchain.starts_with("ffmpeg version "));
    assert!(!completion.manifest.checks.is_empty());
    let [output] = &completion.manifest.outputs[..] else { panic!("{completion:?}") };
    let bytes = service.output(&job, output.name.as_str()).await;
    assert_eq!(palisade_core::Digest::of(&bytes), output.digest);
    assert_eq!(left(folder.path(), "alice"), 0);
    worker.end().await;
}

#[tokio::test]
async fn a_broken_upload_fails_for_good_with_the_tools_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let source = folder.path().join("noise.mp4");
    std::fs::write(&source, vec![42; 10_000]).expect("written");
    let worker = Watched::start(&service.server.url(), folder.path(), "alice", TTL_MS).await;
    let job = service.submit(&source, "h264-720p", &[]).await;
    let view = service.over(&job).await;
    assert_eq!((view.state.as_str(), view.attempts.len()), ("failed", 1));
    assert_eq!(left(folder.path(), "alice"), 0);
    worker.end().await;
}

#[tokio::test]
async fn a_road_that_is_cut_for_a_while_freezes_and_thaws_and_the_same_token_completes() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let road = Forwarder::to(service.server.address()).await;
    let source = clip(folder.path(), "ordinary.mp4");
    let mut worker = Watched::start(&road.url(), folder.path(), "alice", TTL_MS).await;
    let job = service.submit(&source, "slow-copy", &[("seconds", "5")]).await;
    let token = worker.event("started").await["token"].clone();
    road.set(Road::Cut);
    worker.event("frozen").await;
    road.set(Road::Open);
    worker.event("thawed").await;
    assert_eq!(worker.event("completed").await["token"], token);
    let view = service.over(&job).await;
    assert_eq!((view.state.as_str(), view.attempts.len()), ("complete", 1));
    worker.end().await;
}

#[tokio::test]
async fn a_completion_held_up_until_another_has_finished_is_refused_and_leaves_no_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let road = Forwarder::to(service.server.address()).await;
    let source = clip(folder.path(), "ordinary.mp4");
    let mut late = Watched::start(&road.url(), folder.path(), "late", TTL_MS).await;
    road.set(Road::HoldCompletion);
    let job = service.submit(&source, "slow-copy", &[("seconds", "0")]).await;
    // The keeper has been asked for the last time; the completion is on the road, and stays there.
    late.event("completing").await;
    road.until(Road::Held).await;
    let mut other = Watched::start(&service.server.url(), folder.path(), "other", TTL_MS).await;
    let winner = other.event("completed").await["token"].clone();
    road.set(Road::Open);
    let refused = late.event("refused").await;
    assert_eq!((&refused["verb"], &refused["code"]), (&"complete".into(), &"stale_token".into()));
    let view = service.over(&job).await;
    assert_eq!(view.state, "complete");
    assert_eq!(winner, view.completion.expect("complete").token);
    let outcomes: Vec<_> = view.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    assert_eq!(outcomes, ["superseded", "completed"]);
    assert_eq!((left(folder.path(), "late"), left(folder.path(), "other")), (0, 0));
    late.end().await;
    other.end().await;
}

#[tokio::test]
async fn a_cancel_reaches_the_render_through_the_session_long_before_any_heartbeat() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let source = clip(folder.path(), "ordinary.mp4");
    let url = service.server.url();
    let mut worker = Watched::start(&url, folder.path(), "alice", LONG_TTL_MS).await;
    let job = service.submit(&source, "slow-copy", &[("seconds", "900")]).await;
    worker.event("started").await;
    service.client.cancel(&job, &CancelRequest::default()).await.expect("cancelled");
    assert_eq!(worker.event("aborted").await["reason"], "cancelled");
    assert_eq!(left(folder.path(), "alice"), 0);
    worker.end().await;
}

#[tokio::test]
async fn what_is_handed_back_is_another_workers_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start().await;
    let source = clip(folder.path(), "ordinary.mp4");
    let url = service.server.url();
    let mut first = Watched::start(&url, folder.path(), "first", LONG_TTL_MS).await;
    let job = service.submit(&source, "slow-copy", &[("seconds", "900")]).await;
    first.event("started").await;
    first.end().await;
    assert_eq!(left(folder.path(), "first"), 0);
    let mut second = Watched::start(&url, folder.path(), "second", LONG_TTL_MS).await;
    assert_eq!(second.event("started").await["job"], job);
    let view = service.client.job(&job).await.expect("there");
    assert_eq!((view.attempts[0].outcome.as_str(), view.losses), ("released", 0));
    second.end().await;
}
