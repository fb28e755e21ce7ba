//! Claims that wait: woken by what is committed, in order, and never leaving a grant behind.

use std::time::Duration;

use palisade_api::wire::{ClaimRequest, ClaimResponse, FailRequest, ReleaseRequest};
use palisade_core::transition::Which;
use palisade_store::{StoreExt, command::Cancel};
use tokio::{io::AsyncWriteExt, task::JoinHandle};

use crate::support::{House, beat, eventually, gate::Gate, raw};

const LONG_MS: u64 = 60_000;

/// A claim that waits, on a task of its own.
fn waiting(house: &House, claim: ClaimRequest) -> JoinHandle<ClaimResponse> {
    let client = house.client.clone();
    tokio::spawn(async move { client.claim(&claim).await.unwrap() })
}

#[tokio::test]
async fn a_waiting_claim_is_woken_by_a_submission() {
    let house = House::start().await;
    let claim = waiting(&house, house.claim("s1", "c1", LONG_MS));
    house.until_waiting(1).await;
    house.clock.advance(700);
    let job = house.submit(b"film").await.job;
    let [grant] = claim.await.unwrap().grants.try_into().unwrap();
    assert_eq!(grant.job, job);
    assert_eq!(grant.waited_ms, 700, "counted on the clock that grants");
}

#[tokio::test]
async fn a_claim_answers_with_nothing_when_its_time_is_over() {
    let house = House::start().await;
    let claimed = house.client.claim(&house.claim("s1", "c1", 30)).await.unwrap();
    assert!(claimed.grants.is_empty() && claimed.lost.is_empty());
    house.until_waiting(0).await;
}

#[tokio::test]
async fn those_who_came_first_are_served_first() {
    let house = House::start().await;
    let mut claims = Vec::new();
    for number in 1..=3 {
        claims.push(waiting(&house, house.claim(&format!("s{number}"), "c1", LONG_MS)));
        house.until_waiting(number).await;
    }
    for (number, claim) in claims.into_iter().enumerate() {
        let job = house.submit(format!("film {number}").as_bytes()).await.job;
        assert_eq!(claim.await.unwrap().grants[0].job, job);
    }
}

#[tokio::test]
async fn a_claim_for_other_recipes_does_not_stand_in_the_way() {
    let house = House::start().await;
    let mut other = house.claim("s1", "c1", LONG_MS);
    other.recipes[0].recipe = "other".to_owned();
    let other = waiting(&house, other);
    house.until_waiting(1).await;
    let fitting = waiting(&house, house.claim("s2", "c1", LONG_MS));
    house.until_waiting(2).await;
    house.submit(b"film").await;
    assert_eq!(fitting.await.unwrap().grants.len(), 1);
    other.abort();
}

#[tokio::test]
async fn a_waiting_claim_is_woken_when_a_job_is_given_back_or_its_holder_is_lost() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let first = house.grant("s1", "c1").await;
    let second = waiting(&house, house.claim("s2", "c1", LONG_MS));
    house.until_waiting(1).await;
    let release = ReleaseRequest { token: first.token, lease: first.lease };
    house.client.release(&job, &release).await.unwrap();
    let [second] = second.await.unwrap().grants.try_into().unwrap();
    assert!(second.token > first.token);

    // Nobody renews it: time alone brings it back, and the timer is set to that very instant.
    let third = waiting(&house, house.claim("s3", "c1", LONG_MS));
    house.until_waiting(1).await;
    house.clock.advance(30_031);
    let [third] = third.await.unwrap().grants.try_into().unwrap();
    assert_eq!((third.job, third.attempt), (job, 3));
}

#[tokio::test]
async fn a_waiting_claim_is_woken_when_a_backoff_ends() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    let fail = FailRequest {
        token: grant.token,
        lease: grant.lease,
        reason: "tool_failed".to_owned(),
        message: "no".to_owned(),
        is_final: false,
    };
    let requeued = house.client.fail(&job, &fail).await.unwrap();
    let claim = waiting(&house, house.claim("s1", "c2", LONG_MS));
    house.until_waiting(1).await;
    house.clock.advance(requeued.run_at_ms.unwrap() - house.store.now().0);
    assert_eq!(claim.await.unwrap().grants[0].job, job);
}

#[tokio::test]
async fn several_jobs_that_lapse_at_once_go_to_several_waiters() {
    let house = House::start().await;
    for number in 0..3 {
        house.submit(format!("film {number}").as_bytes()).await;
    }
    let mut claim = house.claim("gone", "c1", 0);
    claim.max_jobs = Some(3);
    assert_eq!(house.client.claim(&claim).await.unwrap().grants.len(), 3);
    let claims: Vec<_> = (0..3)
        .map(|number| waiting(&house, house.claim(&format!("s{number}"), "c1", LONG_MS)))
        .collect();
    house.until_waiting(3).await;
    house.clock.advance(30_031);
    for claim in claims {
        assert_eq!(claim.await.unwrap().grants.len(), 1);
    }
}

#[tokio::test]
async fn a_short_lease_granted_while_others_wait_wakes_one_of_them_when_it_ends() {
    let house = House::start().await;
    let mut short = house.claim("s1", "c1", LONG_MS);
    short.ttl_ms = Some(1_000);
    let first = waiting(&house, short);
    house.until_waiting(1).await;
    let second = waiting(&house, house.claim("s2", "c1", LONG_MS));
    house.until_waiting(2).await;
    house.submit(b"film").await;
    assert_eq!(first.await.unwrap().grants.len(), 1);
    house.until_waiting(1).await;
    // The second has not asked since: it was told of the grant, and of when it would end.
    house.clock.advance(1_002);
    assert_eq!(second.await.unwrap().grants[0].attempt, 2);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_gets_nothing() {
    let house = House::start().await;
    let mut stream = raw::connect(&house.server).await;
    let claim = serde_json::to_string(&house.claim("s1", "c1", LONG_MS)).unwrap();
    let request = raw::Request::json("/v1/claims", &claim);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    house.until_waiting(1).await;
    drop(stream);
    house.until_waiting(0).await;
    let job = house.submit(b"film").await.job;
    assert_eq!(house.client.job(&job).await.unwrap().attempts.len(), 0);
}

#[tokio::test]
async fn a_reply_that_was_lost_is_given_again() {
    let house = House::start().await;
    house.submit(b"film").await;
    house.submit(b"another").await;
    let claim = house.claim("s1", "c1", 0);
    let first = house.client.claim(&claim).await.unwrap();
    let again = house.client.claim(&claim).await.unwrap();
    assert_eq!(first.grants[0].token, again.grants[0].token);
    assert_eq!(again.grants.len(), 1, "nothing new is granted");

    let grant = &first.grants[0];
    let release = ReleaseRequest { token: grant.token, lease: grant.lease.clone() };
    house.client.release(&grant.job, &release).await.unwrap();
    let after = house.client.claim(&claim).await.unwrap();
    assert!(after.grants.is_empty());
    assert_eq!(after.lost[0].token, grant.token);
}

#[tokio::test]
async fn a_second_connection_takes_over_the_wait() {
    let house = House::start().await;
    let client = house.client.clone();
    let claim = house.claim("s1", "c1", LONG_MS);
    let first = tokio::spawn(async move { client.claim(&claim).await });
    house.until_waiting(1).await;
    let second = waiting(&house, house.claim("s1", "c1", LONG_MS));
    let ended = first.await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Some("unknown"), "{ended}");
    house.submit(b"film").await;
    assert_eq!(second.await.unwrap().grants.len(), 1);
}

#[tokio::test]
async fn a_grant_whose_claim_the_worker_does_not_know_of_is_handed_back_by_its_heartbeat() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    let answer = house.client.heartbeat(&beat("s1", 1, &[]), Duration::from_secs(9)).await.unwrap();
    assert_eq!(answer.released[0].token, grant.token);
    assert_eq!(house.state(&job).await, "queued");
}

#[tokio::test]
async fn a_heartbeat_tells_lost_and_cancelled_and_unknown_apart() {
    let house = House::start().await;
    let lost = house.submit(b"one").await.job;
    let first = house.grant("s1", "c1").await;
    house.clock.advance(30_031);
    let second = house.grant("s2", "c1").await;
    house.finish(&second, b"out").await;
    let cancelled = house.submit(b"two").await.job;
    let third = house.grant("s1", "c2").await;
    house.store.run(cancel_all(&cancelled)).await.unwrap();
    let mut stranger = third.clone();
    stranger.lease = "0".repeat(32);

    let beat = beat("s1", 1, &[&first, &third, &stranger]);
    let answer = house.client.heartbeat(&beat, Duration::from_secs(9)).await.unwrap();
    let json = serde_json::to_value(&answer.leases).unwrap();
    assert_eq!(json[0]["status"], "lost");
    assert_eq!(json[0]["reason"], "superseded");
    assert_eq!(json[0]["completed_by"], second.token);
    assert_eq!(json[0]["job"], lost);
    assert_eq!(json[1]["status"], "cancelled");
    assert_eq!(json[2]["status"], "unknown_token");
}

fn cancel_all(job: &str) -> Cancel {
    Cancel { job: job.parse().unwrap(), which: Which::All, request_id: None }
}

/// A store that is slow to answer one claim: the moment between its commit and its answer.
#[tokio::test]
async fn a_grant_committed_after_its_client_hung_up_goes_back_at_once() {
    let (house, gate) = Gate::house(Gate::over).await;
    let job = house.submit(b"film").await.job;
    gate.hold();
    let mut stream = raw::connect(&house.server).await;
    let claim = serde_json::to_string(&house.claim("s1", "c1", LONG_MS)).unwrap();
    let request = raw::Request::json("/v1/claims", &claim);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    gate.until_held(1).await;
    drop(stream);
    house.until_waiting(0).await;
    assert_eq!(house.state(&job).await, "running", "it is granted, to nobody who is there");
    gate.open();
    let attempts = eventually(|| async {
        let job = house.client.job(&job).await.unwrap();
        (job.state == "queued").then_some(job.attempts)
    })
    .await;
    assert_eq!((attempts.len(), attempts[0].outcome.as_str()), (1, "released"));
}

/// The same, but its client has come back on another connection before the first is answered:
/// what is handed back must not be what the second connection is given.
#[tokio::test]
async fn a_grant_whose_wait_was_taken_over_is_not_handed_back() {
    let (house, gate) = Gate::house(Gate::over).await;
    let job = house.submit(b"film").await.job;
    gate.hold();
    let mut stream = raw::connect(&house.server).await;
    let claim = serde_json::to_string(&house.claim("s1", "c1", LONG_MS)).unwrap();
    let request = raw::Request::json("/v1/claims", &claim);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    gate.until_held(1).await;
    let second = waiting(&house, house.claim("s1", "c1", LONG_MS));
    gate.until_held(2).await;
    drop(stream);
    house.until_waiting(1).await;
    gate.open();
    let [grant] = second.await.unwrap().grants.try_into().unwrap();
    let beat = beat("s1", 1, &[&grant]);
    let answer = house.client.heartbeat(&beat, Duration::from_secs(9)).await.unwrap();
    assert_eq!(serde_json::to_value(answer.leases[0].status).unwrap(), "held");
    assert_eq!(house.client.job(&job).await.unwrap().attempts.len(), 1);
}
