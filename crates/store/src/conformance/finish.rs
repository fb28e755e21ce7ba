//! How an attempt ends, and that its author gets the same answer again.

use palisade_core::{
    Refusal,
    job::{CloseReason, JobState},
    manifest::Manifest,
};

use crate::{
    Store, StoreExt,
    command::{BeginBlob, Complete, Pin},
};

use super::bench::{BEGINNING, Bench, PAST_TTL_MS, manifest};

/// A completion is recorded with its token, worker and outputs, and ends the job.
pub async fn a_completion_is_recorded<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.pass_ms(5_000).await;
    let complete = bench.complete_of(&grant).await;
    let completed = bench.store.run(complete.clone()).await.expect("it completes");
    assert!(!completed.manifest_differs);
    assert_eq!(completed.completion.token, grant.pair.token);
    assert_eq!(completed.completion.worker.as_str(), "alice");
    assert_eq!(completed.completion.at, BEGINNING.plus_ms(5_000));
    assert_eq!(completed.completion.manifest, complete.manifest);
    let job = bench.job(id).await;
    assert_eq!(job.state, JobState::Complete);
    assert_eq!(job.completion, Some(completed.completion));
    assert!(job.fence > grant.pair.token);
}

/// A complete whose reply was lost, asked again, gets the recorded answer; with other outputs it
/// gets the same, flagged.
pub async fn a_complete_asked_again_gets_the_recorded_answer<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let complete = bench.complete_of(&grant).await;
    let first = bench.store.run(complete.clone()).await.expect("it completes");
    bench.pass_ms(PAST_TTL_MS).await;
    assert_eq!(bench.store.run(complete).await, Ok(first.clone()));
    let job = bench.job(grant.job.id).await;
    let other = bench.complete_with(&grant, "another output").await;
    let second = bench.store.run(other).await.expect("its author gets the recorded one");
    assert!(second.manifest_differs);
    assert_eq!(second.completion, first.completion);
    // Also when nobody brought what it names: the answer does not depend on that.
    let missing =
        Complete { manifest: manifest("never brought"), ..bench.complete_of(&grant).await };
    assert!(bench.store.run(missing).await.expect("likewise").manifest_differs);
    assert_eq!(bench.job(grant.job.id).await, job);
}

/// A complete that names a blob which is not there is refused, and the attempt stays open.
pub async fn a_missing_blob_leaves_the_attempt_open<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let complete =
        Complete { job: grant.job.id, pair: grant.pair, manifest: manifest("not yet brought") };
    let before = bench.job(grant.job.id).await;
    let refusal = bench.refused(complete.clone()).await;
    let digest = complete.manifest.outputs[0].digest;
    let field = "manifest.outputs[0].digest".to_owned();
    assert_eq!(refusal, Refusal::MissingBlob { field, digests: vec![digest] });
    assert_eq!(bench.job(grant.job.id).await, before);
    // An upload that has only begun is not enough either.
    let pin = Pin::Attempt(grant.job.id, grant.pair);
    bench.store.run(BeginBlob { digest, pin }).await.expect("a blob may be brought");
    assert_eq!(bench.refused(complete.clone()).await.code(), "missing_blob");
    bench.bring("not yet brought").await;
    bench.store.run(complete).await.expect("it completes");
}

/// A manifest must name something.
pub async fn an_empty_manifest_is_refused<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let empty = Complete { job: grant.job.id, pair: grant.pair, manifest: Manifest::default() };
    assert_eq!(bench.refused(empty).await.code(), "invalid");
    assert!(bench.job(grant.job.id).await.has_open_attempt());
}

/// A fail whose reply was lost, asked again, gets the same answer and counts once.
pub async fn a_fail_asked_again_gets_the_same_answer<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let fail = Bench::<S>::fail_of(&grant);
    let first = bench.store.run(fail.clone()).await.expect("a failure is taken");
    assert_eq!(first.state, JobState::Queued);
    let job = bench.job(grant.job.id).await;
    assert_eq!(bench.store.run(fail.clone()).await, Ok(first));
    assert_eq!(bench.job(grant.job.id).await, job);
    assert_eq!(job.failures, 1);
    // Also after somebody else was granted.
    bench.pass_ms(10_000).await;
    bench.grant("bob").await;
    assert_eq!(bench.store.run(fail).await, Ok(first));
    // Another verb of the closed attempt is refused.
    let reason = CloseReason::Failed;
    let refusal = bench.refused(Bench::<S>::release_of(&grant)).await;
    let fence = bench.job(grant.job.id).await.fence;
    assert_eq!(refusal, Refusal::StaleToken { fence, reason, completed_by: None });
}

/// A release counts for nothing, and asked again it gets the same answer.
pub async fn a_release_asked_again_gets_the_same_answer<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let release = Bench::<S>::release_of(&grant);
    let first = bench.store.run(release.clone()).await.expect("a release is taken");
    assert_eq!((first.state, first.run_at), (JobState::Queued, Some(BEGINNING)));
    let job = bench.job(grant.job.id).await;
    assert_eq!((job.failures, job.losses), (0, 0));
    assert!(job.fence > grant.pair.token);
    let next = bench.grant("bob").await;
    assert_eq!(next.job.id, grant.job.id);
    assert_eq!(bench.store.run(release).await, Ok(first));
    assert_eq!(bench.job(grant.job.id).await, next.job);
    let late = bench.complete_of(&grant).await;
    assert_eq!(bench.refused(late).await.code(), "stale_token");
}
