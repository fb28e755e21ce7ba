//! A server that stops is polite, and does it in bounded time.

use std::time::Duration;

use palisade_api::{ClientError, wire::SessionEvent};
use palisade_core::Digest;
use palisade_server::ServerConfig;
use tokio::io::AsyncWriteExt;

use crate::support::{House, config, raw, raw::Request};

fn code(ended: Result<impl Sized, ClientError>) -> Option<String> {
    ended.err().and_then(|error| error.code().map(str::to_owned))
}

#[tokio::test]
async fn those_who_wait_are_told_and_streams_end() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    house.grant("s1", "c1").await;
    let (client, id) = (house.client.clone(), job.clone());
    let wait = tokio::spawn(async move { client.wait(&id, Duration::from_mins(1)).await });
    let (client, claim) = (house.client.clone(), house.claim("s2", "c1", 60_000));
    let claim = tokio::spawn(async move { client.claim(&claim).await });
    let mut session = house.client.session("w", "s1").await.unwrap();
    assert_eq!(session.next().await.unwrap(), Some(SessionEvent::Open));
    let mut events = raw::connect(&house.server).await;
    events.write_all(&Request::new("GET", "/v1/events").bytes("localhost")).await.unwrap();
    house.until_waiting(1).await;
    crate::streams::until_waits(&house, &job).await;

    assert!(house.server.stop().await, "nothing was left running");
    assert_eq!(code(wait.await.unwrap()).as_deref(), Some("unavailable"));
    assert_eq!(code(claim.await.unwrap()).as_deref(), Some("unavailable"));
    assert_eq!(session.next().await.unwrap(), None, "the stream ends as a stream does");
    let text = crate::streams::read_to_end(&mut events).await;
    assert!(text.contains("event: granted") && text.ends_with("0\r\n\r\n"), "{text}");
    let after = house.client.job(&job).await.unwrap_err();
    assert!(matches!(after, ClientError::Unreachable { .. }), "{after:?}");
}

#[tokio::test]
async fn a_request_that_runs_is_finished() {
    let house = House::start().await;
    let bytes = vec![9; 100_000];
    let path = format!("/v1/blobs/{}", Digest::of(&bytes));
    let request = Request::new("PUT", &path).body(&bytes).bytes("localhost");
    let mut stream = raw::connect(&house.server).await;
    stream.write_all(&request[..50_000]).await.unwrap();
    crate::support::eventually(|| async {
        let blob = palisade_store::query::Query::Blob(Digest::of(&bytes));
        let view = house.store.query(blob).await.unwrap();
        matches!(view, palisade_store::query::View::Blob(Some(_))).then_some(())
    })
    .await;
    let stop = tokio::spawn(house.server.stop());
    stream.write_all(&request[50_000..]).await.unwrap();
    assert_eq!(raw::read_answer(&mut stream, false).await.status, 200);
    assert!(stop.await.unwrap());
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off() {
    let house =
        House::with(ServerConfig { stop_within: Duration::from_millis(50), ..config() }).await;
    let path = format!("/v1/blobs/{}", Digest::of(b"never"));
    let mut stream = raw::connect(&house.server).await;
    let head = Request::new("PUT", &path).header("content-length", "5");
    stream.write_all(&head.bytes("localhost")).await.unwrap();
    crate::support::eventually(|| async {
        let blob = palisade_store::query::Query::Blob(Digest::of(b"never"));
        let view = house.store.query(blob).await.unwrap();
        matches!(view, palisade_store::query::View::Blob(Some(_))).then_some(())
    })
    .await;
    assert!(!house.server.stop().await);
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let house = House::start().await;
    let taken = ServerConfig { listen: house.server.address(), ..config() };
    let parts = palisade_server::ServerParts {
        store: std::sync::Arc::clone(&house.store),
        blobs: std::sync::Arc::clone(&house.blobs),
        recipes: palisade_core::recipe::RecipeBook::new(),
        entropy: std::sync::Arc::new(palisade_server::SystemEntropy),
    };
    let error = palisade_server::Server::start(taken, parts).await.unwrap_err();
    assert!(error.to_string().contains(&house.server.address().to_string()), "{error}");
}
