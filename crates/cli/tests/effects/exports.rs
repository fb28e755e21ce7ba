//! Exports: the completion of a job.

use palisade_api::wire::CompleteRequest;
use palisade_core::manifest::Manifest;

use crate::{
    common::{Stage, completed},
    reader::{Reader, read},
    worker::{OUTPUT, SHORT_MS, Worker, of, two, wake},
};

async fn submit(stage: &Stage) -> String {
    let clip = stage.clip("clip.mp4", 1).await;
    stage.submit("slow", &clip).await.job
}

fn output(job: &str) -> String {
    format!("/v1/jobs/{job}/outputs/{OUTPUT}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_workers_export_is_refused_and_nobody_ever_saw_it() {
    let stage = Stage::set().await;
    let job = submit(&stage).await;
    let reader = Reader::start(&stage, &output(&job));
    let (alice, bob, second) = two(&stage).await;
    bob.let_go();
    bob.said("completed").await;
    let told = wake(&alice).await;
    assert_eq!((&told["status"], &told["code"]), (&412.into(), &"stale_token".into()), "{told}");
    assert_eq!(told["completed_by"], second, "B is named: {told}");
    assert!(told["fence"].as_u64().is_some_and(|fence| fence > second), "past B: {told}");
    let done = stage.over(&job).await;
    assert_eq!(completed(&done), 1);
    assert_eq!(done.completion.expect("it is complete").token, second);
    assert_eq!(reader.stop().await, [of("bob")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_all_the_same_when_the_new_worker_died_before_it_committed() {
    let stage = Stage::set().await;
    let job = submit(&stage).await;
    let reader = Reader::start(&stage, &output(&job));
    let (alice, bob, second) = two(&stage).await;
    bob.process.kill();
    let told = wake(&alice).await;
    assert_eq!((&told["code"], &told["fence"]), (&"stale_token".into(), &second.into()), "{told}");
    assert_eq!(stage.client().job(&job).await.expect("it is there").state, "running");
    assert_eq!(reader.stop().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_workers_number_commits_nothing() {
    let stage = Stage::set().await;
    let job = submit(&stage).await;
    let bob = Worker::start(&stage, "bob", SHORT_MS * 600);
    let token = bob.rendered().await;
    let stranger = CompleteRequest { token, lease: "0".repeat(32), manifest: Manifest::default() };
    let refused = stage.client().complete(&job, &stranger).await.expect_err("a stranger");
    assert_eq!(refused.code(), Some("unknown_token"), "{refused}");
    let url = format!("{}{}", stage.cluster.url(), output(&job));
    assert!(read(&url).await.is_err(), "there is nothing to read");
    bob.let_go();
    bob.said("completed").await;
    assert_eq!(read(&url).await, Ok(of("bob")));
}
