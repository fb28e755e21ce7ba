//! Waiting for a job, and the journal as a stream.

use std::time::Duration;

use palisade_api::wire::CancelRequest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{House, raw, raw::Request};

/// Waits until a wait for this job has been let in: requests on one connection are answered in
/// their order, so a metric of waits would tell, and so does a short wait of our own.
pub(crate) async fn until_waits(house: &House, job: &str) {
    house.client.wait(job, Duration::from_millis(50)).await.unwrap();
}

pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Reads until the text is there.
async fn read_until(stream: &mut TcpStream, text: &mut String, wanted: &str) {
    let mut buffer = [0; 4096];
    while !text.contains(wanted) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "it ended without {wanted:?}: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

async fn events(house: &House, request: Request) -> TcpStream {
    let mut stream = raw::connect(&house.server).await;
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    stream
}

#[tokio::test]
async fn a_wait_ends_when_the_job_is_over() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let (client, id) = (house.client.clone(), job.clone());
    let wait = tokio::spawn(async move { client.wait(&id, Duration::from_mins(1)).await });
    until_waits(&house, &job).await;
    let all = CancelRequest { all: true, ..CancelRequest::default() };
    house.client.cancel(&job, &all).await.unwrap();
    assert_eq!(wait.await.unwrap().unwrap().state, "cancelled");
}

#[tokio::test]
async fn a_wait_whose_time_is_over_shows_the_job_as_it_stands() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let view = house.client.wait(&job, Duration::ZERO).await.unwrap();
    assert_eq!((view.state.as_str(), view.claimable), ("queued", true));
}

#[tokio::test]
async fn the_journal_streams_what_was_and_what_comes() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let mut stream = events(&house, Request::new("GET", "/v1/events")).await;
    let mut text = String::new();
    read_until(&mut stream, &mut text, "event: submitted").await;
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    assert!(text.contains("id: 1\n") && text.contains(&format!("\"job\":\"{job}\"")), "{text}");
    house.grant("s1", "c1").await;
    read_until(&mut stream, &mut text, "event: moved").await;
    assert!(text.contains("event: granted"), "{text}");
}

#[tokio::test]
async fn a_stream_resumes_after_what_was_seen() {
    let house = House::start().await;
    house.submit(b"film").await;
    house.grant("s1", "c1").await;
    let resumed = Request::new("GET", "/v1/events?after=0").header("last-event-id", "1");
    for request in [Request::new("GET", "/v1/events?after=1"), resumed] {
        let mut stream = events(&house, request).await;
        let mut text = String::new();
        read_until(&mut stream, &mut text, "event: moved").await;
        assert!(text.contains("id: 2\n") && !text.contains("id: 1\n"), "{text}");
    }
}

#[tokio::test]
async fn a_journal_longer_than_one_reading_comes_whole_and_in_order() {
    let house = House::start().await;
    let wish = house.wish(b"film").await;
    let jobs = vec![wish; 1_200];
    let many = palisade_api::wire::SubmitMany { jobs };
    house.client.submit_many(many).await.unwrap();
    let mut stream = events(&house, Request::new("GET", "/v1/events")).await;
    let mut text = String::new();
    read_until(&mut stream, &mut text, "id: 1200\n").await;
    let ids: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(ids, (1..=1_200).collect::<Vec<_>>());
}
