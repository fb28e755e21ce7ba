//! The journal's stream under concurrent writes, and when some of it is forgotten.

use std::{sync::Arc, time::Duration};

use palisade_api::{Client, ClientError, EventsFrom, wire::SubmitMany};
use palisade_artefacts::MemoryBlobs;
use palisade_core::{Retention, retention::KEEP_MS_MIN};
use palisade_server::ServerConfig;
use palisade_store::{StoreExt, command::Forget, sqlite::SqliteStore};

use tokio::io::AsyncWriteExt;

use crate::streams::read_to_end;
use crate::support::{House, TestClock, config, eventually, raw, raw::Request};

/// A server over a store on the disk, whose readers are not its writer.
async fn house_on_disk(folder: &std::path::Path, config: ServerConfig) -> House {
    let clock = TestClock::new();
    let store = SqliteStore::open(folder, Arc::<TestClock>::clone(&clock)).unwrap();
    House::of(config, Arc::new(store), Arc::new(MemoryBlobs::new()), clock).await
}

const WRITERS: u64 = 4;
const CALLS: u64 = 25;
const JOBS: u64 = 9;

/// Submits the same wish again and again: the first makes the job, each writes an entry.
async fn write_all(house: &House) -> Vec<tokio::task::JoinHandle<()>> {
    let wish = house.wish(b"film").await;
    let write = || {
        let (client, wish) = (house.client.clone(), wish.clone());
        tokio::spawn(async move {
            for _ in 0..CALLS {
                let jobs = vec![wish.clone(); usize::try_from(JOBS).unwrap()];
                client.submit_many(SubmitMany { jobs }).await.unwrap();
            }
        })
    };
    (0..WRITERS).map(|_| write()).collect()
}

/// Reads `count` entries after a position. Answers their positions.
async fn read(client: &Client, from: EventsFrom, count: usize) -> Vec<u64> {
    let mut stream = client.events(from, true).await.unwrap();
    let mut positions = Vec::new();
    while positions.len() < count {
        positions.push(stream.next().await.unwrap().expect("it goes on").position);
    }
    positions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_again_and_again_misses_nothing_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let house = house_on_disk(folder.path(), config()).await;
    let writers = write_all(&house).await;
    let all = WRITERS * CALLS * JOBS;
    let (mut seen, mut step) = (Vec::new(), 1);
    while (seen.len() as u64) < all {
        let from = seen.last().map_or(EventsFrom::Beginning, |last| EventsFrom::After(*last));
        // Breaks in the middle of what one transaction wrote, at ever other places.
        step = step * 5 % 37 + 1;
        let left = usize::try_from(all).unwrap() - seen.len();
        seen.extend(read(&house.client, from, step.min(left)).await);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(seen, (1..=all).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_comes_back_goes_on_after_the_last_id_it_saw() {
    let folder = tempfile::tempdir().unwrap();
    let house = house_on_disk(folder.path(), config()).await;
    for writer in write_all(&house).await {
        writer.await.unwrap();
    }
    let all = WRITERS * CALLS * JOBS;
    let (mut last, mut ids) = (0, Vec::new());
    while last < all {
        // The parameter is the page's own, from long ago; the header says where it was.
        let request = Request::new("GET", "/v1/events?after=0&follow=false");
        let request = request.header("last-event-id", &last.to_string());
        let mut stream = raw::connect(&house.server).await;
        let request = request.header("connection", "close").bytes("localhost");
        stream.write_all(&request).await.unwrap();
        let text = read_to_end(&mut stream).await;
        let told = text.lines().filter_map(|line| line.strip_prefix("id: "));
        let told: Vec<u64> = told.map(|id| id.parse().unwrap()).take(301).collect();
        last = *told.last().expect("there is more");
        ids.extend(told);
    }
    assert_eq!(ids, (1..=all).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stream_from_now_begins_with_what_comes() {
    let house = House::start().await;
    let before = house.submit(b"one").await.job;
    let mut stream = house.client.events(EventsFrom::Now, true).await.unwrap();
    let after = house.submit(b"two").await.job;
    let first = stream.next().await.unwrap().expect("it goes on");
    assert_ne!(first.event.subject.to_string(), before);
    assert_eq!(first.event.subject.to_string(), after);
}

#[tokio::test]
async fn a_stream_that_does_not_follow_ends_where_the_journal_does() {
    let house = House::start().await;
    house.submit(b"one").await;
    let mut stream = house.client.events(EventsFrom::Beginning, false).await.unwrap();
    assert_eq!(stream.next().await.unwrap().expect("one entry").position, 1);
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_position_that_was_forgotten_is_refused_with_the_oldest_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let house = house_on_disk(folder.path(), config()).await;
    house.submit(b"film").await;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"copy").await;
    house.clock.advance(2 * KEEP_MS_MIN);
    let live = house.submit(b"another").await.job;
    let now = house.store.now();
    let keep = Retention::of_ms(KEEP_MS_MIN).unwrap();
    let (journal_before, answers_before) = (keep.journal_before(now), keep.answers_before(now));
    let forget = Forget { journal_before, answers_before, after: 0 };
    let went = house.store.run(forget).await.unwrap().entries;
    assert!(went > 3, "{went}");

    let refused = house.client.events(EventsFrom::After(0), true).await.unwrap_err();
    let ClientError::Refused(problem) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.status, problem.code.as_str()), (410, "history_gone"));
    assert_eq!(problem.facts["oldest"], went + 1);
    for from in [EventsFrom::Beginning, EventsFrom::After(went)] {
        assert_eq!(read(&house.client, from, 1).await, [went + 1]);
    }
    assert!(!house.client.history(&live).await.unwrap().events.is_empty());
    assert!(house.client.history(&grant.job).await.unwrap().events.is_empty());
}

#[tokio::test]
async fn a_server_forgets_by_itself_what_is_older_than_it_was_told_to_keep() {
    let folder = tempfile::tempdir().unwrap();
    let keep_history = Some(Retention::of_ms(KEEP_MS_MIN).unwrap());
    let forget_every = Duration::from_millis(10);
    let config = ServerConfig { keep_history, forget_every, ..config() };
    let house = house_on_disk(folder.path(), config).await;
    house.submit(b"film").await;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"copy").await;
    house.clock.advance(2 * KEEP_MS_MIN);
    eventually(|| async {
        let asked = house.client.events(EventsFrom::After(0), false).await;
        asked.is_err_and(|error| error.code() == Some("history_gone")).then_some(())
    })
    .await;
}
