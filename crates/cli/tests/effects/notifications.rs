//! Notifications: what a receiver is told, and acts upon.

use palisade_api::wire::CompleteRequest;
use palisade_core::manifest::Manifest;
use serde_json::Value;

use crate::{
    common::{
        Stage,
        receiver::{Receiver, delivered, free_port, text, webhooks},
    },
    worker::{LONG_MS, Worker, two, wake},
};

/// A stage with the documents' receiver listening, and the webhook's id.
async fn set() -> (Stage, Receiver, String) {
    let stage = Stage::set_with(&["--allow-private-webhooks"]).await;
    let port = free_port();
    let added = webhooks(&stage, &["add", &format!("http://127.0.0.1:{port}/")]);
    let receiver = Receiver::start(stage.dir.path(), port, &text(&added["secret"])).await;
    (stage, receiver, text(&added["id"]))
}

async fn submit(stage: &Stage) -> String {
    let clip = stage.clip("clip.mp4", 1).await;
    stage.submit("slow", &clip).await.job
}

fn rows(stage: &Stage, hook: &str) -> Vec<Value> {
    let listed = webhooks(stage, &["deliveries", hook]);
    listed["deliveries"].as_array().expect("a list").clone()
}

/// Only this one was ever told, acted upon once, and dropped when it was sent again.
async fn one_was_told(stage: &Stage, receiver: &Receiver, hook: &str, token: u64) {
    let told = delivered(stage, hook, 1).await;
    assert_eq!((&told[0]["token"], rows(stage, hook).len()), (&token.into(), 1));
    let lines = receiver.until(1).await;
    assert_eq!((lines.len(), lines[0][0].as_str()), (1, "done"));
    webhooks(stage, &["redeliver", &text(&told[0]["id"])]);
    let lines = receiver.until(2).await;
    assert_eq!((lines[1][0].as_str(), &lines[1][1]), ("repeated", &lines[0][1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_workers_completion_is_told_to_nobody() {
    let (stage, receiver, hook) = set().await;
    submit(&stage).await;
    let (alice, bob, second) = two(&stage).await;
    bob.let_go();
    bob.said("completed").await;
    delivered(&stage, &hook, 1).await;
    let told = wake(&alice).await;
    assert_eq!((&told["code"], &told["completed_by"]), (&"stale_token".into(), &second.into()));
    one_was_told(&stage, &receiver, &hook, second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_the_new_worker_died_before_anything_was_to_be_told() {
    let (stage, receiver, hook) = set().await;
    let job = submit(&stage).await;
    let alice = Worker::start(&stage, "alice", crate::worker::SHORT_MS);
    alice.rendered().await;
    alice.process.stop();
    let bob = Worker::start(&stage, "bob", crate::worker::SHORT_MS);
    let second = bob.rendered().await;
    bob.process.kill();
    let told = wake(&alice).await;
    assert_eq!((&told["code"], &told["fence"]), (&"stale_token".into(), &second.into()), "{told}");
    assert!(rows(&stage, &hook).is_empty(), "nothing has happened that could be told");

    let carol = Worker::start(&stage, "carol", LONG_MS);
    let third = carol.rendered().await;
    carol.let_go();
    carol.said("completed").await;
    assert_eq!(stage.over(&job).await.completion.expect("it is complete").token, third);
    one_was_told(&stage, &receiver, &hook, third).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_workers_number_has_nothing_told() {
    let (stage, receiver, hook) = set().await;
    let job = submit(&stage).await;
    let bob = Worker::start(&stage, "bob", LONG_MS);
    let token = bob.rendered().await;
    let stranger = CompleteRequest { token, lease: "0".repeat(32), manifest: Manifest::default() };
    stage.client().complete(&job, &stranger).await.expect_err("a stranger");
    assert!(rows(&stage, &hook).is_empty());
    bob.let_go();
    bob.said("completed").await;
    one_was_told(&stage, &receiver, &hook, token).await;
}
