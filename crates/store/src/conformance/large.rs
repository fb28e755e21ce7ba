//! Much of everything at once: what is done with one must be done with hundreds, in one change.

use palisade_core::{
    JobId,
    job::JobState,
    manifest::{Manifest, Output},
    object::Condition,
    retry::RetryPolicy,
    spec::{InputRef, Spec},
    transition::{Which, Wish},
};

use crate::{
    Store, StoreExt,
    command::{Cancel, Complete, Grant, Heartbeat, Publish, PutObject, Submit, Suspect},
    query::{DeliveryFilter, Query, View},
};

use super::{
    bench::{Bench, PAST_TTL_MS, TTL_MS, heartbeat, request, session},
    locks::{hold, wait_for_door},
    outbox::told,
    publications::named,
};

/// How many: above whatever may be fetched by the way.
const MANY: usize = 120;

/// A wish of which nothing may be lost more than once.
fn fragile(wish: Wish) -> Wish {
    Wish { retry: RetryPolicy { losses_allowed: 0, ..wish.retry }, ..wish }
}

/// One job with many submissions, half of them with a name of its own, and whom to tell.
async fn shared<S: Store>(bench: &Bench<S>) -> JobId {
    for id in 1..=3 {
        told(bench, id).await;
    }
    let wish = fragile(bench.wish().await);
    let mut job = None;
    for index in 0..MANY {
        let name = format!("exports/of-{index}");
        let wish = if index % 2 == 0 { named(wish.clone(), &name) } else { wish.clone() };
        job = Some(bench.submit(&wish).await.job);
    }
    job.expect("there are some")
}

/// Leases have lapsed, and no tick has looked yet.
async fn just_past_ttl<S: Store>(bench: &Bench<S>) {
    bench.pass_ms(TTL_MS).await;
    bench.clock.advance_ms(100);
}

/// How many notifications there are for an endpoint.
async fn notices<S: Store>(bench: &Bench<S>) -> usize {
    let endpoint = palisade_core::outbox::EndpointId(2);
    let filter = DeliveryFilter { endpoint, standing: None, before: None, limit: 1_000 };
    match bench.store.query(Query::Deliveries(filter)).await {
        Ok(View::Deliveries(rows)) => rows.len(),
        other => panic!("{other:?}"),
    }
}

/// Each is told, and each name is shown.
pub async fn a_job_that_many_wished_for_completes<S: Store>(bench: &Bench<S>) {
    let id = shared(bench).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    assert_eq!(notices(bench).await, MANY);
    let projected = bench.store.run(Publish { limit: MANY }).await.expect("anybody may");
    assert_eq!(projected.carried_out.len(), MANY / 2);
    assert_eq!(bench.job(id).await.state, JobState::Complete);
}

/// The same where nobody wants it any more.
pub async fn a_job_that_many_wished_for_is_cancelled<S: Store>(bench: &Bench<S>) {
    let job = shared(bench).await;
    let cancel = Cancel { job, which: Which::All, request_id: Some(request("enough")) };
    bench.store.run(cancel).await.expect("it is withdrawn");
    assert_eq!(bench.job(job).await.state, JobState::Cancelled);
    assert_eq!(notices(bench).await, MANY);
}

/// The same where a claim finds out that it was lost too often: the claim goes on to the next job.
pub async fn a_job_that_many_wished_for_is_given_up_by_a_claim<S: Store>(bench: &Bench<S>) {
    let id = shared(bench).await;
    bench.grant("alice").await;
    just_past_ttl(bench).await;
    let next = bench.new_job().await;
    assert_eq!(bench.grant("bob").await.job.id, next);
    assert_eq!(bench.job(id).await.state, JobState::Failed);
    assert_eq!(notices(bench).await, MANY);
}

/// So many jobs, granted to one worker by one claim.
async fn granted<S: Store>(bench: &Bench<S>, wish: impl Fn(Wish, usize) -> Wish) -> Vec<Grant> {
    for index in 0..MANY {
        let wish = wish(bench.wish().await, index);
        bench.submit(&wish).await;
    }
    let claimed = bench.claim(&bench.claim_of("alice", MANY)).await;
    assert_eq!(claimed.grants.len(), MANY);
    claimed.grants
}

/// A worker with many slots asks again for what it was granted.
pub async fn a_claim_of_many_asked_again_returns_them_all<S: Store>(bench: &Bench<S>) {
    for _ in 0..MANY {
        bench.new_job().await;
    }
    let claim = bench.claim_of("alice", MANY);
    let first = bench.claim(&claim).await;
    let again = bench.claim(&claim).await;
    assert_eq!((first.grants.len(), again.grants.len()), (MANY, MANY));
}

/// One heartbeat renews many, and hands back as many that its worker never heard of.
pub async fn a_heartbeat_renews_many_and_hands_many_back<S: Store>(bench: &Bench<S>) {
    let known = granted(bench, |wish, _| wish).await;
    let unknown = granted(bench, |wish, _| wish).await;
    let beat = heartbeat("alice", 1, &known.iter().collect::<Vec<_>>());
    let pauses = known.iter().map(|grant| (grant.job.id, grant.pair, 41_000)).collect();
    let beats = bench.store.run(Heartbeat { pauses, ..beat }).await.expect("answered");
    assert_eq!(beats.leases.iter().flatten().count(), MANY);
    assert_eq!(beats.released.len(), unknown.len());
}

/// A worker with many renders is gone; another takes them all.
pub async fn a_session_with_many_leases_is_suspected<S: Store>(bench: &Bench<S>) {
    granted(bench, |wish, _| wish).await;
    let suspect = Suspect { session: session("alice"), seen_at: bench.store.now() };
    let suspected = bench.store.run(suspect).await.expect("answered");
    assert_eq!(suspected.leases.len(), MANY);
    assert_eq!(bench.claim(&bench.claim_of("bob", MANY)).await.grants.len(), MANY);
}

/// A claim that finds many that were lost too often gives them all up, and gets what is behind.
pub async fn many_lost_jobs_are_given_up_by_one_claim<S: Store>(bench: &Bench<S>) {
    told(bench, 2).await;
    granted(bench, |wish, _| fragile(wish)).await;
    just_past_ttl(bench).await;
    let next = bench.new_job().await;
    assert_eq!(bench.grant("bob").await.job.id, next);
    assert_eq!(notices(bench).await, MANY);
}

/// The same by time alone, where nobody claims.
pub async fn many_lost_jobs_are_given_up_by_one_tick<S: Store>(bench: &Bench<S>) {
    told(bench, 2).await;
    granted(bench, |wish, _| fragile(wish)).await;
    bench.pass_ms(PAST_TTL_MS).await;
    assert_eq!(notices(bench).await, MANY);
}

/// Many jobs, each with a name, complete together.
pub async fn many_publications_are_carried_out_at_once<S: Store>(bench: &Bench<S>) {
    let grants = granted(bench, |wish, index| named(wish, &format!("exports/of-{index}"))).await;
    let mut completes = Vec::new();
    for grant in &grants {
        completes.push(bench.complete_of(grant).await);
    }
    for done in bench.store.run_all(completes).await {
        done.expect("it completes");
    }
    let projected = bench.store.run(Publish { limit: MANY }).await.expect("anybody may");
    assert_eq!(projected.carried_out.len(), MANY);
}

/// A job of many files in and out.
pub async fn a_job_of_many_files_is_kept_and_let_go<S: Store>(bench: &Bench<S>) {
    let (mut inputs, mut outputs) = (std::collections::BTreeMap::new(), Vec::new());
    for index in 0..MANY {
        let (source, content) = (format!("frame {index}"), format!("tile {index}"));
        let input = InputRef {
            digest: bench.bring(&source).await,
            size_bytes: source.len() as u64,
            name: None,
        };
        inputs.insert(format!("frame-{index}").parse().expect("a name"), input);
        outputs.push(Output {
            name: format!("tile-{index}.png").parse().expect("a name"),
            digest: bench.bring(&content).await,
            size_bytes: content.len() as u64,
            media_type: "image/png".to_owned(),
            facts: std::collections::BTreeMap::new(),
        });
    }
    let wish = bench.wish().await;
    let wish = Wish { spec: Spec { inputs, ..wish.spec.clone() }, ..wish };
    let id = bench.submit(&wish).await.job;
    let grant = bench.grant("alice").await;
    let manifest = Manifest { outputs, ..Manifest::default() };
    let complete = Complete { job: id, pair: grant.pair, manifest };
    bench.store.run(complete).await.expect("it completes");
    let let_go = crate::command::ReleaseJobs { jobs: vec![id], keep_ms: 0 };
    bench.pass_ms(1_000).await;
    assert_eq!(bench.store.run(let_go).await.expect("answered").jobs, [id]);
    let again = Submit { wish, request_id: None };
    bench.store.run(again).await.expect("it is kept again, and answered from the cache");
    assert_eq!(bench.job(id).await.state, JobState::Complete);
}

/// Many who wait for a lock are gone at once, and the one behind them is served.
pub async fn many_waiters_that_have_gone_are_passed_over_at_once<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let mut gone = Vec::new();
    for index in 0..MANY {
        gone.push(wait_for_door(bench, &format!("w{index}")).await);
    }
    wait_for_door(bench, "last").await;
    for answer in bench.store.run_all(gone).await {
        answer.expect("answered");
    }
    super::locks::let_go(bench, "door", held).await;
    assert_eq!(super::locks::holder(bench).await.as_deref(), Some("last"));
}

/// One holder writes many objects in one call.
pub async fn a_holder_writes_many_objects<S: Store>(bench: &Bench<S>) {
    let pair = hold(bench, "door", "alice").await;
    let digest = bench.bring("content").await;
    let place = crate::command::Pin::Until(bench.store.now().plus_ms(60_000));
    let begin = crate::command::BeginBlob { digest, pin: place };
    let generation = bench.store.run(begin).await.expect("it is there").generation;
    let put = |index: usize| PutObject {
        key: format!("films/{index}").parse().expect("a key"),
        pair,
        op: 1,
        digest,
        generation,
        media_type: "text/plain".to_owned(),
        condition: Condition::None,
    };
    for written in bench.store.run_all((0..MANY).map(put).collect()).await {
        written.expect("it may");
    }
}
