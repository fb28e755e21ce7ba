//! Leases: renewed, lapsed, taken over, released unseen, suspected.

use palisade_core::{
    JobId,
    history::What,
    job::{CloseReason, JobState},
    transition::{Beat, LostReason, Which},
};

use crate::{
    Store, StoreExt,
    command::{Cancel, Heartbeat, Suspect},
    query::{Query, View},
};

use super::bench::{Bench, PAST_TTL_MS, heartbeat, never_granted, session};

/// A lease that is renewed stays with its worker.
pub async fn a_renewed_lease_is_not_taken_over<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    for seq in 1..=6 {
        bench.pass_ms(20_000).await;
        assert_eq!(bench.try_grant("bob").await, None);
        let beats = bench.store.run(heartbeat("alice", seq, &[&grant])).await.expect("answered");
        assert_eq!(beats.leases, [Some(Beat::Held)]);
        let lease = bench.job(grant.job.id).await.attempts[0].lease;
        assert_eq!(lease.renewed_at, bench.store.now());
    }
}

/// A lease that lapsed goes to the next that claims, under a higher token and fence.
pub async fn a_lapsed_lease_is_taken_over<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let first = bench.grant("alice").await;
    bench.pass_ms(29_000).await;
    assert_eq!(bench.try_grant("bob").await, None);
    bench.pass_ms(2_000).await;
    let second = bench.grant("bob").await;
    assert_eq!(second.job.id, first.job.id);
    assert!(second.pair.token > first.pair.token);
    let job = bench.job(first.job.id).await;
    assert_eq!(job.fence, second.pair.token);
    assert_eq!(job.losses, 1);
    let reasons: Vec<_> = job.attempts.iter().map(|one| one.closed.as_ref()).collect();
    assert_eq!(reasons[0].map(|closed| closed.reason), Some(CloseReason::Superseded));
    assert_eq!(reasons[1], None);
}

/// A heartbeat after the deadline renews, as long as nobody has replaced the attempt.
pub async fn a_late_heartbeat_of_one_not_replaced_renews<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let beats = bench.store.run(heartbeat("alice", 1, &[&grant])).await.expect("answered");
    assert_eq!(beats.leases, [Some(Beat::Held)]);
    assert_eq!(bench.try_grant("bob").await, None);
    // The gap between two renewals is in the journal, with how long it was.
    let gaps: Vec<_> = whats(bench, grant.job.id)
        .await
        .into_iter()
        .filter_map(|what| match what {
            What::RenewedLate { token, renewed_at, .. } => Some((token, renewed_at)),
            _ => None,
        })
        .collect();
    assert_eq!(gaps, [(grant.pair.token, grant.job.attempts[0].granted_at)]);
}

/// What the journal tells of a job.
async fn whats<S: Store>(bench: &Bench<S>, job: JobId) -> Vec<What> {
    match bench.store.query(Query::History(job)).await {
        Ok(View::History(entries)) => entries.into_iter().map(|(_, event)| event.what).collect(),
        other => panic!("a history is asked for, but: {other:?}"),
    }
}

/// A heartbeat after the loss is told so, with the reason and the fence.
pub async fn a_heartbeat_after_the_loss_is_told<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let first = bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let second = bench.grant("bob").await;
    let beats = bench.store.run(heartbeat("alice", 1, &[&first])).await.expect("answered");
    let lost = |completed_by, fence| {
        [Some(Beat::Lost(LostReason { reason: CloseReason::Superseded, fence, completed_by }))]
    };
    assert_eq!(beats.leases, lost(None, second.pair.token));
    let complete = bench.complete_of(&second).await;
    bench.store.run(complete).await.expect("it completes");
    let beats = bench.store.run(heartbeat("alice", 2, &[&first])).await.expect("answered");
    assert_eq!(beats.leases, lost(Some(second.pair.token), second.pair.token.next()));
}

/// A heartbeat for a cancelled job is told so.
pub async fn a_heartbeat_after_a_cancel_is_told<S: Store>(bench: &Bench<S>) {
    let job = bench.new_job().await;
    let grant = bench.grant("alice").await;
    let cancel = Cancel { job, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("a cancel is taken");
    let beats = bench.store.run(heartbeat("alice", 1, &[&grant])).await.expect("answered");
    assert_eq!(beats.leases, [Some(Beat::Cancelled)]);
}

/// Each lease of a heartbeat is answered by itself; a pair never granted is unknown.
pub async fn a_pair_never_granted_is_unknown_to_a_heartbeat<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let (one, two) = (bench.grant("alice").await, bench.grant("alice").await);
    let mut beat = heartbeat("alice", 1, &[&one, &two]);
    beat.leases.insert(1, (one.job.id, never_granted()));
    // Another job's pair is as good as none.
    beat.leases.push((one.job.id, two.pair));
    let beats = bench.store.run(beat).await.expect("answered");
    assert_eq!(beats.leases, [Some(Beat::Held), None, Some(Beat::Held), None]);
}

/// A grant whose reply was lost, and which its worker's next heartbeat does not know, is handed
/// back at once.
pub async fn a_heartbeat_hands_back_a_grant_it_does_not_know<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let known = bench.grant("alice").await;
    let unknown = bench.grant("alice").await;
    let beats = bench.store.run(heartbeat("alice", 1, &[&known])).await.expect("answered");
    assert_eq!(beats.released, [(unknown.job.id, unknown.pair.token)]);
    let job = bench.job(unknown.job.id).await;
    assert_eq!((job.state, job.losses, job.failures), (JobState::Queued, 0, 0));
    assert_eq!(bench.grant("bob").await.job.id, unknown.job.id);
}

/// What is still pending, or was claimed after the heartbeat was sent, is not handed back.
pub async fn a_heartbeat_leaves_alone_what_it_cannot_know<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let mut claim = bench.claim_of("alice", 1);
    claim.seq = 4;
    bench.claim(&claim).await;
    let pending =
        Heartbeat { pending: vec![claim.request_id.clone()], ..heartbeat("alice", 5, &[]) };
    assert_eq!(bench.store.run(pending).await.expect("answered").released, []);
    bench.new_job().await;
    let mut later = bench.claim_of("alice", 1);
    later.seq = 6;
    let later_grant = bench.claim(&later).await.grants.remove(0);
    let sent_before = Heartbeat { pending: vec![claim.request_id], ..heartbeat("alice", 6, &[]) };
    assert_eq!(bench.store.run(sent_before).await.expect("answered").released, []);
    assert_eq!(bench.job(later_grant.job.id).await.state, JobState::Running);
}

/// A heartbeat that a later one overtook hands nothing back.
pub async fn an_overtaken_heartbeat_hands_nothing_back<S: Store>(bench: &Bench<S>) {
    bench.store.run(heartbeat("alice", 7, &[])).await.expect("answered");
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    for seq in [6, 7] {
        let beats = bench.store.run(heartbeat("alice", seq, &[])).await.expect("answered");
        assert_eq!(beats.released, []);
    }
    assert_eq!(bench.job(grant.job.id).await.state, JobState::Running);
    // It renews all the same.
    bench.pass_ms(20_000).await;
    let beats = bench.store.run(heartbeat("alice", 5, &[&grant])).await.expect("answered");
    assert_eq!(beats.leases, [Some(Beat::Held)]);
    bench.pass_ms(20_000).await;
    assert_eq!(bench.try_grant("bob").await, None);
}

/// A session that ended and did not come back loses its leases at once, but for those renewed
/// since.
pub async fn a_suspected_session_loses_what_it_did_not_renew<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let quiet = bench.grant("alice").await;
    let renewed = bench.grant("alice").await;
    bench.pass_ms(1_000).await;
    let seen_at = bench.store.now();
    bench.pass_ms(1_000).await;
    let mut beat = heartbeat("alice", 1, &[&renewed]);
    // The other's claim is pending, so that the heartbeat does not hand it back.
    beat.pending = vec![quiet.job.attempts[0].claim.clone()];
    bench.store.run(beat).await.expect("answered");
    let suspect = Suspect { session: session("alice"), seen_at };
    let suspected = bench.store.run(suspect).await.expect("answered");
    assert_eq!(suspected.leases, [(quiet.job.id, quiet.pair.token)]);
    let taken = bench.grant("bob").await;
    assert_eq!(taken.job.id, quiet.job.id);
    assert_eq!(bench.try_grant("bob").await, None);
    // The worker may still come back to what nobody took.
    let beats = bench.store.run(heartbeat("alice", 2, &[&renewed])).await.expect("answered");
    assert_eq!(beats.leases, [Some(Beat::Held)]);
}

/// A suspected lease that is renewed before anybody took it is whole again.
pub async fn a_suspicion_ends_with_a_renewal<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let suspect = Suspect { session: session("alice"), seen_at: bench.store.now() };
    bench.store.run(suspect).await.expect("answered");
    bench.store.run(heartbeat("alice", 1, &[&grant])).await.expect("answered");
    assert_eq!(bench.try_grant("bob").await, None);
}

/// Pauses that a worker measured are in the journal, for attempts that it was granted; once, though
/// the worker tells them until it is answered.
pub async fn measured_pauses_are_in_the_journal<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let mut beat = heartbeat("alice", 1, &[&grant]);
    beat.pauses = vec![(grant.job.id, grant.pair, 41_000), (grant.job.id, never_granted(), 1)];
    bench.store.run(beat.clone()).await.expect("answered");
    beat.seq = 2;
    bench.store.run(beat).await.expect("answered");
    let told = whats(bench, grant.job.id).await.into_iter();
    let pauses: Vec<_> = told.filter(|what| matches!(what, What::Paused { .. })).collect();
    assert_eq!(pauses, [What::Paused { token: grant.pair.token, pause_ms: 41_000 }]);
}
