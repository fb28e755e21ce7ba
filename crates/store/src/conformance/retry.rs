//! Budgets, backoff, and another try.

use palisade_core::{
    JobId, Refusal,
    history::Joined,
    job::{FailureKind, JobState},
    transition::{Which, Wish},
};

use crate::{
    Store, StoreExt,
    command::{Cancel, Command, Fail, Retry},
};

use super::bench::{Bench, PAST_TTL_MS, failure, request};

/// A failure sends the job back after a wait, which doubles.
pub async fn failures_back_off<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.backoff_ms = 4_000;
    let id = bench.submit(&wish).await.job;
    for wait_ms in [2_000, 4_000] {
        let grant = bench.grant("alice").await;
        let fail = Bench::<S>::fail_of(&grant);
        let requeued = bench.store.run(fail).await.expect("a failure is taken");
        let run_at = bench.store.now().plus_ms(wait_ms);
        assert_eq!((requeued.state, requeued.run_at), (JobState::Queued, Some(run_at)));
        bench.pass_ms(wait_ms - 1).await;
        assert_eq!(bench.try_grant("alice").await, None);
        bench.pass_ms(1).await;
    }
    assert_eq!(bench.grant("alice").await.job.id, id);
}

/// The failure that uses up the budget makes the job a dead letter with what was said.
pub async fn failures_use_up_their_budget<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.failures_allowed = 2;
    let id = bench.submit(&wish).await.job;
    for expected in [JobState::Queued, JobState::Failed] {
        let grant = bench.grant("alice").await;
        let fail = Bench::<S>::fail_of(&grant);
        let requeued = bench.store.run(fail).await.expect("a failure is taken");
        assert_eq!(requeued.state, expected);
        bench.pass_ms(10_000).await;
    }
    let job = bench.job(id).await;
    let dead = job.dead_letter.expect("a failed job says why");
    assert_eq!((&*dead.reason, &*dead.message), ("tool_failed", "tool_failed: it is so"));
    assert_eq!(bench.try_grant("alice").await, None);
}

/// A failure that no other try can mend ends the job at once.
pub async fn a_final_failure_ends_the_job<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let grant = bench.grant("alice").await;
    let failure = failure("bad_input", FailureKind::Final);
    let fail = Fail { failure, ..Bench::<S>::fail_of(&grant) };
    let requeued = bench.store.run(fail).await.expect("a failure is taken");
    assert_eq!((requeued.state, requeued.run_at), (JobState::Failed, None));
    let job = bench.job(id).await;
    assert_eq!(job.dead_letter.expect("it says why").reason, "bad_input");
}

async fn lose<S: Store>(bench: &Bench<S>, times: u32) {
    for _ in 0..times {
        bench.grant("doomed").await;
        bench.pass_ms(PAST_TTL_MS).await;
    }
}

async fn assert_lost_repeatedly<S: Store>(bench: &Bench<S>, id: JobId) {
    let job = bench.job(id).await;
    assert_eq!((job.state, job.losses, job.failures), (JobState::Failed, 3, 0));
    let dead = job.dead_letter.as_ref().expect("it says why");
    assert_eq!(dead.reason, "lost_repeatedly");
    assert!(!job.has_open_attempt());
    assert_eq!(bench.try_grant("alice").await, None);
}

/// A job that kills its workers does not kill them for ever: the claim that would lose one more
/// gives it up, and goes on to the next job.
pub async fn a_claim_gives_up_what_was_lost_repeatedly<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.losses_allowed = 2;
    let id = bench.submit(&wish).await.job;
    lose(bench, 2).await;
    let grant = bench.grant("doomed").await;
    // No tick in between: the claim comes first.
    bench.clock.advance_ms(4_000);
    let next = bench.new_job().await;
    for _ in 0..7 {
        bench.store.run(super::bench::heartbeat("nobody", 1, &[])).await.expect("answered");
        bench.clock.advance_ms(4_000);
    }
    assert_eq!(grant.job.id, id);
    assert_eq!(bench.grant("alice").await.job.id, next);
    assert_lost_repeatedly(bench, id).await;
}

/// Where nobody claims, a tick gives it up.
pub async fn a_tick_gives_up_what_was_lost_repeatedly<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.losses_allowed = 2;
    let id = bench.submit(&wish).await.job;
    lose(bench, 3).await;
    bench.store.execute(vec![Command::Tick]).await;
    assert_lost_repeatedly(bench, id).await;
}

/// Losses do not use up the failures allowed.
pub async fn losses_and_failures_are_counted_apart<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.failures_allowed = 2;
    let id = bench.submit(&wish).await.job;
    lose(bench, 3).await;
    let grant = bench.grant("alice").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    let job = bench.job(id).await;
    assert_eq!((job.state, job.failures, job.losses), (JobState::Queued, 1, 3));
}

async fn failed_job<S: Store>(bench: &Bench<S>) -> (JobId, Wish) {
    let mut wish = bench.wish().await;
    wish.retry.failures_allowed = 1;
    let id = bench.submit(&wish).await.job;
    let grant = bench.grant("alice").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    (id, wish)
}

fn retry(job: JobId) -> Retry {
    Retry { job, submission: None, request_id: None }
}

/// A retry queues a dead letter again, its budgets reset, its submissions kept.
pub async fn a_retry_gives_a_failed_job_another_try<S: Store>(bench: &Bench<S>) {
    let (id, _) = failed_job(bench).await;
    let answer = bench.store.run(retry(id)).await.expect("a retry is taken");
    assert_eq!(answer.state, JobState::Queued);
    let job = bench.job(id).await;
    assert_eq!((job.failures, job.losses, job.dead_letter), (0, 0, None));
    assert_eq!(job.submissions.len(), 1);
    let grant = bench.grant("bob").await;
    assert_eq!(grant.job.id, id);
    assert!(grant.pair.token >= job.fence);
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
}

/// A retry whose reply was lost, asked again, does nothing a second time.
pub async fn a_retry_asked_again_does_nothing_more<S: Store>(bench: &Bench<S>) {
    let (id, _) = failed_job(bench).await;
    let asked = Retry { request_id: Some(request("retry-1")), ..retry(id) };
    let first = bench.store.run(asked.clone()).await.expect("a retry is taken");
    let grant = bench.grant("bob").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    assert_eq!(bench.store.run(asked).await, Ok(first));
    assert_eq!(bench.job(id).await.state, JobState::Failed);
}

/// A retry is refused when a newer job has the key: two would render the same.
pub async fn a_retry_is_refused_when_a_newer_job_has_the_key<S: Store>(bench: &Bench<S>) {
    let (old, wish) = failed_job(bench).await;
    let newer = bench.submit(&wish).await;
    assert_eq!(newer.how, Joined::New);
    assert_eq!(bench.refused(retry(old)).await, Refusal::NewerJob { job: newer.job });
    // Also once the newer one is over.
    let cancel = Cancel { job: newer.job, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("a cancel is taken");
    assert_eq!(bench.refused(retry(old)).await, Refusal::NewerJob { job: newer.job });
}

/// A retry of a cancelled job names a submission and revives that one alone.
pub async fn a_retry_of_a_cancelled_job_revives_one_submission<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let second = bench.submit(&wish).await;
    let job = first.job;
    let cancel = Cancel { job, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("a cancel is taken");
    assert_eq!(bench.refused(retry(job)).await.code(), "wrong_state");
    let revive = Retry { submission: Some(second.submission), ..retry(job) };
    bench.store.run(revive).await.expect("a retry is taken");
    let job = bench.job(job).await;
    assert_eq!(job.state, JobState::Queued);
    let wanted: Vec<_> = job
        .submissions
        .iter()
        .filter(|one| one.withdrawn_at.is_none())
        .map(|one| (one.number, one.how))
        .collect();
    assert_eq!(wanted, [(second.submission, Joined::Revived)]);
}

/// What is live or complete needs no other try.
pub async fn a_retry_of_a_live_or_complete_job_is_refused<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    assert_eq!(bench.refused(retry(id)).await.code(), "wrong_state");
    let grant = bench.grant("alice").await;
    assert_eq!(bench.refused(retry(id)).await.code(), "wrong_state");
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let completed_by = grant.pair.token;
    assert_eq!(bench.refused(retry(id)).await, Refusal::AlreadyComplete { completed_by });
}
