//! Each route's good path, as a worker and a submitter walk it.

use std::time::Duration;

use palisade_api::wire::LeaseStatus;
use palisade_core::Digest;

use crate::support::{House, beat, complete_of, raw};

#[tokio::test]
async fn a_job_goes_from_its_submission_to_its_output() {
    let house = House::start().await;
    let submitted = house.submit(b"film").await;
    assert!(!submitted.deduplicated && !submitted.cached);
    assert_eq!(house.state(&submitted.job).await, "queued");

    let grant = house.grant("s1", "c1").await;
    assert_eq!(grant.job, submitted.job);
    assert_eq!((grant.attempt, grant.waited_ms, grant.ttl_ms), (1, 0, 30_000));
    assert_eq!(grant.parameters["crf"], "23");
    assert_eq!(grant.inputs["source"].digest, Digest::of(b"film").to_string());

    let beat = beat("s1", 1, &[&grant]);
    let answer = house.client.heartbeat(&beat, Duration::from_secs(5)).await.unwrap();
    assert_eq!(answer.leases[0].status, LeaseStatus::Held);

    house.finish(&grant, b"the copy").await;
    let job = house.client.wait(&submitted.job, Duration::from_secs(30)).await.unwrap();
    assert_eq!(job.state, "complete");
    assert_eq!(job.completion.unwrap().token, grant.token);

    let path = format!("/v1/jobs/{}/outputs/copy.mp4", submitted.job);
    let answer = raw::ask(&house.server, raw::Request::new("GET", &path)).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"the copy".as_slice()));
    assert_eq!(answer.headers["content-type"], "video/mp4");
    assert_eq!(answer.headers["content-disposition"], "inline; filename=\"copy.mp4\"");
}

#[tokio::test]
async fn a_verb_repeated_by_its_author_gets_the_same_answer() {
    let house = House::start().await;
    let wish = palisade_api::wire::SubmitRequest {
        request_id: Some("r1".to_owned()),
        ..house.wish(b"film").await
    };
    let first = house.client.submit(&wish).await.unwrap();
    assert_eq!(house.client.submit(&wish).await.unwrap(), first);

    let grant = house.grant("s1", "c1").await;
    assert_eq!(house.grant("s1", "c1").await.token, grant.token);

    house.finish(&grant, b"the copy").await;
    let complete = complete_of(&grant, b"the copy");
    let again = house.client.complete(&grant.job, &complete).await.unwrap();
    assert_eq!(again.completed_by, grant.token);
    assert!(!again.manifest_differs);
}
