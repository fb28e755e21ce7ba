//! Reading: lists, counts, leases, the journal.

use palisade_core::{
    JobId, RecipeName,
    history::{Event, What},
    job::JobState,
    transition::Which,
};

use crate::{
    Store, StoreExt,
    command::{Cancel, Capability, Claim},
    query::{JobFilter, Query, View},
};

use super::bench::{Bench, heartbeat};

async fn listed<S: Store>(bench: &Bench<S>, filter: JobFilter) -> Vec<JobId> {
    match bench.store.query(Query::Jobs(filter)).await {
        Ok(View::Jobs(jobs)) => jobs.into_iter().map(|job| job.id).collect(),
        other => panic!("jobs are asked for, but: {other:?}"),
    }
}

fn of_state(state: JobState) -> JobFilter {
    JobFilter { state: Some(state), limit: 100, ..JobFilter::default() }
}

/// Newest first, page by page.
pub async fn jobs_are_listed_newest_first_by_pages<S: Store>(bench: &Bench<S>) {
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.insert(0, bench.new_job().await);
    }
    let page = JobFilter { limit: 2, ..JobFilter::default() };
    assert_eq!(listed(bench, page.clone()).await, jobs[..2]);
    let page = JobFilter { before: Some(jobs[1]), ..page };
    assert_eq!(listed(bench, page.clone()).await, jobs[2..4]);
    let page = JobFilter { before: Some(jobs[3]), ..page };
    assert_eq!(listed(bench, page).await, jobs[4..]);
}

/// By state and by recipe; counts say the same.
pub async fn jobs_are_listed_and_counted_by_state<S: Store>(bench: &Bench<S>) {
    let complete = bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let mut wish = bench.wish().await;
    wish.retry.failures_allowed = 1;
    let failed = bench.submit(&wish).await.job;
    let grant = bench.grant("alice").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    let cancelled = bench.new_job().await;
    let cancel = Cancel { job: cancelled, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("a cancel is taken");
    let running = bench.new_job().await;
    bench.grant("alice").await;
    let mut wish = bench.wish().await;
    wish.spec.recipe = "hls".parse::<RecipeName>().expect("a recipe's name");
    let queued = bench.submit(&wish).await.job;
    let by_state = [
        (JobState::Queued, queued),
        (JobState::Running, running),
        (JobState::Complete, complete),
        (JobState::Failed, failed),
        (JobState::Cancelled, cancelled),
    ];
    for (state, id) in by_state {
        assert_eq!(listed(bench, of_state(state)).await, [id], "{state}");
    }
    let of_recipe = |recipe: &str| JobFilter {
        recipe: Some(recipe.parse().expect("a recipe's name")),
        limit: 100,
        ..JobFilter::default()
    };
    assert_eq!(listed(bench, of_recipe("hls")).await, [queued]);
    assert_eq!(listed(bench, of_recipe("h264-720p")).await.len(), 4);
    let counts = bench.store.query(Query::Counts).await.expect("read");
    assert_eq!(counts, View::Counts(JobState::ALL.map(|state| (state, 1)).into()));
}

/// Held leases, with their renewals.
pub async fn leases_are_listed_as_last_renewed<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    bench.new_job().await;
    let (one, two) = (bench.grant("alice").await, bench.grant("bob").await);
    bench.pass_ms(7_000).await;
    bench.store.run(heartbeat("bob", 1, &[&two])).await.expect("answered");
    bench.pass_ms(1_000).await;
    bench.store.run(heartbeat("bob", 2, &[&two])).await.expect("answered");
    let leases = bench.store.query(Query::Leases).await.expect("read");
    let View::Leases(leases) = leases else { panic!("leases are asked for") };
    let shown: Vec<_> =
        leases.iter().map(|one| (one.token, one.worker.as_str(), one.lease.renewed_at)).collect();
    let granted_at = one.job.attempts[0].granted_at;
    let now = bench.store.now();
    assert_eq!(shown, [(one.pair.token, "alice", granted_at), (two.pair.token, "bob", now)]);
    bench.store.run(bench.complete_of(&one).await).await.expect("it completes");
    let leases = bench.store.query(Query::Leases).await.expect("read");
    assert!(matches!(leases, View::Leases(leases) if leases.len() == 1));
}

async fn journal<S: Store>(bench: &Bench<S>, after: u64, limit: usize) -> Vec<(u64, Event)> {
    match bench.store.query(Query::Events { after, limit }).await {
        Ok(View::Events(entries)) => entries,
        other => panic!("the journal is asked for, but: {other:?}"),
    }
}

/// The journal holds everything in its order, by pages of any size, and each job's part of it.
pub async fn the_journal_is_read_by_pages_and_by_job<S: Store>(bench: &Bench<S>) {
    let mut wishes = Vec::new();
    for _ in 0..7 {
        wishes.push(crate::command::Submit { wish: bench.wish().await, request_id: None });
    }
    // In one call, so that a store which packs entries packs these.
    for answer in bench.store.run_all(wishes).await {
        answer.expect("a wish is taken");
    }
    bench.claim(&bench.claim_of("alice", 4)).await;
    let all = journal(bench, 0, 1_000).await;
    let positions: Vec<_> = all.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());
    assert_eq!(all.len(), 7 + 2 * 4);
    for limit in [1, 3, 100] {
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map_or(0, |(position, _)| *position);
            let page = journal(bench, after, limit).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, all, "pages of {limit}");
    }
    let job = all[2].1.job().expect("all of it is about jobs");
    let own: Vec<_> = all.into_iter().filter(|(_, event)| event.job() == Some(job)).collect();
    let history = bench.store.query(Query::History(job)).await.expect("read");
    assert_eq!(history, View::History(own));
}

/// Listeners hear of every entry, in the journal's order, and only of what was committed.
pub async fn listeners_hear_the_journal<S: Store>(bench: &Bench<S>) {
    let mut changes = bench.store.changes();
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench
        .refused(crate::command::Release { pair: super::bench::never_granted(), job: grant.job.id })
        .await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let journal = journal(bench, 0, 1_000).await;
    let mut heard = Vec::new();
    while heard.len() < journal.len() {
        heard.extend(changes.recv().await.expect("the store is there").iter().cloned());
    }
    assert_eq!(heard, journal.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
    assert!(heard.iter().any(|event| matches!(event.what, What::Refused { .. })));
}

/// What was answered is seen by whoever reads afterwards.
pub async fn a_reader_sees_what_was_answered<S: Store>(bench: &Bench<S>) {
    for _ in 0..50 {
        let id = bench.new_job().await;
        assert_eq!(bench.job(id).await.state, JobState::Queued);
        let grant = bench.grant("alice").await;
        assert_eq!(bench.job(id).await, grant.job);
    }
    let idle = Claim { capabilities: Vec::<Capability>::new(), ..bench.claim_of("bob", 1) };
    assert_eq!(bench.claim(&idle).await.grants, []);
}
