//! What an operator is told of a bucket that cannot be used: each kind by itself, in one line, and
//! no advice that gives a guarantee away where nothing was found out about conditions.

use std::sync::Arc;

use axum::{Router, http::StatusCode};
use object_store::{RetryConfig, aws::AmazonS3Builder, path::Path};

use crate::{
    Location,
    bucket::{Bucket, ProveError, TroubleKind},
    location::OpenError,
};

/// The address of a server that gives one answer to everything.
async fn answering(status: StatusCode, body: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(move || async move { (status, body) });
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn told(error: &ProveError, expected: TroubleKind) -> String {
    let ProveError::Unusable { trouble, .. } = error else { panic!("{error:?}") };
    assert_eq!(trouble.kind, expected, "{error}");
    let line = palisade_core::with_causes(error);
    assert!(!line.contains("conditional"), "{line}");
    assert!(!line.contains('\n') && !line.contains('<'), "one line, no document: {line}");
    line
}

async fn refused(settings: &str) -> ProveError {
    let text = format!("s3://films/exports?region=eu-central-1&{settings}");
    let location: Location = text.parse().expect("an address");
    let secrets = [("AWS_ACCESS_KEY_ID", "tests"), ("AWS_SECRET_ACCESS_KEY", "of-tests")];
    let environment = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
    match location.open_proven(&environment, 7).await {
        Err(OpenError::Proof(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn keys_and_buckets_that_are_not_there_are_told_apart() {
    let body = "<?xml version=\"1.0\"?>\n<Error>\n <Code>InvalidAccessKeyId</Code>\n \
                <Message>The key does not exist.</Message>\n</Error>";
    let url = answering(StatusCode::FORBIDDEN, body).await;
    let error = refused(&format!("endpoint={url}&allow_http=true")).await;
    let line = told(&error, TroubleKind::Refused);
    assert!(line.contains("s3://films/exports refused the keys"), "{line}");
    assert!(line.contains("InvalidAccessKeyId: The key does not exist."), "{line}");
    assert_eq!(line.matches("InvalidAccessKeyId").count(), 1, "{line}");

    let body = "<Error>\n<Code>NoSuchBucket</Code><Message>None such</Message></Error>";
    let url = answering(StatusCode::NOT_FOUND, body).await;
    let error = refused(&format!("endpoint={url}&allow_http=true")).await;
    let line = told(&error, TroubleKind::NoBucket);
    assert!(line.contains("does not exist; make it") && line.contains("NoSuchBucket"), "{line}");
    assert!(!error.is_away());
}

#[tokio::test]
async fn plain_http_has_to_be_allowed_and_the_message_says_how() {
    let url = answering(StatusCode::OK, "").await;
    let line = told(&refused(&format!("endpoint={url}")).await, TroubleKind::PlainHttp);
    assert!(line.contains("allow_http=true"), "{line}");
}

#[tokio::test]
async fn a_store_that_refuses_connections_or_is_broken_is_away() {
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let broken = answering(StatusCode::SERVICE_UNAVAILABLE, "").await;
    crate::bucket::open::choose_tls();
    for url in [closed, broken] {
        // Without the repeats, which take their time.
        let store = AmazonS3Builder::new()
            .with_bucket_name("films")
            .with_endpoint(url)
            .with_allow_http(true)
            .with_skip_signature(true)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .build()
            .expect("a client");
        let bucket = Bucket::over("s3://films", Arc::new(store), Path::default());
        let error = bucket.prove(7).await.expect_err("nobody is there");
        assert!(error.is_away(), "{error}");
        let line = told(&error, TroubleKind::Unreachable);
        assert!(line.contains("s3://films cannot be reached"), "{line}");
    }
}
