//! Publications over HTTP: what a name shows, to whom it may be given, and what is told of it.

use palisade_api::wire::{
    AcquireRequest, CancelRequest, CompleteRequest, JobView, PublicationView, SubmitRequest,
    SubmitResponse,
};
use palisade_core::{
    Digest,
    manifest::{Manifest, Output},
};

use crate::support::{House, pin_headers, raw, raw::Request};

const NAME: &str = "exports/holiday";

async fn submit(house: &House, film: &[u8], name: &str) -> SubmitResponse {
    let wish = SubmitRequest { publish: Some(name.to_owned()), ..house.wish(film).await };
    house.client.submit(&wish).await.unwrap()
}

/// Completes whatever is queued with a folder of these files.
async fn render(house: &House, request_id: &str, files: &[(&str, &str)]) {
    let grant = house.grant("s1", request_id).await;
    let mut outputs = Vec::new();
    for (name, text) in files {
        house.put(text.as_bytes(), &pin_headers(&grant)).await;
        outputs.push(Output {
            name: name.parse().unwrap(),
            digest: Digest::of(text.as_bytes()),
            size_bytes: text.len() as u64,
            media_type: "video/mp2t".to_owned(),
            facts: std::collections::BTreeMap::new(),
        });
    }
    let manifest = Manifest { outputs, ..Manifest::default() };
    let complete = CompleteRequest { token: grant.token, lease: grant.lease.clone(), manifest };
    house.client.complete(&grant.job, &complete).await.unwrap();
}

/// The job once it is over and published.
async fn over(house: &House, job: &str) -> JobView {
    house.client.wait(job, std::time::Duration::from_mins(1)).await.unwrap()
}

async fn publication(house: &House, submitted: &SubmitResponse) -> PublicationView {
    let job = over(house, &submitted.job).await;
    let mut submissions = job.submissions.into_iter();
    let submission = submissions.find(|one| one.number == submitted.submission).unwrap();
    submission.publication.unwrap()
}

async fn get(house: &House, path: &str) -> raw::Answer {
    raw::ask(&house.server, Request::new("GET", &format!("/v1/objects/{path}"))).await
}

#[tokio::test]
async fn a_published_folder_is_read_through_its_name() {
    let house = House::start().await;
    let submitted = submit(&house, b"film", NAME).await;
    assert_eq!(get(&house, NAME).await.status, 404);
    render(&house, "c1", &[("index.m3u8", "the list"), ("media/0.ts", "0123456789")]).await;
    let told = publication(&house, &submitted).await;
    assert_eq!((told.key.as_str(), told.state.as_str()), (NAME, "published"));
    let version = told.version.unwrap();

    let manifest = get(&house, NAME).await;
    assert_eq!(manifest.headers["content-type"], "application/vnd.palisade.manifest+json");
    assert_eq!(manifest.headers["fencing-token"], submitted.submission.to_string());
    assert_eq!(manifest.headers["fencing-fence"], submitted.submission.to_string());
    assert_eq!(manifest.headers["palisade-job"], submitted.job);
    assert_eq!(manifest.headers["etag"], format!("\"{version}\""));
    assert_eq!(manifest.json()["outputs"][1]["name"], "media/0.ts");

    let file = get(&house, "exports/holiday/media/0.ts").await;
    assert_eq!((file.status, file.text().as_str()), (200, "0123456789"));
    assert_eq!(file.headers["content-type"], "video/mp2t");
    assert_eq!(file.headers["etag"], manifest.headers["etag"], "one version, one tag");
    let stays = file.headers["content-location"].clone();
    assert_eq!(raw::ask(&house.server, Request::new("GET", &stays)).await.text(), "0123456789");
    let path = "/v1/objects/exports/holiday/media/0.ts";
    let part = Request::new("GET", path).header("range", "bytes=2-4");
    let part = raw::ask(&house.server, part).await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let known = Request::new("GET", path).header("if-none-match", &file.headers["etag"]);
    assert_eq!(raw::ask(&house.server, known).await.status, 304);
    let head = raw::ask(&house.server, Request::new("HEAD", path)).await;
    assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "10"));
    let part = Request::new("GET", &format!("/v1/objects/{NAME}")).header("range", "bytes=0-0");
    assert_eq!(raw::ask(&house.server, part).await.text(), "{");
    for path in
        ["exports/holiday/media", "exports/holiday/media/1.ts", "exports/holidays", "exports"]
    {
        assert_eq!(get(&house, path).await.status, 404, "{path}");
    }
    let list = raw::ask(&house.server, Request::new("GET", "/v1/objects")).await.json();
    assert_eq!(list["objects"][0]["job"], submitted.job);
    assert_eq!(list["objects"][0]["media_type"], "application/vnd.palisade.manifest+json");
    let told = house.client.history(&submitted.job).await.unwrap();
    let told: Vec<_> = told.events.iter().map(|one| one.event.what.to_string()).collect();
    assert!(told.iter().any(|line| line.contains("was published as exports/holiday")), "{told:?}");
}

#[tokio::test]
async fn a_newer_export_replaces_the_whole_folder_and_an_older_one_nothing() {
    let house = House::start().await;
    let old = submit(&house, b"old film", NAME).await;
    let claimed_first = house.grant("s1", "c1").await;
    let new = submit(&house, b"new film", NAME).await;
    render(&house, "c2", &[("index.m3u8", "new list"), ("0.ts", "new segment")]).await;
    assert_eq!(publication(&house, &new).await.state, "published");
    let before = get(&house, "exports/holiday/index.m3u8").await;

    house.finish(&claimed_first, b"old bytes").await;
    let late = publication(&house, &old).await;
    assert_eq!((late.state.as_str(), late.fence), ("superseded", Some(new.submission)));
    assert_eq!(get(&house, "exports/holiday/0.ts").await.text(), "new segment");
    assert_eq!(get(&house, "exports/holiday/copy.mp4").await.status, 404);

    // Asked for again, it is the newest wish, and is answered from what is there.
    let again = submit(&house, b"old film", NAME).await;
    assert!(again.cached && again.job == old.job);
    assert_eq!(publication(&house, &again).await.state, "published");
    assert_eq!(get(&house, "exports/holiday/copy.mp4").await.text(), "old bytes");
    assert_eq!(
        get(&house, "exports/holiday/0.ts").await.status,
        404,
        "nothing of the other is left"
    );
    // Whoever goes on reading the version it began with is told.
    let same = Request::new("GET", "/v1/objects/exports/holiday/copy.mp4")
        .header("if-match", &before.headers["etag"]);
    let refused = raw::ask(&house.server, same).await.problem();
    assert_eq!((refused.status, refused.code.as_str()), (412, "condition_failed"));
    let stays = raw::ask(&house.server, Request::new("GET", &before.headers["content-location"]));
    assert_eq!(stays.await.text(), "new list");
}

#[tokio::test]
async fn a_withdrawn_wish_is_not_published_and_a_published_one_stays() {
    let house = House::start().await;
    let kept = submit(&house, b"film", "kept").await;
    let withdrawn = submit(&house, b"film", "withdrawn").await;
    let cancel =
        CancelRequest { submission: Some(withdrawn.submission), ..CancelRequest::default() };
    house.client.cancel(&withdrawn.job, &cancel).await.unwrap();
    render(&house, "c1", &[("copy.mp4", "film")]).await;
    assert_eq!(publication(&house, &kept).await.state, "published");
    assert_eq!(publication(&house, &withdrawn).await.state, "withdrawn");
    assert_eq!(get(&house, "withdrawn").await.status, 404);
    let all = CancelRequest { all: true, ..CancelRequest::default() };
    house.client.cancel(&kept.job, &all).await.unwrap();
    assert_eq!(publication(&house, &kept).await.state, "published");
    assert_eq!(get(&house, "kept/copy.mp4").await.text(), "film");
}

#[tokio::test]
async fn submissions_numbers_are_refused_from_outside() {
    let house = House::start().await;
    let submitted = submit(&house, b"film", NAME).await;
    render(&house, "c1", &[("copy.mp4", "film")]).await;
    publication(&house, &submitted).await;
    let wish = AcquireRequest {
        holder: "alice".to_owned(),
        ttl_ms: Some(5_000),
        wait_ms: 0,
        request_id: None,
    };
    let held = house.client.acquire_lock("door", &wish).await.unwrap();
    for (token, status, code) in
        [(held.token, 409, "wrong_kind"), (submitted.submission, 422, "unknown_token")]
    {
        let put = Request::new("PUT", &format!("/v1/objects/{NAME}"))
            .header("fencing-token", &token.to_string())
            .header("fencing-lease", &held.lease);
        let refused = raw::ask(&house.server, put.body(b"x")).await.problem();
        assert_eq!((refused.status, refused.code.as_str()), (status, code));
    }
    assert_eq!(get(&house, "exports/holiday/copy.mp4").await.text(), "film");
}

#[tokio::test]
async fn a_name_that_cannot_be_is_refused_with_the_wish() {
    let house = House::start().await;
    for name in ["", "../up", "/etc", "a//b", "a b", "trailing/"] {
        let wish = SubmitRequest { publish: Some(name.to_owned()), ..house.wish(b"film").await };
        let body = serde_json::to_string(&wish).unwrap();
        let refused = raw::ask(&house.server, Request::json("/v1/jobs", &body)).await.problem();
        assert_eq!((refused.status, &refused.facts["field"]), (422, &"publish".into()), "{name}");
    }
}

#[tokio::test]
async fn what_was_due_when_the_server_ended_is_published_when_it_starts() {
    let house = House::start().await;
    let submitted = submit(&house, b"film", NAME).await;
    let grant = house.grant("s1", "c1").await;
    let House { server, clock, store, blobs, .. } = house;
    // The worker's complete comes through another server of the same store, which ends at once.
    drop(server);
    let bytes = b"film out";
    let digest = Digest::of(bytes);
    let mut upload = blobs.begin(None, 1_000).await.unwrap();
    upload.write(bytes.to_vec().into()).await.unwrap();
    let staged = upload.finish().await.unwrap();
    let job = grant.job.parse().unwrap();
    let pair = palisade_core::lease::Pair {
        token: palisade_core::Number::new(grant.token).unwrap(),
        lease_id: grant.lease.parse().unwrap(),
    };
    {
        use palisade_store::{
            StoreExt,
            command::{BeginBlob, Complete, FinishBlob, Pin},
        };
        let begun = store.run(BeginBlob { digest, pin: Pin::Attempt(job, pair) }).await.unwrap();
        staged.place(begun.generation).await.unwrap();
        let (generation, size_bytes) = (begun.generation, bytes.len() as u64);
        store.run(FinishBlob { digest, generation, size_bytes }).await.unwrap();
        let manifest = crate::support::complete_of(&grant, bytes).manifest;
        store.run(Complete { job, pair, manifest }).await.unwrap();
    }
    let house = House::of(crate::support::config(), store, blobs, clock).await;
    assert_eq!(publication(&house, &submitted).await.state, "published");
    assert_eq!(get(&house, "exports/holiday/copy.mp4").await.text(), "film out");
}
