//! Submitting: new, joined, cached, asked again.

use palisade_core::{
    Number, Refusal, Timestamp,
    history::Joined,
    job::{JobState, Submission},
    transition::Wish,
};

use crate::{Store, StoreExt, command::Submit};

use super::bench::{BEGINNING, Bench, request};

/// A wish that nobody had before makes a job that waits.
pub async fn a_wish_makes_a_queued_job<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let submitted = bench.submit(&wish).await;
    assert_eq!(submitted.how, Joined::New);
    assert_eq!(submitted.job.0, submitted.submission);
    let job = bench.job(submitted.job).await;
    assert_eq!(job.spec, wish.spec);
    assert_eq!(job.key, wish.spec.key());
    assert_eq!((job.state, job.created_at), (JobState::Queued, BEGINNING));
    let how = Joined::New;
    let at = BEGINNING;
    let first =
        Submission { number: submitted.submission, at, how, withdrawn_at: None, publication: None };
    assert_eq!(job.submissions, [first]);
}

/// The same wish again joins the live job, waiting or running, under a number of its own.
pub async fn the_same_wish_joins_the_live_job<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let second = bench.submit(&wish).await;
    assert_eq!((second.job, second.how), (first.job, Joined::Joined));
    bench.grant("alice").await;
    let third = bench.submit(&wish).await;
    assert_eq!((third.job, third.how), (first.job, Joined::Joined));
    assert!(first.submission < second.submission && second.submission < third.submission);
    assert_eq!(bench.job(first.job).await.submissions.len(), 3);
}

/// Of many that wish the same at once, one makes the job and the others join it.
pub async fn ten_wishes_at_once_make_one_job<S: Store + 'static>(bench: &std::sync::Arc<Bench<S>>) {
    let wish = bench.wish().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (bench, wish) = (std::sync::Arc::clone(bench), wish.clone());
        tasks.spawn(async move { bench.submit(&wish).await });
    }
    let submitted = tasks.join_all().await;
    assert!(submitted.iter().all(|one| one.job == submitted[0].job), "{submitted:?}");
    let made = submitted.iter().filter(|one| one.how == Joined::New).count();
    assert_eq!(made, 1, "{submitted:?}");
}

/// A complete job answers the same wish at once.
pub async fn a_complete_job_answers_from_the_cache<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let second = bench.submit(&wish).await;
    assert_eq!((second.job, second.how), (first.job, Joined::Cached));
    assert!(second.submission > grant.pair.token);
    assert_eq!(bench.try_grant("bob").await, None);
}

/// Who asks for a fresh rendering gets one, though a complete job has the key.
pub async fn a_fresh_wish_renders_again<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let first = bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let fresh = Wish { fresh: true, ..wish.clone() };
    let second = bench.submit(&fresh).await;
    assert_eq!(second.how, Joined::New);
    assert_ne!(second.job, first.job);
    // While it is live, it is what the same wish joins, fresh or not.
    assert_eq!(bench.submit(&fresh).await.job, second.job);
    assert_eq!(bench.submit(&wish).await.job, second.job);
}

/// A job that failed or was cancelled answers nobody: the same wish makes a new one.
pub async fn a_job_that_is_over_is_not_joined<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.retry.failures_allowed = 1;
    let first = bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    assert_eq!(bench.job(first.job).await.state, JobState::Failed);
    let second = bench.submit(&wish).await;
    assert_eq!(second.how, Joined::New);
    assert!(second.job > first.job);
}

/// Keys and caches do not reach across tenants.
pub async fn another_tenant_gets_a_job_of_its_own<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let other = Wish { tenant: "other".parse().expect("a tenant"), ..wish.clone() };
    let first = bench.submit(&wish).await;
    let second = bench.submit(&other).await;
    assert_eq!(second.how, Joined::New);
    assert_ne!(first.job, second.job);
    assert_eq!(bench.job(first.job).await.key, bench.job(second.job).await.key);
}

/// A submit whose reply was lost, asked again, gets its first answer, whatever happened since.
pub async fn a_submit_asked_again_gets_its_first_answer<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let submit = Submit { wish, request_id: Some(request("submit-1")) };
    let first = bench.store.run(submit.clone()).await.expect("a wish is taken");
    assert_eq!(bench.store.run(submit.clone()).await, Ok(first));
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    // Yesterday's delayed request, fresh by then, must not overtake today's.
    assert_eq!(bench.store.run(submit).await, Ok(first));
    assert_eq!(bench.job(first.job).await.submissions.len(), 1);
}

/// The same id, in the same call, is the same request.
pub async fn a_submit_twice_in_one_call_is_done_once<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let submit = Submit { wish, request_id: Some(request("submit-1")) };
    let answers = bench.store.run_all(vec![submit.clone(), submit]).await;
    assert_eq!(answers[0], answers[1]);
    let job = answers[0].as_ref().expect("a wish is taken").job;
    assert_eq!(bench.job(job).await.submissions.len(), 1);
}

/// One id for two wishes is a mistake that is told.
pub async fn a_request_id_of_another_wish_is_refused<S: Store>(bench: &Bench<S>) {
    let id = Some(request("submit-1"));
    let wish = bench.wish().await;
    bench.store.run(Submit { wish, request_id: id.clone() }).await.expect("a wish is taken");
    let wish = bench.wish().await;
    let refusal = bench.refused(Submit { wish: wish.clone(), request_id: id.clone() }).await;
    assert_eq!(refusal.code(), "invalid");
    assert!(refusal.to_string().contains("request_id"), "{refusal}");
    // Another tenant's ids are its own.
    let other = Wish { tenant: "other".parse().expect("a tenant"), ..wish };
    bench.store.run(Submit { wish: other, request_id: id }).await.expect("a wish is taken");
}

/// An input has to be there, whole and as long as it is said to be, before a job counts on it.
pub async fn a_wish_whose_input_is_missing_is_refused<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    let input = wish.spec.inputs.values_mut().next().expect("it has one");
    input.size_bytes += 1;
    let refusal = bench.refused(Submit { wish: wish.clone(), request_id: None }).await;
    assert!(refusal.to_string().contains("inputs.source.size_bytes"), "{refusal}");
    let input = wish.spec.inputs.values_mut().next().expect("it has one");
    input.digest = palisade_core::Digest::of(b"nobody brought this");
    let refusal = bench.refused(Submit { wish, request_id: None }).await;
    assert!(matches!(refusal, Refusal::MissingBlob { .. }), "{refusal:?}");
}

/// Whole numbers reach to 2^53 and no further.
pub async fn a_number_too_large_is_refused<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let late = Wish { run_at: Timestamp(Number::MAX.get() + 1), ..wish.clone() };
    let refusal = bench.refused(Submit { wish: late, request_id: None }).await;
    assert!(refusal.to_string().contains("run_at_ms"), "{refusal}");
    let last = Wish { run_at: Timestamp(Number::MAX.get()), ..wish };
    let submitted = bench.submit(&last).await;
    assert_eq!(bench.job(submitted.job).await.run_at, Timestamp(Number::MAX.get()));
}
