//! Slots, room, start, drain, end.

use std::sync::atomic::Ordering;

use crate::{
    DataDirError, StartError, Worker,
    testing::{Bench, Fault, TTL_MS, Verb, recipe},
};

#[tokio::test]
async fn no_more_is_claimed_than_there_are_slots() {
    let mut bench = Bench::new();
    bench.config.slots = 2;
    for input in 0..5 {
        bench.server.submit(&bench.recipe(), &[input]);
    }
    let worker = bench.start().await;
    let (first, _second) = (bench.run(0).await, bench.run(1).await);
    bench.pass(2 * TTL_MS).await;
    assert_eq!(bench.server.state().attempts.len(), 2);
    assert_eq!(bench.server.state().claims.len(), 1, "a full worker does not ask");
    first.finish(b"output");
    bench.run(2).await;
    bench.pass(TTL_MS).await;
    assert_eq!(bench.server.state().attempts.len(), 3);
    assert_eq!(bench.server.state().claims[1].max_jobs, Some(1));
    bench.end(worker).await;
}

#[tokio::test]
async fn a_full_disk_claims_nothing_and_says_so_once_with_numbers() {
    let bench = Bench::new();
    bench.disk.0.store(1_500, Ordering::Relaxed);
    bench.server.submit(&bench.recipe(), b"input");
    let worker = bench.start().await;
    let no_room = bench.event("no_room").await;
    assert_eq!((&no_room["needed_bytes"], &no_room["free_bytes"]), (&2_000.into(), &1_500.into()));
    bench.pass(5 * TTL_MS).await;
    assert_eq!(bench.server.state().claims.len(), 0);
    assert_eq!(bench.count("no_room"), 1);
    bench.disk.0.store(1_000_000, Ordering::Relaxed);
    bench.event("room_again").await;
    bench.run(0).await;
    bench.end(worker).await;
}

#[tokio::test]
async fn a_job_that_does_not_fit_is_released_and_not_claimed_again_at_once() {
    let bench = Bench::new();
    bench.disk.0.store(4_000, Ordering::Relaxed);
    let worker = bench.start().await;
    bench.server.submit(&bench.recipe(), &[7; 5_000]);
    let released = bench.event("released").await;
    assert!(released["why"].as_str().unwrap().contains("6000 bytes"), "{released}");
    assert_eq!(bench.left().len(), 0);
    assert_eq!(bench.server.reported(), (0, 0, 1));
    bench.event("no_room").await;
    assert_eq!(bench.server.state().claims.len(), 1);
    bench.end(worker).await;
}

#[tokio::test]
async fn only_recipes_whose_tool_is_here_in_the_pinned_version_are_offered() {
    let mut bench = Bench::new();
    bench.recipes.add(recipe("fits", "9")).unwrap();
    bench.recipes.add(recipe("other", "8")).unwrap();
    let worker = bench.start().await;
    bench.until("a claim", || !bench.server.state().claims.is_empty()).await;
    let offered = bench.server.state().claims[0].recipes.clone();
    let names: Vec<_> = offered.iter().map(|can| can.recipe.as_str()).collect();
    assert_eq!(names, ["copy", "fits"]);
    assert_eq!(offered[0].definition, bench.recipe().definition().to_string());
    bench.end(worker).await;
}

#[tokio::test]
async fn a_grant_that_was_never_offered_is_handed_back() {
    let bench = Bench::new();
    let mut stranger = bench.recipe();
    stranger.steps.push(stranger.steps[0].clone());
    let worker = bench.start().await;
    bench.server.submit(&stranger, b"input");
    let released = bench.event("released").await;
    assert!(released["why"].as_str().unwrap().contains("recipe"), "{released}");
    assert_eq!(bench.server.state().releases.len(), 1);
    bench.end(worker).await;
}

#[tokio::test]
async fn leftovers_are_ended_and_removed_before_anything_is_claimed() {
    let bench = Bench::new();
    for folder in ["scratch/j1-2/out", "inputs/j1-2"] {
        let folder = bench.config.data_dir.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), "left").unwrap();
    }
    bench.runner.leftovers.lock().unwrap().push(4711);
    let worker = bench.start().await;
    let cleaned = bench.event("cleaned").await;
    assert_eq!((&cleaned["processes"], &cleaned["folders"]), (&1.into(), &2.into()));
    assert_eq!(bench.left().len(), 0);
    let looked_in = bench.runner.looked_in.lock().unwrap().clone();
    assert_eq!(looked_in, [(bench.config.data_dir.join("scratch"), 1)], "ended, then removed");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_data_folder_belongs_to_one_worker_at_a_time() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let second = Worker::start(bench.config.clone(), bench.components()).await;
    let Err(StartError::DataDir(DataDirError::InUse { .. })) = second else { panic!("{second:?}") };
    bench.end(worker).await;
    bench.end(bench.start().await).await;
}

#[tokio::test]
async fn settings_out_of_range_are_refused_by_name() {
    let mut bench = Bench::new();
    bench.config.ttl_ms = 10;
    let refused = Worker::start(bench.config.clone(), bench.components()).await;
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("ttl_ms") && message.contains("500"), "{message}");
}

#[tokio::test]
async fn each_start_has_another_session() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let first = worker.session();
    bench.end(worker).await;
    bench.until("time passes", || true).await;
    let (_config, parts) = (bench.config.clone(), bench.components());
    parts.entropy.next_u128();
    let worker = Worker::start(bench.config.clone(), parts).await.unwrap();
    assert_ne!(worker.session(), first);
    bench.end(worker).await;
}

#[tokio::test]
async fn draining_claims_nothing_more_and_lets_renders_finish() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    worker.drain();
    bench.event("draining").await;
    bench.server.submit(&bench.recipe(), b"for others");
    bench.pass(3 * TTL_MS).await;
    assert_eq!(bench.server.state().attempts.len(), 1);
    assert_eq!(run.told(), [] as [&str; 0], "and it is still renewed");
    run.finish(b"output");
    bench.event("drained").await;
    assert_eq!(bench.count("completed"), 1);
    bench.end(worker).await;
}

#[tokio::test]
async fn a_claim_that_was_granted_while_draining_began_is_handed_back_by_a_last_heartbeat() {
    let bench = Bench::new();
    bench.server.script(Verb::Claim, |_| Some(Fault::Hang));
    bench.server.submit(&bench.recipe(), b"input");
    let worker = bench.start().await;
    bench.until("it is granted", || bench.server.state().attempts.len() == 1).await;
    let token = *bench.server.state().attempts.keys().next().unwrap();
    worker.drain();
    bench.event("drained").await;
    assert_eq!(bench.server.standing(token), "released");
    bench.end(worker).await;
}

#[tokio::test]
async fn handing_back_ends_the_renders_and_releases_them() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    worker.drain();
    bench.event("draining").await;
    worker.hand_back();
    bench.event("drained").await;
    assert_eq!(run.told(), ["kill"]);
    assert_eq!(bench.server.standing(token), "released");
    assert_eq!(bench.server.state().fails.len(), 0);
    assert_eq!(bench.left().len(), 0);
    bench.end(worker).await;
}

#[tokio::test]
async fn when_the_time_for_draining_is_over_the_rest_is_handed_back() {
    let mut bench = Bench::new();
    bench.config.drain_for_ms = Some(3 * TTL_MS);
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    worker.drain();
    bench.event("draining").await;
    bench.pass(2 * TTL_MS).await;
    assert_eq!(run.told(), [] as [&str; 0]);
    bench.event("drained").await;
    assert_eq!(bench.server.standing(token), "released");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_worker_that_hands_back_while_a_completion_is_unanswered_releases_nothing() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    bench.server.all(&[Verb::Complete], Fault::Away);
    run.finish(b"output");
    bench.event("completing").await;
    bench.end(worker).await;
    assert_eq!(bench.server.standing(token), "open", "it lapses by itself");
    assert_eq!(bench.server.state().releases.len(), 0);
    assert_eq!(bench.left().len(), 0);
}
