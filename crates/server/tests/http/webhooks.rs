//! Notifications over real HTTP: what comes, when it comes again, and where it never goes.

use std::time::Duration;

use palisade_api::{
    ClientError,
    wire::{
        CancelRequest, DeliveryView, ProgressRequest, ProgressView, ProgressWire, RotateRequest,
        WebhookRequest, WebhookView,
    },
};
use palisade_core::outbox::DELAYS_MS;
use palisade_server::{AllowedAddresses, ServerConfig};
use serde_json::json;

use crate::support::{
    House, complete_of, config, eventually,
    receiver::{Came, Receiver},
};

fn open() -> ServerConfig {
    ServerConfig {
        webhook_addresses: AllowedAddresses { all: true, networks: Vec::new() },
        progress_every: Duration::from_millis(20),
        ..config()
    }
}

async fn added(house: &House, url: String, events: &[&str]) -> WebhookView {
    let events = events.iter().map(|&event| event.to_owned()).collect();
    let wish = WebhookRequest { url, events, tenant: None };
    house.client.add_webhook(&wish).await.unwrap()
}

async fn rows(house: &House, hook: &WebhookView) -> Vec<DeliveryView> {
    house.client.deliveries(&hook.id, "").await.unwrap().deliveries
}

/// Waits until a webhook's newest notification stands so.
async fn until_state(house: &House, hook: &WebhookView, state: &str) -> DeliveryView {
    eventually(async || rows(house, hook).await.into_iter().next().filter(|row| row.state == state))
        .await
}

async fn completed(house: &House, bytes: &[u8]) -> String {
    house.submit(bytes).await;
    let grant = house.grant("s1", &format!("claim-{}", bytes.len())).await;
    house.finish(&grant, bytes).await;
    grant.job
}

#[tokio::test]
async fn a_completion_arrives_signed_with_the_token_that_did_it() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let hook = added(&house, receiver.url(), &[]).await;
    let submitted = house.submit(b"film").await;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"out").await;
    let came = receiver.until(1).await.remove(0);
    let body = came.json();
    assert_eq!(body["type"], "job.completed");
    assert_eq!(body["data"]["job"], json!(submitted.job));
    assert_eq!(body["data"]["submission"], json!(submitted.submission));
    assert_eq!(body["data"]["token"], json!(grant.token));
    assert_eq!(came.path, "/hook");
    assert_eq!(came.headers["content-type"], "application/json");
    let row = until_state(&house, &hook, "delivered").await;
    assert_eq!(row.id, came.id());
    assert_eq!(body["data"]["seq"], json!(row.seq));
    assert!(verifies(&came, hook.secret.as_deref().unwrap()), "{came:?}");
    assert!(!verifies(&came, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
    let history = house.client.history(&grant.job).await.unwrap();
    let told = history.events.iter().any(|entry| {
        serde_json::to_value(&entry.event).unwrap()["event"] == "notification_delivered"
    });
    assert!(told, "{history:?}");
}

/// Checks a signature by other means than those that made it.
fn verifies(came: &Came, secret: &str) -> bool {
    let script = "import base64, hashlib, hmac, sys\n\
        key = base64.b64decode(sys.argv[1].removeprefix('whsec_'))\n\
        signed = f'{sys.argv[2]}.{sys.argv[3]}.{sys.argv[4]}'.encode()\n\
        mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()\n\
        sys.exit(0 if f'v1,{mac}' in sys.argv[5].split(' ') else 1)";
    let header = |name: &str| came.headers[name].as_str();
    let (timestamp, signature) = (header("webhook-timestamp"), header("webhook-signature"));
    #[expect(clippy::disallowed_methods, reason = "a tool that knows nothing of the server")]
    let status = std::process::Command::new("python3")
        .args(["-c", script, secret, came.id(), timestamp, &came.body, signature])
        .status()
        .unwrap();
    status.success()
}

#[tokio::test]
async fn a_worker_that_was_paused_adds_no_notification() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let hook = added(&house, receiver.url(), &[]).await;
    house.submit(b"film").await;
    let alice = house.grant("alice", "a").await;
    house.clock.advance(31_000);
    let bob = house.grant("bob", "b").await;
    house.finish(&bob, b"out").await;
    house.put(b"alice's", &[]).await;
    let late = house.client.complete(&alice.job, &complete_of(&alice, b"alice's")).await;
    assert_eq!(late.unwrap_err().code(), Some("stale_token"));
    let came = receiver.until(1).await;
    until_state(&house, &hook, "delivered").await;
    assert_eq!(came[0].json()["data"]["token"], json!(bob.token));
    assert_eq!(rows(&house, &hook).await.len(), 1);
    assert_eq!(receiver.came().len(), 1);
}

#[tokio::test]
async fn what_fails_comes_again_the_same_and_its_successor_waits() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    receiver.answer(&[(503, &[("retry-after", "60".to_owned())]), (200, &[])]);
    let hook = added(&house, receiver.url(), &[]).await;
    completed(&house, b"film").await;
    let row = until_state(&house, &hook, "pending").await;
    eventually(async || rows(&house, &hook).await[0].last_status).await;
    let cached = house.submit(b"film").await;
    assert!(rows(&house, &hook).await[1].last_error.as_ref().unwrap().contains("503"));
    house.clock.advance(DELAYS_MS[0] * 2);
    house.client.redeliver(&rows(&house, &hook).await[0].id).await.unwrap();
    assert_eq!(receiver.came().len(), 1, "the receiver asked to be left alone for a minute");
    house.clock.advance(60_000);
    // Anything that happens makes the deliverer look at the clock again.
    house.client.redeliver(&row.id).await.unwrap();
    let came = receiver.until(3).await;
    assert_eq!((came[0].id(), &came[0].body), (came[1].id(), &came[1].body));
    assert_eq!(came[2].json()["data"]["submission"], json!(cached.submission));
    let seq = |came: &Came| came.json()["data"]["seq"].as_u64().unwrap();
    assert!(seq(&came[1]) < seq(&came[2]));
}

#[tokio::test]
async fn an_endpoint_that_never_answers_does_not_hold_up_another() {
    let config = ServerConfig { webhook_within: Duration::from_mins(10), ..open() };
    let house = House::with(config).await;
    let (silent, well) = (Receiver::start().await, Receiver::start().await);
    silent.hold();
    added(&house, silent.url(), &[]).await;
    added(&house, well.url(), &[]).await;
    for length in 1..8 {
        completed(&house, &vec![7; length]).await;
    }
    well.until(7).await;
    assert_eq!(silent.until(4).await.len(), 4, "no more than so many at once");
    silent.let_go();
    silent.until(7).await;
}

#[tokio::test]
async fn a_receiver_cannot_send_the_server_elsewhere() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let elsewhere = Receiver::start().await;
    receiver.answer(&[(307, &[("location", elsewhere.url())])]);
    let hook = added(&house, receiver.url(), &[]).await;
    completed(&house, b"film").await;
    receiver.until(1).await;
    eventually(async || rows(&house, &hook).await[0].last_status.filter(|s| *s == 307)).await;
    assert!(elsewhere.came().is_empty());
}

#[tokio::test]
async fn one_that_has_gone_is_a_dead_letter_and_comes_back_when_asked_for() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    receiver.answer(&[(410, &[]), (200, &[])]);
    let hook = added(&house, receiver.url(), &[]).await;
    completed(&house, b"film").await;
    let dead = until_state(&house, &hook, "dead").await;
    assert_eq!((dead.last_status, dead.tries), (Some(410), 1));
    house.client.redeliver(&dead.id).await.unwrap();
    let came = receiver.until(2).await;
    assert_eq!((came[0].id(), &came[0].body), (came[1].id(), &came[1].body));
    until_state(&house, &hook, "delivered").await;
}

#[tokio::test]
async fn addresses_of_this_network_are_refused_when_they_are_added_and_when_they_are_looked_up() {
    let (house, receiver) = (House::start().await, Receiver::start().await);
    for url in [
        receiver.url(),
        format!("http://2130706433:{}/", receiver.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:10.0.0.1]/".to_owned(),
        "http://user@1.1.1.1/".to_owned(),
        "ftp://1.1.1.1/".to_owned(),
    ] {
        let wish = WebhookRequest { url: url.clone(), ..WebhookRequest::default() };
        let refused = house.client.add_webhook(&wish).await.unwrap_err();
        let ClientError::Refused(problem) = refused else { panic!("{refused:?}") };
        assert_eq!((problem.status, problem.facts["field"].as_str()), (422, Some("url")), "{url}");
    }
    // A name says nothing of where it leads until it is looked up.
    let named = format!("http://localhost:{}/hook", receiver.port());
    let hook = added(&house, named, &[]).await;
    completed(&house, b"film").await;
    let error = eventually(async || rows(&house, &hook).await[0].last_error.clone()).await;
    assert!(error.contains("is not a public address"), "{error}");
    assert!(receiver.came().is_empty());
}

#[tokio::test]
async fn a_network_that_the_operator_allows_is_reached_by_name_and_by_address() {
    let networks = vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    let webhook_addresses = AllowedAddresses { all: false, networks };
    let house = House::with(ServerConfig { webhook_addresses, ..config() }).await;
    let receiver = Receiver::start().await;
    added(&house, format!("http://localhost:{}/name", receiver.port()), &[]).await;
    added(&house, receiver.url(), &[]).await;
    completed(&house, b"film").await;
    let mut paths: Vec<_> = receiver.until(2).await.into_iter().map(|came| came.path).collect();
    paths.sort();
    assert_eq!(paths, ["/hook", "/name"]);
}

#[tokio::test]
async fn secrets_are_shown_once_and_after_a_rotation_both_sign() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let hook = added(&house, receiver.url(), &[]).await;
    let first = hook.secret.clone().unwrap();
    assert!(first.starts_with("whsec_") && first.len() == 6 + 44, "{first}");
    let rotated = house.client.rotate_webhook(&hook.id, &RotateRequest::default()).await.unwrap();
    let second = rotated.secret.unwrap();
    assert_ne!(first, second);
    assert!(house.client.webhook(&hook.id).await.unwrap().secret.is_none());
    let listed = house.client.webhooks().await.unwrap().webhooks;
    assert!(listed.len() == 1 && listed[0].secret.is_none(), "{listed:?}");
    completed(&house, b"film").await;
    let came = receiver.until(1).await.remove(0);
    assert!(verifies(&came, &first) && verifies(&came, &second), "{came:?}");
    let too_long = RotateRequest { keep_ms: Some(u64::MAX) };
    let refused = house.client.rotate_webhook(&hook.id, &too_long).await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid"));
}

#[tokio::test]
async fn a_removed_webhook_is_told_nothing_more() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let hook = added(&house, receiver.url(), &[]).await;
    let twice = house
        .client
        .add_webhook(&WebhookRequest { url: receiver.url(), ..WebhookRequest::default() })
        .await;
    assert_eq!(twice.unwrap_err().code(), Some("invalid"));
    house.client.remove_webhook(&hook.id).await.unwrap();
    for gone in [
        house.client.remove_webhook(&hook.id).await.unwrap_err(),
        house.client.webhook(&hook.id).await.unwrap_err(),
        house.client.deliveries(&hook.id, "").await.unwrap_err(),
    ] {
        assert_eq!(gone.code(), Some("not_found"));
    }
    let other = added(&house, receiver.url(), &["job.completed"]).await;
    completed(&house, b"film").await;
    let came = receiver.until(1).await;
    assert_eq!(rows(&house, &other).await[0].id, came[0].id());
}

#[tokio::test]
async fn progress_is_told_to_those_who_ask_with_a_seq_below_the_ends() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    let quiet = Receiver::start().await;
    added(&house, receiver.url(), &["job.progress", "job.completed"]).await;
    added(&house, quiet.url(), &[]).await;
    house.submit(b"film").await;
    let grant = house.grant("s1", "c1").await;
    let render = ProgressWire {
        job: grant.job.clone(),
        token: grant.token,
        lease: grant.lease.clone(),
        progress: ProgressView { share: Some(0.25), speed: None, left_ms: None },
    };
    let told = ProgressRequest { session: "s1".to_owned(), renders: vec![render] };
    house.client.progress(&told).await.unwrap();
    receiver.until(1).await;
    house.finish(&grant, b"out").await;
    // Told too late: nobody hears of it.
    house.client.progress(&told).await.unwrap();
    let came = receiver.until(2).await;
    let types: Vec<_> = came.iter().map(|came| came.json()["type"].clone()).collect();
    assert_eq!(types, ["job.progress", "job.completed"]);
    assert_eq!(came[0].json()["data"]["progress"], json!({ "share": 0.25 }));
    let seq = |came: &Came| came.json()["data"]["seq"].as_u64().unwrap();
    assert!(seq(&came[0]) < seq(&came[1]));
    assert_eq!(quiet.until(1).await[0].json()["type"], "job.completed");
}

#[tokio::test]
async fn failures_and_cancellations_are_told() {
    let (house, receiver) = (House::with(open()).await, Receiver::start().await);
    added(&house, receiver.url(), &[]).await;
    let job = house.submit(b"film").await.job;
    let cancel = CancelRequest { all: true, ..CancelRequest::default() };
    house.client.cancel(&job, &cancel).await.unwrap();
    let came = receiver.until(1).await.remove(0);
    assert_eq!(came.json()["type"], "job.cancelled");
    assert_eq!(came.json()["data"]["token"], json!(null));
}
