//! Cancelling: a wish is withdrawn; the job goes when nobody wants it any more.

use palisade_core::{
    JobId,
    job::{CloseReason, JobState},
    transition::Which,
};

use crate::{Store, StoreExt, command::Cancel};

use super::bench::{Bench, never_granted, request};

fn cancel(job: JobId, which: Which) -> Cancel {
    Cancel { job, which, request_id: None }
}

/// Withdrawing one of two wishes leaves the job to the other.
pub async fn one_of_two_withdrawn_leaves_the_job<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let second = bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    let one = cancel(first.job, Which::One(first.submission));
    let answer = bench.store.run(one).await.expect("a cancel is taken");
    assert_eq!((answer.withdrawn, answer.state), (1, JobState::Running));
    assert!(bench.job(first.job).await.has_open_attempt());
    let other = cancel(first.job, Which::One(second.submission));
    let answer = bench.store.run(other).await.expect("a cancel is taken");
    assert_eq!((answer.withdrawn, answer.state), (1, JobState::Cancelled));
    let job = bench.job(first.job).await;
    assert_eq!(job.attempts[0].closed.as_ref().map(|c| c.reason), Some(CloseReason::Cancelled));
    assert!(job.fence > grant.pair.token);
    let late = bench.complete_of(&grant).await;
    assert_eq!(bench.refused(late).await.code(), "stale_token");
}

/// An operator withdraws all at once.
pub async fn all_withdrawn_cancels_the_job<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    bench.submit(&wish).await;
    let answer = bench.store.run(cancel(first.job, Which::All)).await.expect("a cancel is taken");
    assert_eq!((answer.withdrawn, answer.state), (2, JobState::Cancelled));
    assert_eq!(bench.try_grant("alice").await, None);
}

/// A cancel whose reply was lost, asked again, gets the same answer and withdraws nothing more.
pub async fn a_cancel_asked_again_does_nothing_more<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let id = Some(request("cancel-1"));
    let asked = Cancel { request_id: id, ..cancel(first.job, Which::All) };
    let answer = bench.store.run(asked.clone()).await.expect("a cancel is taken");
    assert_eq!(bench.store.run(asked.clone()).await, Ok(answer));
    // The same id for another request is a mistake that is told.
    let other = Cancel { which: Which::One(first.submission), ..asked };
    assert_eq!(bench.refused(other).await.code(), "invalid");
}

/// Without an id, a second cancel finds nothing left to withdraw.
pub async fn a_second_cancel_withdraws_nothing<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    bench.store.run(cancel(id, Which::All)).await.expect("a cancel is taken");
    let job = bench.job(id).await;
    let answer = bench.store.run(cancel(id, Which::All)).await.expect("a cancel is taken");
    assert_eq!((answer.withdrawn, answer.state), (0, JobState::Cancelled));
    assert_eq!(bench.job(id).await, job);
}

/// Withdrawing a wish that was fulfilled undoes nothing.
pub async fn a_complete_job_stays_complete<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let answer = bench.store.run(cancel(id, Which::All)).await.expect("a cancel is taken");
    assert_eq!((answer.withdrawn, answer.state), (1, JobState::Complete));
}

/// What is not there cannot be withdrawn.
pub async fn an_unknown_job_or_submission_is_told<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let nobody = never_granted().token;
    let refusal = bench.refused(cancel(id, Which::One(nobody))).await;
    assert_eq!(refusal.code(), "not_found");
    let refusal = bench.refused(cancel(JobId(nobody), Which::All)).await;
    assert_eq!(refusal.code(), "not_found");
}
