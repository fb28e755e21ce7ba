//! The same wish, many times; bad inputs; renders that lie.

mod common;

use std::collections::BTreeSet;

use common::{Stage, completed};

#[tokio::test]
async fn ten_clients_that_submit_the_same_export_at_once_get_one_render_and_ten_answers() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 2).await;
    let wish = stage.wish("h264-720p", &clip).await;
    let submits = (0..10).map(|_| {
        let (client, wish) = (stage.client().clone(), wish.clone());
        tokio::spawn(async move { client.submit(&wish).await.expect("it is recorded") })
    });
    let mut jobs = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for submit in submits.collect::<Vec<_>>() {
        let answer = submit.await.expect("no panic");
        jobs.insert(answer.job);
        numbers.insert(answer.submission);
    }
    assert_eq!((jobs.len(), numbers.len()), (1, 10), "one job, ten submissions");

    let _worker = stage.worker("worker");
    let job = stage.over(jobs.first().expect("one")).await;
    assert_eq!((job.state.as_str(), job.attempts.len()), ("complete", 1), "{job:#?}");
    assert_eq!(job.submissions.len(), 10);

    let again = stage.client().submit(&wish).await.expect("it is recorded");
    assert!(again.cached && again.job == job.id, "answered from what was rendered: {again:?}");
}

#[tokio::test]
async fn a_corrupt_input_fails_in_a_persons_words_and_burns_no_retries() {
    let stage = Stage::set().await;
    let whole = stage.clip("whole.mp4", 4).await;
    let bytes = std::fs::read(&whole).expect("the clip");
    let cut = stage.dir.path().join("cut.mp4");
    std::fs::write(&cut, &bytes[..bytes.len() * 6 / 10]).expect("a cut file");
    let job = stage.submit("h264-720p", &cut).await.job;
    let worker = stage.worker("worker");

    let job = stage.over(&job).await;

    assert_eq!((job.state.as_str(), job.attempts.len()), ("failed", 1), "{job:#?}");
    let letter = job.dead_letter.expect("it says why");
    assert!(letter.message.contains("moov"), "ffmpeg's own words are in it: {}", letter.message);
    stage.assert_scratch_is_empty("worker").await;
    drop(worker);
}

#[tokio::test]
async fn an_output_that_is_no_film_is_not_committed_though_its_tool_ended_well() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 2).await;
    let job = stage.submit("liar", &clip).await.job;
    let worker = stage.worker("worker");
    let job = stage.over(&job).await;
    assert_eq!(job.state, "failed", "{job:#?}");
    assert_eq!((completed(&job), job.completion.is_none()), (0, true));
    stage.assert_scratch_is_empty("worker").await;
    drop(worker);
}

#[tokio::test]
async fn a_failure_that_another_try_may_mend_is_tried_again_up_to_its_budget() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 1).await;
    let job = stage.submit("shy", &clip).await.job;
    let worker = stage.worker("worker");
    let job = stage.over(&job).await;
    assert_eq!((job.state.as_str(), job.failures, job.losses), ("failed", 2, 0), "{job:#?}");
    stage.assert_scratch_is_empty("worker").await;
    drop(worker);
}

#[tokio::test]
async fn how_far_a_render_is_stands_beside_its_attempt_and_only_rises() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 6).await;
    let job = stage.submit("slow", &clip).await.job;
    let _worker = stage.worker("worker");
    let mut shares = Vec::new();
    let told = |job: &palisade_api::wire::JobView| {
        job.attempts.last().and_then(|attempt| attempt.progress).and_then(|seen| seen.share)
    };
    for _ in 0..3 {
        let before = shares.last().copied().unwrap_or(0.0);
        let further = |job: &_| told(job).is_some_and(|share| share > before);
        let seen = stage.cluster.job_when(&job, "further on", further).await;
        shares.push(told(&seen.expect("it is told")).expect("looked for"));
    }
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    let done = stage.over(&job).await;
    assert_eq!(done.state, "complete");
    assert!(told(&done).is_none(), "nothing is told of what is over");
}

#[tokio::test]
async fn a_cancelled_render_is_ended_at_once_and_leaves_nothing() {
    let stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 60).await;
    let submitted = stage.submit("slow", &clip).await;
    let joined = stage.submit("slow", &clip).await;
    assert_eq!(submitted.job, joined.job);
    let worker = stage.worker("worker");
    stage.event(&worker, "progress", &submitted.job).await;
    let cancel = |submission| palisade_api::wire::CancelRequest {
        submission: Some(submission),
        ..palisade_api::wire::CancelRequest::default()
    };

    let first = stage.client().cancel(&submitted.job, &cancel(submitted.submission)).await;
    assert_eq!(first.expect("it is done").state, "running", "somebody else still wants it");
    let last = stage.client().cancel(&submitted.job, &cancel(joined.submission)).await;
    assert_eq!(last.expect("it is done").state, "cancelled");

    let aborted = stage.event(&worker, "aborted", &submitted.job).await;
    assert_eq!(aborted["reason"], "cancelled");
    stage.assert_no_renderer("worker").await;
    stage.assert_scratch_is_empty("worker").await;
}
