//! Blobs that go past the server: downloads are sent on to where they live, workers write there.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use palisade_api::wire::{ArtefactsView, FinishRequest, PinRequest, PinResponse};
use palisade_artefacts::{
    BlobError, BlobReader, Blobs, ByteRange, MemoryBlobs, Place, Shown, Upload, blobs::Listed,
    write,
};
use palisade_core::{Digest, Number};
use palisade_server::ServerConfig;

use crate::support::{House, config, raw, raw::Request};

/// Blobs in memory that sign addresses, or fail to.
#[derive(Debug)]
struct Signing {
    inner: MemoryBlobs,
    signs: bool,
}

#[async_trait]
impl Blobs for Signing {
    async fn begin(&self, at: Option<Place>, max: u64) -> Result<Box<dyn Upload>, BlobError> {
        self.inner.begin(at, max).await
    }

    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError> {
        self.inner.open(place, range).await
    }

    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        self.inner.size(place).await
    }

    async fn delete(&self, place: Place) -> Result<(), BlobError> {
        self.inner.delete(place).await
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        self.inner.list().await
    }

    fn local_path(&self, _: Place) -> Option<PathBuf> {
        None
    }

    async fn presigned(
        &self,
        place: Place,
        shown: Shown<'_>,
        ttl: Duration,
    ) -> Result<Option<String>, BlobError> {
        if !self.signs {
            return Err(BlobError::NotFound(place));
        }
        let Shown { media_type, .. } = shown;
        Ok(Some(format!("https://store/{place}?ttl={}&type={media_type}", ttl.as_secs())))
    }
}

async fn house(signs: bool, more: ServerConfig) -> House {
    House::over(more, Arc::new(Signing { inner: MemoryBlobs::new(), signs })).await
}

fn get(path: &str) -> Request {
    Request::new("GET", path)
}

#[tokio::test]
async fn a_download_is_sent_on_to_where_the_blob_lives() {
    let house = house(true, config()).await;
    house.put(b"a film", &[]).await;
    let digest = Digest::of(b"a film");
    let path = format!("/v1/blobs/{digest}");
    for range in [None, Some("bytes=0-2")] {
        let request = range.map_or(get(&path), |range| get(&path).header("range", range));
        let answer = raw::ask(&house.server, request).await;
        assert_eq!(answer.status, 307, "{answer:?}");
        let address = &answer.headers["location"];
        assert!(address.starts_with(&format!("https://store/{digest}/")), "{address}");
        assert!(address.contains("ttl=300"), "{address}");
        assert_eq!(answer.headers["cache-control"], "private, no-store");
    }
}

#[tokio::test]
async fn what_needs_no_bytes_and_what_was_asked_of_the_server_is_answered_by_the_server() {
    let house = house(true, config()).await;
    house.put(b"a film", &[]).await;
    let digest = Digest::of(b"a film");
    let path = format!("/v1/blobs/{digest}");
    let head = raw::ask(&house.server, Request::new("HEAD", &path)).await;
    assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "6"));
    let known = get(&path).header("if-none-match", &format!("\"{digest}\""));
    assert_eq!(raw::ask(&house.server, known).await.status, 304);
    let beyond = get(&path).header("range", "bytes=6-");
    assert_eq!(raw::ask(&house.server, beyond).await.status, 416);
    let missing = get(&format!("/v1/blobs/{}", Digest::of(b"never")));
    assert_eq!(raw::ask(&house.server, missing).await.status, 404);
    let through = raw::ask(&house.server, get(&format!("{path}?redirect=no"))).await;
    assert_eq!((through.status, through.text().as_str()), (200, "a film"));
    let wrong = raw::ask(&house.server, get(&format!("{path}?redirect=maybe"))).await.problem();
    assert_eq!((wrong.status, wrong.code.as_str()), (422, "invalid"));
    assert!(wrong.detail.contains("yes or no"), "{wrong:?}");
}

#[tokio::test]
async fn bytes_are_sent_through_when_no_address_can_be_signed_or_none_is_wanted() {
    for (signs, presign) in [(false, Some(Duration::from_mins(1))), (true, None)] {
        let house = house(signs, ServerConfig { presign, ..config() }).await;
        house.put(b"a film", &[]).await;
        let path = format!("/v1/blobs/{}", Digest::of(b"a film"));
        let answer = raw::ask(&house.server, get(&path)).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "a film"));
    }
}

async fn pin(house: &House, digest: Digest) -> PinResponse {
    let body = serde_json::to_string(&PinRequest::default()).unwrap();
    let path = format!("/v1/blobs/{digest}/pin");
    let answer = raw::ask(&house.server, Request::json(&path, &body)).await;
    serde_json::from_str(&answer.text()).expect("an answer")
}

async fn finish(house: &House, digest: Digest, generation: u64, size_bytes: u64) -> raw::Answer {
    let body = serde_json::to_string(&FinishRequest { generation, size_bytes }).unwrap();
    let path = format!("/v1/blobs/{digest}/finish");
    raw::ask(&house.server, Request::json(&path, &body)).await
}

#[tokio::test]
async fn a_worker_that_sees_the_place_writes_there_and_says_so() {
    let url = "s3://films/exports".to_owned();
    let house = house(true, ServerConfig { artefacts: Some(url.clone()), ..config() }).await;
    let told = raw::ask(&house.server, get("/v1/artefacts")).await;
    let told: ArtefactsView = serde_json::from_str(&told.text()).expect("an answer");
    assert_eq!(told, ArtefactsView { url: Some(url), presign_ms: Some(300_000) });

    let digest = Digest::of(b"rendered");
    let begun = pin(&house, digest).await;
    let generation = begun.generation.expect("it is not there, so a place is named");
    let early = finish(&house, digest, generation, 8).await.problem();
    assert_eq!((early.status, early.code.as_str()), (422, "missing_blob"), "nothing is there yet");
    let place = Place::new(digest, Number::new(generation).unwrap());
    write(house.blobs.as_ref(), place, 100, &b"rendered"[..]).await.expect("written");
    let wrong = finish(&house, digest, generation, 7).await.problem();
    assert_eq!((wrong.status, wrong.code.as_str()), (422, "invalid"));
    assert!(wrong.detail.contains("size_bytes"), "{wrong:?}");
    for _ in 0..2 {
        assert_eq!(finish(&house, digest, generation, 8).await.status, 200, "asked again, too");
    }
    assert_eq!(pin(&house, digest).await.generation, None, "it is there");
    let through = format!("/v1/blobs/{digest}?redirect=no");
    assert_eq!(raw::ask(&house.server, get(&through)).await.text(), "rendered");

    let other = Place::new(digest, place.generation.next());
    write(house.blobs.as_ref(), other, 100, &b"rendered"[..]).await.expect("written");
    let stale = finish(&house, digest, other.generation.get(), 8).await.problem();
    assert_eq!(stale.code, "stale_generation");
}

#[tokio::test]
async fn a_server_that_keeps_its_place_to_itself_takes_nobodys_word() {
    let house = House::start().await;
    let digest = Digest::of(b"rendered");
    let generation = pin(&house, digest).await.generation.expect("a place");
    let place = Place::new(digest, Number::new(generation).unwrap());
    write(house.blobs.as_ref(), place, 100, &b"rendered"[..]).await.expect("written");
    assert_eq!(finish(&house, digest, generation, 8).await.status, 404);
    assert_eq!(pin(&house, digest).await.generation, Some(generation), "still not there");
}
