//! Notifications: written with the move that they tell of, delivered at least once, in order,
//! nobody held up by another.

use palisade_core::{
    JobId, LeaseId, Number, Tenant,
    history::What,
    outbox::{
        DELAYS_MS, Delivery, Endpoint, EndpointId, EventType, Progress, Secret, Standing,
        TRIES_MAX, Tried,
    },
    transition::Which,
};

use crate::{
    Store, StoreExt,
    command::{
        Cancel, CreateEndpoint, DeleteEndpoint, LeaseDeliveries, LeasedDeliveries, Redeliver,
        RotateSecret, SettleDelivery, Settlement, Submit, TellProgress, ToDeliver,
    },
    query::{DeliveryFilter, Query, View},
};

use super::bench::{Bench, PAST_TTL_MS, failure};

/// A delivery's lease, in ms.
const LEASE_MS: u64 = 20_000;

/// An endpoint of the default tenant that is told of everything.
pub fn endpoint(id: u64) -> Endpoint {
    Endpoint {
        id: EndpointId(id),
        tenant: Tenant::default_tenant(),
        url: format!("https://receiver-{id}.example/"),
        events: EventType::ALL.into(),
        secret: Secret::new([7; 32]),
        previous: None,
        created_at: palisade_core::Timestamp(0),
    }
}

pub(super) async fn told<S: Store>(bench: &Bench<S>, id: u64) -> EndpointId {
    let created = bench.store.run(CreateEndpoint { endpoint: endpoint(id) }).await;
    created.expect("an endpoint is made").id
}

/// An endpoint's rows, oldest first.
async fn rows<S: Store>(bench: &Bench<S>, endpoint: EndpointId) -> Vec<Delivery> {
    let filter = DeliveryFilter { endpoint, standing: None, before: None, limit: 1_000 };
    match bench.store.query(Query::Deliveries(filter)).await {
        Ok(View::Deliveries(rows)) => rows.into_iter().rev().collect(),
        other => panic!("{other:?}"),
    }
}

async fn lease_some<S: Store>(bench: &Bench<S>, room: usize, each: usize) -> LeasedDeliveries {
    let lease_ids = (0..room).map(|_| LeaseId(u128::from(bench.fresh()))).collect();
    let lease = LeaseDeliveries { lease_ids, endpoint_max: each, ttl_ms: LEASE_MS };
    bench.store.run(lease).await.expect("a deliverer is answered")
}

async fn lease<S: Store>(bench: &Bench<S>) -> Vec<ToDeliver> {
    lease_some(bench, 100, 100).await.leased
}

async fn settle<S: Store>(bench: &Bench<S>, of: &ToDeliver, tried: Tried) -> Settlement {
    let (id, lease_id) = (of.delivery.id(), of.lease_id);
    let settle = SettleDelivery { id, lease_id, tried, chance: 0 };
    bench.store.run(settle).await.expect("a settlement is answered")
}

fn failed() -> Tried {
    let error = "connection refused".to_owned();
    Tried::Failed { status: None, error, retry_after_ms: None, gone: false }
}

/// What rows say: submission, event, token.
fn said(rows: &[Delivery]) -> Vec<(Number, EventType, Option<Number>)> {
    let said = rows.iter().map(|row| &row.notice);
    said.map(|notice| (notice.submission, notice.event, notice.token)).collect()
}

/// A job that is complete, by a worker of this name.
async fn completed<S: Store>(bench: &Bench<S>, worker: &str) -> (JobId, Number) {
    bench.new_job().await;
    let grant = bench.grant(worker).await;
    let complete = bench.complete_of(&grant).await;
    bench.store.run(complete).await.expect("it completes");
    (grant.job.id, grant.pair.token)
}

/// Each submission that stands is told once, whoever asked again or came late.
pub async fn a_completion_is_told_to_each_submission_once<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let wish = bench.wish().await;
    let (first, second) = (bench.submit(&wish).await, bench.submit(&wish).await);
    let grant = bench.grant("alice").await;
    let complete = bench.complete_of(&grant).await;
    bench.store.run(complete.clone()).await.expect("it completes");
    bench.store.run(complete).await.expect("it is answered again");
    let rows = rows(bench, hook).await;
    let expected = [first, second]
        .map(|submitted| (submitted.submission, EventType::Completed, Some(grant.pair.token)));
    assert_eq!(said(&rows), expected);
    assert!(rows[0].notice.body.contains(&format!("\"token\":{}", grant.pair.token)));
    assert_ne!(rows[0].id(), rows[1].id());
}

/// The story: A is stopped, B completes, A wakes. One notification, with B's token.
pub async fn a_late_completion_adds_no_notification<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    bench.new_job().await;
    let alice = bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let bob = bench.grant("bob").await;
    let early = bench.complete_with(&alice, "alice's").await;
    bench.refused(early).await;
    assert_eq!(rows(bench, hook).await, [], "alice is refused before bob is done");
    bench.store.run(bench.complete_of(&bob).await).await.expect("bob completes");
    let late = bench.complete_with(&alice, "alice's").await;
    bench.refused(late).await;
    let rows = rows(bench, hook).await;
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(rows[0].notice.token, Some(bob.pair.token));
}

/// A wish that a finished job answers is told at once, and alone.
pub async fn a_cached_answer_is_told_at_once<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let wish = bench.wish().await;
    bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let request_id = Some(super::bench::request("again"));
    let again = Submit { wish: wish.clone(), request_id };
    let cached = bench.store.run(again.clone()).await.expect("it is taken");
    bench.store.run(again).await.expect("it is answered again");
    let rows = rows(bench, hook).await;
    let token = Some(grant.pair.token);
    assert_eq!(said(&rows)[1..], [(cached.submission, EventType::Completed, token)]);
    assert!(rows[1].notice.seq > rows[0].notice.seq, "what comes later has the higher seq");
}

/// Failures and cancellations are told; requeues are not; each later move has the higher seq.
pub async fn failures_and_cancellations_are_told_in_their_order<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let job = bench.new_job().await;
    let grant = bench.grant("alice").await;
    let kind = palisade_core::job::FailureKind::Final;
    let mut fail = Bench::<S>::fail_of(&grant);
    bench.store.run(Bench::<S>::release_of(&grant)).await.expect("it is handed back");
    let grant = bench.grant("alice").await;
    (fail.pair, fail.failure) = (grant.pair, failure("bad_input", kind));
    bench.store.run(fail).await.expect("it fails");
    let retry = crate::command::Retry { job, submission: None, request_id: None };
    bench.store.run(retry).await.expect("it is retried");
    let cancel = Cancel { job, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("it is cancelled");
    let rows = rows(bench, hook).await;
    let number = job.0;
    let token = Some(grant.pair.token);
    let expected = [(number, EventType::Failed, token), (number, EventType::Cancelled, None)];
    assert_eq!(said(&rows), expected);
    assert!(rows[0].notice.seq < rows[1].notice.seq);
}

/// A job that killed its workers is told when a tick or a claim gives it up.
pub async fn a_job_given_up_is_told<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let mut wish = bench.wish().await;
    wish.retry.losses_allowed = 0;
    bench.submit(&wish).await;
    bench.grant("alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    assert!(bench.try_grant("bob").await.is_none());
    let events: Vec<_> = rows(bench, hook).await.into_iter().map(|row| row.notice.event).collect();
    assert_eq!(events, [EventType::Failed]);
}

/// Only what was asked for, and only of the tenant's own jobs.
pub async fn an_endpoint_hears_what_it_asked_for_of_its_tenant<S: Store>(bench: &Bench<S>) {
    let deaf = Endpoint { events: [EventType::Failed].into(), ..endpoint(1) };
    let other = Endpoint { tenant: "other".parse().expect("a tenant"), ..endpoint(2) };
    for endpoint in [deaf, other] {
        bench.store.run(CreateEndpoint { endpoint }).await.expect("it is made");
    }
    let hook = told(bench, 3).await;
    completed(bench, "alice").await;
    assert_eq!(rows(bench, EndpointId(1)).await, []);
    assert_eq!(rows(bench, EndpointId(2)).await, []);
    assert_eq!(rows(bench, hook).await.len(), 1);
}

/// Taken once, it is over, and the journal says so.
pub async fn a_delivery_is_leased_to_one_and_settled_once<S: Store>(bench: &Bench<S>) {
    told(bench, 1).await;
    let (job, _) = completed(bench, "alice").await;
    let leased = lease(bench).await;
    let [one] = leased.as_slice() else { panic!("one is due: {leased:?}") };
    assert_eq!(lease(bench).await, [], "nobody else gets it meanwhile");
    assert_eq!(settle(bench, one, Tried::Taken).await, Settlement::Recorded);
    assert_eq!(settle(bench, one, failed()).await, Settlement::Ignored);
    assert_eq!(lease(bench).await, []);
    let Ok(View::History(history)) = bench.store.query(Query::History(job)).await else {
        panic!("it has a history");
    };
    let told = history.iter().filter(
        |(_, event)| matches!(&event.what, What::NotificationDelivered(fate) if fate.tries == 1),
    );
    assert_eq!(told.count(), 1);
}

/// A deliverer that was paused: what it sent is sent again, the same, and its word is ignored.
pub async fn a_lapsed_delivery_is_made_again_the_same<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    completed(bench, "alice").await;
    let first = lease(bench).await.remove(0);
    bench.pass_ms(LEASE_MS + 1).await;
    let second = lease(bench).await.remove(0);
    assert_eq!(second.delivery.id(), first.delivery.id());
    assert_eq!(second.delivery.notice, first.delivery.notice);
    assert_eq!(settle(bench, &first, failed()).await, Settlement::Ignored);
    assert_eq!(settle(bench, &second, Tried::Taken).await, Settlement::Recorded);
    assert_eq!(settle(bench, &first, Tried::Taken).await, Settlement::Ignored);
    assert_eq!(rows(bench, hook).await[0].standing, Standing::Delivered);
}

/// Later news of a job waits for the earlier; another job's does not.
pub async fn what_is_later_of_a_job_waits_for_what_is_earlier<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let wish = bench.wish().await;
    bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    bench.submit(&wish).await;
    let (other, _) = completed(bench, "bob").await;
    let mine = grant.job.id;
    let leased = lease(bench).await;
    let jobs: Vec<_> = leased.iter().map(|one| one.delivery.notice.job).collect();
    assert_eq!(jobs, [mine, other], "the second of mine waits");
    assert_eq!(settle(bench, &leased[0], failed()).await, Settlement::Recorded);
    assert_eq!(lease(bench).await, [], "also while the first waits for its next try");
    let next_at = lease_some(bench, 1, 1).await.next_at.expect("there is a next try");
    let due_at = rows(bench, hook).await[0].due_at;
    assert!(next_at <= due_at, "{next_at:?} {due_at:?}");
    bench.pass_ms(DELAYS_MS[0]).await;
    let first = lease(bench).await.remove(0);
    assert_eq!(first.delivery.id(), leased[0].delivery.id());
    settle(bench, &first, Tried::Taken).await;
    let second = lease(bench).await.remove(0);
    assert_eq!(second.delivery.notice.job, mine);
    assert!(second.delivery.notice.seq > first.delivery.notice.seq);
}

/// A dead letter makes way for its successors, and comes back when it is asked for, the same.
pub async fn a_dead_letter_blocks_nobody_and_can_be_asked_for_again<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let wish = bench.wish().await;
    bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    bench.submit(&wish).await;
    let gone = Tried::Failed {
        status: Some(410),
        error: "410 Gone".to_owned(),
        retry_after_ms: None,
        gone: true,
    };
    let first = lease(bench).await.remove(0);
    settle(bench, &first, gone).await;
    let second = lease(bench).await.remove(0);
    assert_ne!(second.delivery.id(), first.delivery.id());
    let id = first.delivery.id();
    let again = bench.store.run(Redeliver { id }).await.expect("it is there");
    assert_eq!((again.standing, again.tries), (Standing::Pending, 0));
    let third = lease(bench).await.remove(0);
    assert_eq!(third.delivery.id(), id);
    assert_eq!(third.delivery.notice, first.delivery.notice);
    let while_tried = bench.store.run(Redeliver { id }).await.expect("it is there");
    assert!(matches!(while_tried.standing, Standing::Leased(_)), "it is left alone");
    settle(bench, &third, Tried::Taken).await;
    assert_eq!(rows(bench, hook).await[0].standing, Standing::Delivered);
    let nobody = Redeliver { id: palisade_core::outbox::EventId { endpoint: EndpointId(9), ..id } };
    assert_eq!(bench.refused(nobody).await.code(), "not_found");
}

/// However many rows a dead receiver has, and however long it takes, others are served.
pub async fn a_dead_endpoint_does_not_hold_up_another<S: Store>(bench: &Bench<S>) {
    told(bench, 1).await;
    for _ in 0..6 {
        completed(bench, "alice").await;
    }
    let well = told(bench, 2).await;
    completed(bench, "alice").await;
    let leased = lease_some(bench, 4, 3).await.leased;
    let to: Vec<_> = leased.iter().map(|one| one.endpoint.id.0).collect();
    assert_eq!(to.iter().filter(|id| **id == 2).count(), 1, "{to:?}");
    assert_eq!(to.len(), 4, "the rest of the room is used: {to:?}");
    let more = lease_some(bench, 4, 3).await.leased;
    assert_eq!(more, [], "no more than three at once: the fourth waits until one is settled");
    for one in &leased {
        let tried = if one.endpoint.id == well { Tried::Taken } else { failed() };
        settle(bench, one, tried).await;
    }
    completed(bench, "alice").await;
    let to: Vec<_> =
        lease_some(bench, 4, 3).await.leased.into_iter().map(|d| d.endpoint.id.0).collect();
    assert!(to.contains(&2), "{to:?}");
}

/// Deliverers that never come back use up a row's tries.
pub async fn a_notification_that_kills_its_deliverers_is_given_up<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    completed(bench, "alice").await;
    for _ in 0..TRIES_MAX {
        assert_eq!(lease(bench).await.len(), 1);
        bench.pass_ms(LEASE_MS + 1).await;
    }
    assert_eq!(lease(bench).await, []);
    assert_eq!(rows(bench, hook).await[0].standing, Standing::Dead);
}

/// An endpoint's address is one endpoint; a secret is replaced; what is removed is gone.
pub async fn endpoints_are_made_rotated_and_removed<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    let twice = CreateEndpoint { endpoint: Endpoint { id: EndpointId(9), ..endpoint(1) } };
    assert_eq!(bench.refused(twice).await.code(), "invalid");
    completed(bench, "alice").await;
    let secret = Secret::new([8; 32]);
    let rotate = RotateSecret { endpoint: hook, secret, keep_ms: 1_000 };
    bench.store.run(rotate).await.expect("it is rotated");
    let leased = lease(bench).await.remove(0);
    let now = bench.store.now();
    assert_eq!(leased.endpoint.secrets(now), [secret, Secret::new([7; 32])]);
    bench.store.run(DeleteEndpoint { endpoint: hook }).await.expect("it is removed");
    assert_eq!(settle(bench, &leased, Tried::Taken).await, Settlement::Ignored);
    assert_eq!(rows(bench, hook).await, []);
    assert_eq!(bench.store.query(Query::Endpoints).await, Ok(View::Endpoints(Vec::new())));
    completed(bench, "alice").await;
    assert_eq!(lease(bench).await, []);
    let again = DeleteEndpoint { endpoint: hook };
    assert_eq!(bench.refused(again).await.code(), "not_found");
}

/// Listings go by pages and by standing.
pub async fn notifications_are_listed_newest_first_by_pages<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    for _ in 0..5 {
        completed(bench, "alice").await;
    }
    let first = lease_some(bench, 1, 1).await.leased.remove(0);
    settle(bench, &first, Tried::Taken).await;
    let all = rows(bench, hook).await;
    let page = async |standing, before, limit| {
        let filter = DeliveryFilter { endpoint: hook, standing, before, limit };
        match bench.store.query(Query::Deliveries(filter)).await {
            Ok(View::Deliveries(rows)) => rows.into_iter().map(|row| row.number).collect(),
            other => panic!("{other:?}"),
        }
    };
    let numbers: Vec<_> = all.iter().rev().map(|row| row.number).collect();
    let newest: Vec<Number> = page(None, None, 2).await;
    assert_eq!(newest, numbers[..2]);
    let rest: Vec<Number> = page(None, Some(newest[1]), 10).await;
    assert_eq!(rest, numbers[2..]);
    let delivered: Vec<Number> = page(Some("delivered"), None, 10).await;
    assert_eq!(delivered, [first.delivery.number]);
}

/// Progress is told while its attempt is open, with a seq below the end's.
pub async fn progress_is_told_before_the_end_and_never_after<S: Store>(bench: &Bench<S>) {
    let hook = told(bench, 1).await;
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let came = Progress { share: Some(0.5), ..Progress::default() };
    let tell = TellProgress { renders: vec![(grant.job.id, grant.pair, came)] };
    let notices = bench.store.run(tell.clone()).await.expect("it is answered").notices;
    let [(to, number, body)] = notices.as_slice() else { panic!("one submission: {notices:?}") };
    assert_eq!(to.id, hook);
    assert!(body.contains("\"share\":0.5"), "{body}");
    assert_eq!(rows(bench, hook).await, [], "no row is written");
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
    let end = rows(bench, hook).await.remove(0);
    assert!(end.notice.seq > *number);
    let stranger = super::bench::never_granted();
    for (job, pair) in [(grant.job.id, grant.pair), (grant.job.id, stranger)] {
        let late = TellProgress { renders: vec![(job, pair, came)] };
        assert_eq!(bench.store.run(late).await.expect("it is answered").notices, []);
    }
}
