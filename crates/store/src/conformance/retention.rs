//! What is old may be forgotten; positions go on, and what still matters is kept.

use palisade_core::{JobId, Retention, history::Event, retention::KEEP_MS_MIN};

use crate::{
    Store, StoreExt,
    command::{Cancel, Forget, Forgotten, Submit},
    query::{JournalSpan, Query, View},
};

use super::Bench;

/// Runs a round of forgetting all that is older than an hour. Answers what went, and in how many
/// steps.
pub(super) async fn forget<S: Store>(bench: &Bench<S>) -> (u64, u64, u32) {
    let keep = Retention::of_ms(KEEP_MS_MIN).expect("the shortest that is allowed");
    let now = bench.store.now();
    let (mut entries, mut answers, mut steps) = (0, 0, 0);
    let mut after = Some(0);
    while let Some(position) = after {
        let step = Forget {
            journal_before: keep.journal_before(now),
            answers_before: keep.answers_before(now),
            after: position,
        };
        let went: Forgotten = bench.store.run(step).await.expect("a step is done");
        entries += went.entries;
        answers += went.answers;
        steps += 1;
        after = went.next;
    }
    (entries, answers, steps)
}

async fn span<S: Store>(bench: &Bench<S>) -> JournalSpan {
    match bench.store.query(Query::JournalSpan).await {
        Ok(View::JournalSpan(span)) => span,
        other => panic!("the journal's span is asked for, but: {other:?}"),
    }
}

async fn history<S: Store>(bench: &Bench<S>, job: JobId) -> Vec<(u64, Event)> {
    match bench.store.query(Query::History(job)).await {
        Ok(View::History(entries)) => entries,
        other => panic!("a history is asked for, but: {other:?}"),
    }
}

async fn journal<S: Store>(bench: &Bench<S>) -> Vec<u64> {
    match bench.store.query(Query::Events { after: 0, limit: usize::MAX }).await {
        Ok(View::Events(entries)) => entries.into_iter().map(|(position, _)| position).collect(),
        other => panic!("the journal is asked for, but: {other:?}"),
    }
}

async fn done<S: Store>(bench: &Bench<S>) -> JobId {
    let job = bench.new_job().await;
    let claimed = bench.claim(&bench.claim_of("alice", 1)).await;
    bench.store.run(bench.complete_of(&claimed.grants[0]).await).await.expect("it completes");
    job
}

/// Old entries of jobs that are over go, young ones and those of live jobs stay, and a live job's
/// go once it is over.
pub async fn old_entries_go_except_those_of_live_jobs<S: Store>(bench: &Bench<S>) {
    let over = done(bench).await;
    let live = bench.new_job().await;
    let of_live = history(bench, live).await;
    let of_over = history(bench, over).await.len() as u64;
    bench.clock.advance_ms(2 * KEEP_MS_MIN);
    let young = bench.new_job().await;
    let before = span(bench).await;
    assert_eq!((before.pruned, before.next), (0, journal(bench).await.len() as u64 + 1));

    assert_eq!(forget(bench).await.0, of_over);
    assert_eq!(history(bench, over).await, []);
    assert_eq!(history(bench, live).await, of_live);
    assert!(!history(bench, young).await.is_empty());
    let after = span(bench).await;
    assert_eq!(after, JournalSpan { pruned: of_over, ..before });
    assert_eq!(forget(bench).await.0, 0, "what is gone is gone");

    let all = Cancel { job: live, which: palisade_core::transition::Which::All, request_id: None };
    bench.store.run(all).await.expect("it is withdrawn");
    assert_eq!(forget(bench).await.0, of_live.len() as u64, "its end is young and stays");
    assert!(!history(bench, live).await.is_empty());
}

/// Positions go on where they were, also when nothing is left, and a long journal goes in steps.
pub async fn positions_go_on_when_all_is_forgotten<S: Store>(bench: &Bench<S>) {
    for _ in 0..20 {
        done(bench).await;
    }
    let before = span(bench).await;
    bench.clock.advance_ms(2 * KEEP_MS_MIN);
    let (went, _, steps) = forget(bench).await;
    assert_eq!(went, before.next - 1);
    assert!(steps > 1, "{steps} step(s)");
    assert_eq!(journal(bench).await, [0; 0]);
    assert_eq!(span(bench).await, JournalSpan { pruned: before.next - 1, next: before.next });
    bench.new_job().await;
    assert_eq!(journal(bench).await, [before.next]);
}

/// First answers are kept for a week at least, and a claim's for as long as it has a grant open.
pub async fn old_answers_are_forgotten<S: Store>(bench: &Bench<S>) {
    let id: palisade_core::RequestId = "wish-1".parse().expect("an id");
    let submit = Submit { wish: bench.wish().await, request_id: Some(id.clone()) };
    let first = bench.store.run(submit.clone()).await.expect("taken");
    let claim = bench.claim_of("alice", 1);
    let granted = bench.claim(&claim).await;
    bench.clock.advance_ms(24 * KEEP_MS_MIN);
    assert_eq!(forget(bench).await.1, 0, "a day is not long");
    assert_eq!(bench.store.run(submit.clone()).await.expect("asked again"), first);

    bench.clock.advance_ms(8 * 24 * KEEP_MS_MIN);
    assert_eq!(forget(bench).await.1, 1, "the submission's answer alone");
    let other = Submit { wish: bench.wish().await, request_id: Some(id) };
    let other = bench.store.run(other).await.expect("the id is free again");
    assert_ne!(other.job, first.job);
    let again = bench.claim(&claim).await;
    assert_eq!(again.grants.len(), 1);
    assert_eq!(again.grants[0].pair, granted.grants[0].pair, "its grant is still open");
}
