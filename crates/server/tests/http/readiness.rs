//! What probes and watchers are told while a part of the server's world is away.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use palisade_artefacts::{BlobError, BlobReader, Blobs, ByteRange, Place, Upload, blobs::Listed};
use palisade_store::Failure;
use serde_json::json;

use crate::support::{House, config, gate::Gate, raw, raw::Request};

/// Blobs in a bucket that is away.
#[derive(Debug)]
struct Away {
    /// Says nothing at all, instead of an error.
    is_silent: bool,
}

impl Away {
    async fn nothing<T>(&self) -> Result<T, BlobError> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        let source = std::io::Error::from(std::io::ErrorKind::HostUnreachable).into();
        let (store, what) = ("s3://films".to_owned(), "a blob".to_owned());
        Err(BlobError::Store { store, doing: "reach", what, source })
    }
}

#[async_trait]
impl Blobs for Away {
    async fn begin(&self, _: Option<Place>, _: u64) -> Result<Box<dyn Upload>, BlobError> {
        self.nothing().await
    }

    async fn open(&self, _: Place, _: ByteRange) -> Result<BlobReader, BlobError> {
        self.nothing().await
    }

    async fn size(&self, _: Place) -> Result<Option<u64>, BlobError> {
        self.nothing().await
    }

    async fn delete(&self, _: Place) -> Result<(), BlobError> {
        self.nothing().await
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        self.nothing().await
    }

    fn local_path(&self, _: Place) -> Option<PathBuf> {
        None
    }
}

#[tokio::test]
async fn a_bucket_that_is_away_or_hangs_is_told_and_leaves_the_server_ready() {
    for is_silent in [false, true] {
        let house = House::over(config(), Arc::new(Away { is_silent })).await;
        let answer = raw::ask(&house.server, Request::new("GET", "/readyz")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json(), json!({ "status": "ready", "blobs": "unreachable" }));
        house.client.ready().await.unwrap();
    }
    let house = House::start().await;
    let answer = raw::ask(&house.server, Request::new("GET", "/readyz")).await;
    assert_eq!(answer.json(), json!({ "status": "ready" }));
}

#[tokio::test]
async fn a_store_that_hangs_makes_the_server_unready_in_bounded_time() {
    let (house, gate) = Gate::house(Gate::over).await;
    gate.silence();
    let problem = raw::ask(&house.server, Request::new("GET", "/readyz")).await.problem();
    assert_eq!((problem.status, problem.code.as_str()), (503, "unavailable"));
}

#[tokio::test]
async fn the_process_tells_its_own_figures_while_the_store_is_away() {
    let (house, gate) = Gate::house(Gate::over).await;
    house.until_metric("palisade_store_up", 1).await;
    gate.fail(Some(Failure::Unavailable("no route to the host".to_owned())));
    let answer = raw::ask(&house.server, Request::new("GET", "/metrics")).await;
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("\npalisade_store_up 0\n"), "{text}");
    assert!(text.contains("\npalisade_claims_waiting 0\n"), "{text}");
    assert!(text.contains("palisade_http_requests_total"), "{text}");
    assert!(!text.contains("palisade_jobs") && !text.contains("palisade_leases"), "{text}");
    gate.fail(None);
    gate.silence();
    let answer = raw::ask(&house.server, Request::new("GET", "/metrics")).await;
    assert!(answer.text().contains("\npalisade_store_up 0\n"), "{answer:?}");
}
