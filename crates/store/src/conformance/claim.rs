//! Claiming: who gets what, and in which order.

use std::{collections::BTreeSet, sync::Arc};

use palisade_core::{Digest, job::JobState, lease::Pair, transition::Wish};

use crate::{
    Store, StoreExt,
    command::{Capability, Claim, Grant, HandBack},
};

use super::bench::{BEGINNING, Bench, PAST_TTL_MS, TTL_MS, session};

/// Of two that claim the only job, one gets it.
pub async fn two_claimers_share_one_job_by_one_getting_it<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let grant = bench.grant("alice").await;
    assert_eq!(grant.job.id, id);
    let nothing = bench.claim(&bench.claim_of("bob", 1)).await;
    assert!(nothing.grants.is_empty() && nothing.lost.is_empty());
    assert_eq!(nothing.next_at, Some(grant.job.attempts[0].lease.deadline));
}

/// Fifty that claim at once never get one job twice, and leave none.
pub async fn fifty_claimers_at_once_get_each_job_once<S: Store + 'static>(bench: &Arc<Bench<S>>) {
    let mut jobs = BTreeSet::new();
    for _ in 0..20 {
        jobs.insert(bench.new_job().await);
    }
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..50 {
        let bench = Arc::clone(bench);
        tasks.spawn(async move { bench.try_grant(&format!("worker-{worker}")).await });
    }
    let grants: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(grants.len(), 20);
    assert_eq!(grants.iter().map(|grant| grant.job.id).collect::<BTreeSet<_>>(), jobs);
    let tokens: BTreeSet<_> = grants.iter().map(|grant| grant.pair.token).collect();
    assert_eq!(tokens.len(), 20, "no token is given twice");
}

/// One claim takes as many as it has places for.
pub async fn a_claim_takes_as_many_as_it_asks_for<S: Store>(bench: &Bench<S>) {
    for _ in 0..5 {
        bench.new_job().await;
    }
    let three = bench.claim(&bench.claim_of("alice", 3)).await;
    assert_eq!(three.grants.len(), 3);
    let rest = bench.claim(&bench.claim_of("alice", 10)).await;
    assert_eq!(rest.grants.len(), 2);
    for grant in three.grants.iter().chain(&rest.grants) {
        assert_eq!(bench.job(grant.job.id).await, grant.job, "a grant shows the record as it is");
    }
}

/// Higher priorities go first; within one, who was due first; then who was submitted first.
pub async fn claims_go_by_priority_then_by_age<S: Store>(bench: &Bench<S>) {
    let mut order = Vec::new();
    for (priority, run_at) in [(0, 5), (-3, 0), (7, 9), (0, 3), (7, 9), (0, 5)] {
        let run_at = palisade_core::Timestamp(run_at);
        let wish = Wish { priority, run_at, ..bench.wish().await };
        order.push((-priority, run_at, bench.submit(&wish).await.job));
    }
    order.sort();
    let claimed = bench.claim(&bench.claim_of("alice", 6)).await;
    let got: Vec<_> = claimed.grants.iter().map(|grant| grant.job.id).collect();
    assert_eq!(got, order.into_iter().map(|(_, _, id)| id).collect::<Vec<_>>());
}

/// A job waits for its `run_at`, and an empty claim is told of it.
pub async fn a_job_is_not_granted_before_its_time<S: Store>(bench: &Bench<S>) {
    let run_at = BEGINNING.plus_ms(3_000);
    let first = Wish { run_at, priority: 9, ..bench.wish().await };
    let second = Wish { run_at: run_at.plus_ms(9_000), ..bench.wish().await };
    bench.submit(&first).await;
    bench.submit(&second).await;
    let nothing = bench.claim(&bench.claim_of("alice", 1)).await;
    assert_eq!((nothing.grants.len(), nothing.next_at), (0, Some(run_at)));
    bench.pass_ms(3_000).await;
    assert_eq!(bench.grant("alice").await.job.spec, first.spec);
}

/// A worker gets only what it can run: the recipe, in its very definition.
pub async fn a_worker_gets_only_what_it_can_run<S: Store>(bench: &Bench<S>) {
    let mut wish = bench.wish().await;
    wish.spec.definition = Digest::of(b"a newer definition");
    let id = bench.submit(&wish).await.job;
    let nothing = bench.claim(&bench.claim_of("alice", 1)).await;
    assert_eq!((nothing.grants.len(), nothing.next_at), (0, None));
    let needs = Capability { recipe: wish.spec.recipe, definition: wish.spec.definition };
    // Named twice, it is still one job.
    let capabilities = vec![needs.clone(), needs.clone()];
    let claim = Claim { capabilities, ..bench.claim_of("alice", 2) };
    let claimed = bench.claim(&claim).await;
    assert_eq!(claimed.grants.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), [id]);
    // Nor does it take over what it cannot run.
    bench.pass_ms(PAST_TTL_MS).await;
    assert_eq!(bench.try_grant("bob").await, None);
    let claim = Claim { capabilities: vec![needs], ..bench.claim_of("bob", 1) };
    assert_eq!(bench.claim(&claim).await.grants.len(), 1);
}

/// A claim whose reply was lost, asked again, returns its grants, renewed, and grants nothing new.
pub async fn a_claim_asked_again_returns_its_grants<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let claim = bench.claim_of("alice", 2);
    let first = bench.claim(&claim).await;
    assert_eq!(first.grants.len(), 1);
    let later = bench.new_job().await;
    bench.pass_ms(20_000).await;
    // Whoever asks again may have drawn other lease ids: the granted one counts.
    let again = Claim { lease_ids: bench.claim_of("alice", 2).lease_ids, ..claim.clone() };
    let second = bench.claim(&again).await;
    assert_eq!(second.grants.len(), 1);
    assert_eq!(second.grants[0].pair, first.grants[0].pair);
    let job = bench.job(id).await;
    assert_eq!(job.attempts.len(), 1);
    assert_eq!(job.attempts[0].lease.renewed_at, bench.store.now());
    assert_eq!(second.grants[0].job, job, "a grant shows the record as it is");
    // The renewal counts: the first ttl is over, the second is not.
    bench.pass_ms(20_000).await;
    assert_eq!(bench.grant("bob").await.job.id, later);
    assert_eq!(bench.try_grant("bob").await, None);
}

/// A claim asked again tells what it had been granted and has lost.
pub async fn a_claim_asked_again_tells_what_was_lost<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let claim = bench.claim_of("alice", 1);
    let first = bench.claim(&claim).await;
    let pair: Pair = first.grants[0].pair;
    bench.pass_ms(PAST_TTL_MS).await;
    bench.grant("bob").await;
    let again = bench.claim(&claim).await;
    assert!(again.grants.is_empty());
    assert_eq!(again.lost, [(id, pair)]);
}

/// A claim twice in one call is one claim.
pub async fn a_claim_twice_in_one_call_is_done_once<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let claim = bench.claim_of("alice", 1);
    let answers = bench.store.run_all(vec![claim.clone(), claim]).await;
    let pairs: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.expect("a claim is answered").grants[0].pair)
        .collect();
    assert_eq!(pairs[0], pairs[1]);
}

/// What a server hands back that could not hand this grant over.
fn unheard(Grant { job, pair, .. }: &Grant) -> HandBack {
    let lease = job.attempt(pair.token).expect("a grant shows its attempt").lease;
    HandBack { job: job.id, pair: *pair, seen_at: lease.renewed_at }
}

/// Its claimer has asked another server for the same meanwhile, and works on it.
pub async fn a_grant_that_was_heard_of_is_not_handed_back<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let claim = bench.claim_of("alice", 1);
    let first = bench.claim(&claim).await;
    assert!(!first.again, "it is the first");
    bench.pass_ms(1).await;
    let second = bench.claim(&claim).await;
    assert!(second.again, "another may have been told of them");
    assert!(!bench.store.run(unheard(&first.grants[0])).await.expect("answered"));
    assert_eq!(bench.job(id).await.state, JobState::Running);
}

/// Nobody knows of it: the next claimer need not wait for a ttl.
pub async fn a_grant_nobody_heard_of_is_handed_back_once<S: Store>(bench: &Bench<S>) {
    let id = bench.new_job().await;
    let grant = bench.grant("alice").await;
    assert!(bench.store.run(unheard(&grant)).await.expect("answered"));
    let next = bench.grant("bob").await;
    assert_eq!(next.job.id, id);
    assert!(!bench.store.run(unheard(&grant)).await.expect("answered"), "it was before");
    assert_eq!(
        bench.job(id).await.attempt(next.pair.token).map(|of| of.closed.is_none()),
        Some(true)
    );
}

/// A request id belongs to its session: another worker's is another claim.
pub async fn another_sessions_claim_is_its_own<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let claim = bench.claim_of("alice", 1);
    bench.claim(&claim).await;
    let other = Claim { session: session("bob"), ..claim };
    let nothing = bench.claim(&other).await;
    assert!(nothing.grants.is_empty() && nothing.lost.is_empty());
}

/// An empty claim is told when the next lease ends or the next job is due, whichever is first.
pub async fn an_empty_claim_is_told_when_to_look_again<S: Store>(bench: &Bench<S>) {
    let claim = bench.claim_of("alice", 1);
    assert_eq!(bench.claim(&claim).await.next_at, None);
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let deadline = grant.job.attempts[0].lease.deadline;
    assert_eq!(deadline, BEGINNING.plus_ms(TTL_MS + TTL_MS / 1_000));
    let later = Wish { run_at: deadline.plus_ms(1), ..bench.wish().await };
    bench.submit(&later).await;
    assert_eq!(bench.claim(&bench.claim_of("bob", 1)).await.next_at, Some(deadline));
    let sooner = Wish { run_at: BEGINNING.plus_ms(1), ..bench.wish().await };
    bench.submit(&sooner).await;
    let told = bench.claim(&bench.claim_of("bob", 1)).await.next_at;
    assert_eq!(told, Some(BEGINNING.plus_ms(1)));
}
