//! Publications: what a name shows.

use palisade_api::wire::{CompleteRequest, SubmissionView, SubmitRequest, SubmitResponse};
use palisade_core::manifest::Manifest;
use palisade_lab::drill::wait_for;

use crate::{
    common::{LIMIT, Stage},
    reader::{Reader, read},
    worker::{LONG_MS, OUTPUT, SHORT_MS, Worker, of, two, wake},
};

const NAME: &str = "exports/holiday";

fn shown() -> String {
    format!("/v1/objects/{NAME}/{OUTPUT}")
}

/// A wish to have a clip of so many seconds under the name.
async fn submit(stage: &Stage, seconds: u32) -> SubmitResponse {
    let clip = stage.clip(&format!("clip-{seconds}.mp4"), seconds).await;
    let wish = SubmitRequest { publish: Some(NAME.to_owned()), ..stage.wish("slow", &clip).await };
    stage.client().submit(&wish).await.expect("it is recorded")
}

/// The submission, once its publication is in this state.
async fn until(stage: &Stage, of: &SubmitResponse, state: &str) -> SubmissionView {
    wait_for(&format!("the publication to be {state}"), LIMIT, async || {
        let job = stage.client().job(&of.job).await.map_err(|error| error.to_string())?;
        let own = job.submissions.into_iter().find(|one| one.number == of.submission);
        let own = own.expect("it is there");
        let now = own.publication.as_ref().map(|publication| publication.state.clone());
        if now.as_deref() == Some(state) { Ok(own) } else { Err(format!("{own:?}")) }
    })
    .await
    .expect("it comes to that")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_workers_outputs_never_come_under_the_name() {
    let stage = Stage::set().await;
    let wish = submit(&stage, 1).await;
    let reader = Reader::start(&stage, &shown());
    let (alice, bob, second) = two(&stage).await;
    bob.let_go();
    bob.said("completed").await;
    until(&stage, &wish, "published").await;
    let told = wake(&alice).await;
    assert_eq!((&told["code"], &told["completed_by"]), (&"stale_token".into(), &second.into()));
    assert_eq!(reader.stop().await, [of("bob")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_when_the_new_worker_died_before_it_committed() {
    let stage = Stage::set().await;
    let wish = submit(&stage, 1).await;
    let reader = Reader::start(&stage, &shown());
    let (alice, bob, second) = two(&stage).await;
    bob.process.kill();
    let told = wake(&alice).await;
    assert_eq!((&told["code"], &told["fence"]), (&"stale_token".into(), &second.into()), "{told}");
    until(&stage, &wish, "pending").await;
    assert_eq!(reader.stop().await, Vec::<String>::new());
}

/// Here the late one is refused nothing at its commit, for its job is its own: the name refuses it.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_export_that_is_committed_late_does_not_replace_a_newer_one() {
    let stage = Stage::set().await;
    let older = submit(&stage, 1).await;
    let alice = Worker::start(&stage, "alice", LONG_MS);
    alice.rendered().await;
    alice.process.stop();
    let newer = submit(&stage, 2).await;
    assert!(newer.submission > older.submission && newer.job != older.job);
    let reader = Reader::start(&stage, &shown());
    let bob = Worker::start(&stage, "bob", LONG_MS);
    bob.rendered().await;
    bob.let_go();
    bob.said("completed").await;
    until(&stage, &newer, "published").await;

    alice.let_go();
    alice.process.wake();
    alice.said("completed").await;
    let late = until(&stage, &older, "superseded").await;
    let fence = late.publication.expect("it asked for one").fence;
    assert_eq!(fence, Some(newer.submission), "the newer one is named");
    assert_eq!(reader.stop().await, [of("bob")]);
    // It is not lost: the job has it under its own address.
    let own = format!("{}/v1/jobs/{}/outputs/{OUTPUT}", stage.cluster.url(), older.job);
    assert_eq!(read(&own).await, Ok(of("alice")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_submissions_number_moves_no_name() {
    let stage = Stage::set().await;
    let wish = submit(&stage, 1).await;
    let bob = Worker::start(&stage, "bob", SHORT_MS * 600);
    let token = bob.rendered().await;
    bob.let_go();
    bob.said("completed").await;
    until(&stage, &wish, "published").await;
    let http = reqwest::Client::new();
    for number in [wish.submission, token, wish.submission + 1_000] {
        let put = http
            .put(format!("{}/v1/objects/{NAME}", stage.cluster.url()))
            .header("fencing-token", number)
            .header("fencing-lease", "0".repeat(32))
            .body("a stranger's");
        let answer = put.send().await.expect("it is answered");
        assert_eq!(answer.status().as_u16(), 422, "{number}: {}", answer.text().await.unwrap());
    }
    let stranger = CompleteRequest { token, lease: "0".repeat(32), manifest: Manifest::default() };
    stage.client().complete(&wish.job, &stranger).await.expect_err("a stranger");
    assert_eq!(read(&format!("{}{}", stage.cluster.url(), shown())).await, Ok(of("bob")));
}
