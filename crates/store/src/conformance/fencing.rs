//! Fencing: who was replaced changes nothing any more, whatever it sends and whenever.

use std::sync::Arc;

use palisade_core::{
    LeaseId, Refusal,
    history::What,
    job::{CloseReason, JobState},
    lease::Pair,
    transition::{Beat, Wish},
};

use crate::{
    Store, StoreExt,
    command::{Command, Complete, Fail, Release},
    query::{Query, View},
};

use super::bench::{Bench, PAST_TTL_MS, heartbeat, never_granted};

/// A worker that was paused past its lease and completes after its replacement was granted is
/// refused, and leaves no trace but a line in the journal.
pub async fn a_zombies_completion_is_refused_and_leaves_no_trace<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let zombie = bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let replacement = bench.grant("bob").await;
    let before = bench.job(zombie.job.id).await;
    let late = bench.complete_with(&zombie, "the zombie's output").await;
    let refusal = bench.refused(late.clone()).await;
    let reason = CloseReason::Superseded;
    let fence = replacement.pair.token;
    assert_eq!(refusal, Refusal::StaleToken { fence, reason, completed_by: None });
    assert_eq!(bench.job(zombie.job.id).await, before);
    bench.store.run(bench.complete_of(&replacement).await).await.expect("it completes");
    let done = bench.job(zombie.job.id).await;
    // As of now: it learns who completed the job since.
    let refusal = bench.refused(late).await;
    let completed_by = Some(replacement.pair.token);
    assert_eq!(refusal, Refusal::StaleToken { fence: done.fence, reason, completed_by });
    assert_eq!(bench.job(zombie.job.id).await, done);
    let history = bench.store.query(Query::History(zombie.job.id)).await.expect("read");
    let View::History(history) = history else { panic!("a history is asked for") };
    let refused = history.iter().filter(|(_, event)| {
        matches!(&event.what, What::Refused { verb, token, code, .. }
            if verb == "complete" && *token == zombie.pair.token && code == "stale_token")
    });
    assert_eq!(refused.count(), 2);
}

/// Every other verb of a replaced attempt is refused likewise.
pub async fn a_zombies_other_verbs_are_refused<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let zombie = bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    bench.grant("bob").await;
    let before = bench.job(zombie.job.id).await;
    assert_eq!(bench.refused(Bench::<S>::fail_of(&zombie)).await.code(), "stale_token");
    assert_eq!(bench.refused(Bench::<S>::release_of(&zombie)).await.code(), "stale_token");
    assert_eq!(bench.job(zombie.job.id).await, before);
}

/// Who was replaced decides, not the clock: a late completion that nobody replaced stands.
pub async fn a_late_completion_of_one_not_replaced_stands<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.pass_ms(3 * PAST_TTL_MS).await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let job = bench.job(grant.job.id).await;
    assert_eq!(job.completed_by(), Some(grant.pair.token));
    assert_eq!(bench.try_grant("bob").await, None);
}

/// Another job's pair opens nothing, a stranger's lease id neither, and a job that is not there
/// is told apart.
pub async fn a_pair_that_does_not_belong_is_refused<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let (one, two) = (bench.grant("alice").await, bench.grant("bob").await);
    let before = (bench.job(one.job.id).await, bench.job(two.job.id).await);
    let complete = bench.complete_of(&one).await;
    let stranger = Pair { lease_id: LeaseId(99), ..one.pair };
    for pair in [two.pair, stranger, never_granted()] {
        let job = one.job.id;
        let complete = Complete { pair, ..complete.clone() };
        assert_eq!(bench.refused(complete).await.code(), "unknown_token");
        let fail = Fail { pair, ..Bench::<S>::fail_of(&one) };
        assert_eq!(bench.refused(fail).await.code(), "unknown_token");
        assert_eq!(bench.refused(Release { job, pair }).await.code(), "unknown_token");
    }
    let nowhere = palisade_core::JobId(never_granted().token);
    let complete = Complete { job: nowhere, ..complete };
    assert_eq!(bench.refused(complete).await.code(), "not_found");
    assert_eq!((bench.job(one.job.id).await, bench.job(two.job.id).await), before);
}

/// A backup attempt runs beside the first and raises no fence: whoever completes first counts,
/// and the other is told that the job is complete.
pub async fn a_backup_runs_beside_the_first_and_the_loser_is_told<S: Store>(bench: &Bench<S>) {
    let wish = Wish { backup_after_ms: Some(10_000), ..bench.wish().await };
    let id = bench.submit(&wish).await.job;
    let first = bench.grant("alice").await;
    assert_eq!(bench.try_grant("bob").await, None);
    bench.pass_ms(10_000).await;
    assert_eq!(bench.try_grant("alice").await, None, "not beside itself");
    let fence = bench.job(id).await.fence;
    let backup = bench.grant("bob").await;
    assert_eq!(backup.job.id, id);
    assert_eq!(bench.try_grant("carol").await, None, "one backup is enough");
    let job = bench.job(id).await;
    assert_eq!(job.fence, fence);
    assert_eq!(job.open_attempts().count(), 2);
    for (worker, grant) in [("alice", &first), ("bob", &backup)] {
        let beats = bench.store.run(heartbeat(worker, 1, &[grant])).await.expect("answered");
        assert_eq!(beats.leases, [Some(Beat::Held)]);
    }
    bench.store.run(bench.complete_of(&first).await).await.expect("it completes");
    let late = bench.complete_with(&backup, "the backup's output").await;
    let completed_by = first.pair.token;
    assert_eq!(bench.refused(late).await, Refusal::AlreadyComplete { completed_by });
    let job = bench.job(id).await;
    assert_eq!(job.attempts[1].closed.as_ref().map(|c| c.reason), Some(CloseReason::Outrun));
    assert!(job.fence > backup.pair.token);
}

/// When one of two attempts fails, the other goes on.
pub async fn a_backup_goes_on_when_the_first_fails<S: Store>(bench: &Bench<S>) {
    let wish = Wish { backup_after_ms: Some(1_000), ..bench.wish().await };
    let id = bench.submit(&wish).await.job;
    let first = bench.grant("alice").await;
    bench.pass_ms(1_000).await;
    let backup = bench.grant("bob").await;
    let failed = bench.store.run(Bench::<S>::fail_of(&first)).await.expect("a failure is taken");
    assert_eq!((failed.state, failed.run_at), (JobState::Running, None));
    bench.store.run(bench.complete_of(&backup).await).await.expect("it completes");
    assert_eq!(bench.job(id).await.completed_by(), Some(backup.pair.token));
}

/// A completion against its own takeover, many times: one of them wins, and a completion that was
/// answered stays whatever follows.
pub async fn a_completion_that_was_answered_stays<S: Store + 'static>(bench: &Arc<Bench<S>>) {
    for round in 0..40 {
        let id = bench.new_job().await;
        let grant = bench.grant("alice").await;
        bench.pass_ms(PAST_TTL_MS).await;
        let complete = bench.complete_of(&grant).await;
        let (one, two) = (Arc::clone(bench), Arc::clone(bench));
        let completes = async move { one.store.run(complete).await };
        let takes = async move {
            two.store.execute(vec![Command::Tick]).await;
            two.try_grant("bob").await
        };
        // Spawned in turns, so that either comes first in half of the rounds.
        let (completed, taken) = if round % 2 == 0 {
            let completes = tokio::spawn(completes);
            let takes = tokio::spawn(takes);
            (completes.await.expect("no panic"), takes.await.expect("no panic"))
        } else {
            let takes = tokio::spawn(takes);
            let completes = tokio::spawn(completes);
            (completes.await.expect("no panic"), takes.await.expect("no panic"))
        };
        assert_eq!(completed.is_ok(), taken.is_none(), "round {round}: one of them wins");
        bench.pass_ms(PAST_TTL_MS).await;
        let winner = match taken {
            None => grant,
            Some(taken) => taken,
        };
        if completed.is_err() {
            bench.store.run(bench.complete_of(&winner).await).await.expect("not replaced");
        }
        let job = bench.job(id).await;
        assert_eq!(job.completed_by(), Some(winner.pair.token), "round {round}");
        assert_eq!(bench.try_grant("carol").await, None, "round {round}");
    }
}

/// Tokens and submission numbers come from one counter that only rises.
pub async fn numbers_only_rise<S: Store>(bench: &Bench<S>) {
    let mut last = 0;
    let mut rises = |number: palisade_core::Number| {
        assert!(number.get() > last, "{number} after {last}");
        last = number.get();
    };
    for _ in 0..3 {
        let wish = bench.wish().await;
        rises(bench.submit(&wish).await.submission);
        let first = bench.grant("alice").await;
        rises(first.pair.token);
        bench.store.run(Bench::<S>::release_of(&first)).await.expect("a release is taken");
        rises(bench.submit(&wish).await.submission);
        let second = bench.grant("bob").await;
        rises(second.pair.token);
        bench.store.run(bench.complete_of(&second).await).await.expect("it completes");
        rises(bench.submit(&wish).await.submission);
    }
}
