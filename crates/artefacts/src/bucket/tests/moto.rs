//! S3, by moto, whose conditional writes are atomic.

use std::sync::Arc;

use object_store::{ObjectStoreExt as _, path::Path};

use super::{
    LONG_AGO, OfServer, fresh_prefix, large_blobs_go_in_parts, servers::ObjectServer,
    signed_addresses_bring_the_bytes, without_conditions,
};
use crate::{Blobs, Location, bucket::Bucket};

struct S3 {
    server: ObjectServer,
}

impl S3 {
    async fn start() -> Option<Self> {
        let server = ObjectServer::moto()?;
        crate::bucket::open::choose_tls();
        let made = reqwest::Client::new().put(format!("{}/tests", server.url())).send().await;
        assert!(made.expect("an answer").status().is_success(), "the bucket is made");
        Some(Self { server })
    }

    async fn bucket(&self, more: &str) -> Bucket {
        let (prefix, url) = (fresh_prefix(), self.server.url());
        let text = format!("s3://tests/{prefix}?endpoint={url}&allow_http=true{more}");
        let location: Location = text.parse().expect("an address");
        let secrets = [("AWS_ACCESS_KEY_ID", "tests"), ("AWS_SECRET_ACCESS_KEY", "of-tests")];
        let environment = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        location.open(&environment).await.expect("a client").bucket.expect("a bucket")
    }

    async fn bench(&self) -> OfServer {
        OfServer::new(self.bucket("").await)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_passes_the_suite_of_blobs() {
    let Some(s3) = S3::start().await else { return };
    crate::blob_conformance!(all => s3.bench());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_passes_the_suite_of_registers() {
    let Some(s3) = S3::start().await else { return };
    crate::register_conformance!(all => async { s3.bench().await.cells() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s3_takes_large_blobs_signs_addresses_and_is_proven() {
    let Some(s3) = S3::start().await else { return };
    s3.bucket("").await.prove(1).await.expect("it does what it says");
    large_blobs_go_in_parts(&s3.bench().await).await;
    signed_addresses_bring_the_bytes(&s3.bench().await, true).await;
    without_conditions(s3.bucket("&conditional=off").await).await;
}

/// A server that died in the middle of an upload left it there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unfinished_uploads_of_the_dead_are_swept_when_they_are_old() {
    let Some(s3) = S3::start().await else { return };
    let (bench, neighbour) = (s3.bench().await, s3.bench().await);
    let mut kept = Vec::new();
    for one in [&bench, &neighbour] {
        for name in ["a/1", "b/2"] {
            let blobs = one.bucket.prefix.clone().join("blobs");
            let path = Path::from(format!("{blobs}/{name}"));
            kept.push(one.bucket.store.put_multipart(&path).await.expect("begun"));
        }
    }
    let listed = |one: &OfServer| {
        let uploads = Arc::clone(one.bucket.uploads.as_ref().expect("S3 has to be asked"));
        let prefix = one.bucket.prefix.clone().join("blobs");
        async move { uploads.list(&prefix).await.expect("a list").len() }
    };
    assert_eq!((listed(&bench).await, listed(&neighbour).await), (2, 2));
    assert_eq!(bench.blobs.sweep(LONG_AGO).await.expect("swept"), 0, "the young are left alone");
    let later = palisade_core::Timestamp(u64::MAX);
    assert_eq!(bench.blobs.sweep(later).await.expect("swept"), 2);
    assert_eq!((listed(&bench).await, listed(&neighbour).await), (0, 2), "and the neighbour's");
    drop(kept);
}
