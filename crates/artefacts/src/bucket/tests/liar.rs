//! A server that takes every condition for met, as some that speak S3 do, and one that answers
//! conditions with "not implemented". Neither may hold registers, and both are told by name.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};

use crate::{
    Location,
    bucket::{Bucket, ProveError},
    location::OpenError,
    register::probe::{Lie, ProbeError},
};

/// What it keeps: each object, and how often it was written.
type Objects = Arc<Mutex<BTreeMap<String, (u64, Bytes)>>>;

/// What a server does with a condition.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Habit {
    Ignores,
    Refuses,
    /// Looks first, and writes later.
    LooksFirst,
}

async fn answer(State((objects, habit)): State<(Objects, Habit)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let conditions = ["if-none-match", "if-match"];
    let condition = conditions.iter().find_map(|name| parts.headers.get(*name));
    match parts.method {
        Method::PUT => {
            if condition.is_some() && habit == Habit::Refuses {
                return StatusCode::NOT_IMPLEMENTED.into_response();
            }
            let bytes = axum::body::to_bytes(body, 1 << 20).await.expect("small");
            let etag = |writes: u64| format!("\"{writes}\"");
            let met = match (parts.headers.get("if-match"), condition) {
                (_, None) => true,
                (Some(wanted), _) => {
                    let there = objects.lock().expect("unbroken").get(&path).map(|one| one.0);
                    there.is_some_and(|writes| *wanted == etag(writes))
                }
                (None, Some(_)) => !objects.lock().expect("unbroken").contains_key(&path),
            };
            if habit == Habit::LooksFirst {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                if !met {
                    return StatusCode::PRECONDITION_FAILED.into_response();
                }
            }
            let mut objects = objects.lock().expect("unbroken");
            let writes = objects.get(&path).map_or(1, |one| one.0 + 1);
            objects.insert(path, (writes, bytes));
            (StatusCode::OK, [("etag", etag(writes))]).into_response()
        }
        Method::GET | Method::HEAD if parts.uri.query().is_none() => {
            match objects.lock().expect("unbroken").get(&path).cloned() {
                None => StatusCode::NOT_FOUND.into_response(),
                Some((writes, bytes)) => {
                    let modified = "Wed, 01 Jan 2025 00:00:00 GMT".to_owned();
                    let headers = [("etag", format!("\"{writes}\"")), ("last-modified", modified)];
                    (StatusCode::OK, headers, bytes).into_response()
                }
            }
        }
        Method::DELETE => {
            objects.lock().expect("unbroken").remove(&path);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => {
            let nothing = "<ListBucketResult><Name>tests</Name><KeyCount>0</KeyCount>\
                           <IsTruncated>false</IsTruncated></ListBucketResult>";
            (StatusCode::OK, nothing).into_response()
        }
    }
}

async fn location_of(habit: Habit) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(answer).with_state((Objects::default(), habit));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("s3://tests/films?endpoint=http://{address}&allow_http=true&skip_signature=true")
}

async fn refused(habit: Habit) -> OpenError {
    let location: Location = location_of(habit).await.parse().expect("an address");
    location.open_proven(&[], 7).await.expect_err("it must not be used")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_ignores_conditions_is_refused_by_name_with_what_it_did() {
    for habit in [Habit::Ignores, Habit::LooksFirst] {
        let error = refused(habit).await;
        let OpenError::Proof(ProveError::Conditions(ProbeError::Liar { store, lie })) = &error
        else {
            panic!("{habit:?} got {error:?}")
        };
        assert!(store.contains("tests"), "it is named: {store}");
        assert!(matches!(lie, Lie::RacingCreates { winners: 2.., .. }), "{habit:?}: {lie:?}");
        let text = error.to_string();
        assert!(text.contains("were told that they had"), "it says what it did: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_without_conditions_is_not_called_a_liar_and_serves_when_that_is_declared() {
    let error = refused(Habit::Refuses).await;
    let OpenError::Proof(ProveError::Conditions(ProbeError::Inconclusive { .. })) = &error else {
        panic!("{error:?}")
    };
    assert!(error.to_string().contains("?conditional=off"), "it says what can be done: {error}");
    let declared = format!("{}&conditional=off", location_of(Habit::Refuses).await);
    let location: Location = declared.parse().expect("an address");
    let opened = location.open_proven(&[], 7).await.expect("it writes, reads and deletes");
    let is_conditional = opened.bucket.as_ref().map(|bucket: &Bucket| bucket.is_conditional);
    assert_eq!(is_conditional, Some(false));
}
