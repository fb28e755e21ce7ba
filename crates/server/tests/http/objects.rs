//! Fenced objects over HTTP: the story of the pause, and the rest.

use palisade_api::wire::{AcquireRequest, AcquireResponse};

use tokio::io::AsyncWriteExt as _;

use crate::support::{House, raw};

const PATH: &str = "/v1/objects/reports/august.txt";

async fn hold(house: &House, lock: &str, who: &str) -> AcquireResponse {
    let holder = who.to_owned();
    let wish = AcquireRequest { holder, ttl_ms: Some(5_000), wait_ms: 0, request_id: None };
    house.client.acquire_lock(lock, &wish).await.unwrap()
}

fn request(method: &str, held: &AcquireResponse) -> raw::Request {
    raw::Request::new(method, PATH)
        .header("fencing-token", &held.token.to_string())
        .header("fencing-lease", &held.lease)
}

async fn put(house: &House, held: &AcquireResponse, text: &str) -> raw::Answer {
    let put = request("PUT", held).header("content-type", "text/plain").body(text.as_bytes());
    raw::ask(&house.server, put).await
}

async fn get(house: &House) -> raw::Answer {
    raw::ask(&house.server, raw::Request::new("GET", PATH)).await
}

#[tokio::test]
async fn a_stopped_holder_is_refused_from_the_moment_of_the_next_grant() {
    let house = House::start().await;
    let alice = hold(&house, "door", "alice").await;
    house.clock.advance(6_000);
    let bob = hold(&house, "door", "bob").await;
    // Bob has not written anything.
    let refused = put(&house, &alice, "alice's").await.problem();
    assert_eq!((refused.status, refused.code.as_str()), (412, "stale_token"));
    assert_eq!(refused.facts["fence"], bob.token);
    assert_eq!(get(&house).await.status, 404);
    let written = put(&house, &bob, "bob's").await;
    assert_eq!(written.status, 200, "{written:?}");
    // Now he has; and a stranger shows his number.
    assert_eq!(put(&house, &alice, "alice's").await.problem().code, "stale_token");
    let stranger = AcquireResponse { lease: "0".repeat(32), ..bob.clone() };
    let refused = put(&house, &stranger, "stranger's").await.problem();
    assert_eq!((refused.status, refused.code.as_str()), (422, "unknown_token"));
    let read = get(&house).await;
    assert_eq!(read.text(), "bob's");
    assert_eq!(read.headers["fencing-token"], bob.token.to_string());
    assert_eq!(read.headers["content-type"], "text/plain");
    assert_eq!(read.headers["etag"], written.headers["etag"]);
}

/// Its pair was good when it began to send.
#[tokio::test]
async fn a_holder_that_is_replaced_while_its_bytes_arrive_is_refused() {
    let house = House::start().await;
    let alice = hold(&house, "door", "alice").await;
    assert_eq!(put(&house, &alice, "first").await.status, 200);
    let mut stream = raw::connect(&house.server).await;
    let begun = request("PUT", &alice).header("fencing-op", "2").header("content-length", "8");
    stream.write_all(&begun.bytes("localhost")).await.unwrap();
    stream.write_all(b"half").await.unwrap();
    house.clock.advance(6_000);
    let bob = hold(&house, "door", "bob").await;
    stream.write_all(b"half").await.unwrap();
    let refused = raw::read_answer(&mut stream, false).await.problem();
    assert_eq!((refused.status, refused.code.as_str()), (412, "stale_token"));
    assert_eq!(refused.facts["fence"], bob.token);
    assert_eq!(get(&house).await.text(), "first", "what was there is readable throughout");
}

#[tokio::test]
async fn a_write_that_shows_no_pair_is_told_which_header_is_missing() {
    let house = House::start().await;
    let held = hold(&house, "door", "alice").await;
    let bare = raw::ask(&house.server, raw::Request::new("PUT", PATH).body(b"x")).await;
    assert_eq!(bare.problem().facts["field"], "fencing-token");
    let half = raw::Request::new("DELETE", PATH).header("fencing-token", "1");
    assert_eq!(raw::ask(&house.server, half).await.problem().facts["field"], "fencing-lease");
    let zero = request("PUT", &held).header("fencing-op", "0").body(b"x");
    assert_eq!(raw::ask(&house.server, zero).await.problem().facts["field"], "fencing-op");
}

#[tokio::test]
async fn a_delete_leaves_the_fence_and_late_puts_are_refused() {
    let house = House::start().await;
    let older = hold(&house, "other", "older").await;
    let held = hold(&house, "door", "alice").await;
    assert_eq!(put(&house, &held, "content").await.status, 200);
    assert_eq!(put(&house, &held, "content").await.status, 200, "a repeat is answered again");
    assert_eq!(put(&house, &held, "another").await.problem().status, 428);
    let delete = request("DELETE", &held).header("fencing-op", "2");
    assert_eq!(raw::ask(&house.server, delete).await.status, 200);
    assert_eq!(get(&house).await.status, 404);
    assert_eq!(put(&house, &held, "content").await.problem().code, "stale_op");
    assert_eq!(put(&house, &older, "late").await.problem().code, "stale_token");
    assert_eq!(get(&house).await.status, 404);
}

#[tokio::test]
async fn ranges_conditions_listings_and_raises_work() {
    let house = House::start().await;
    let older = hold(&house, "other", "older").await;
    let held = hold(&house, "door", "alice").await;
    let first = raw::ask(
        &house.server,
        request("PUT", &older).header("if-none-match", "*").body(b"0123456789"),
    )
    .await;
    assert_eq!(first.status, 200, "{first:?}");
    let part = raw::Request::new("GET", PATH).header("range", "bytes=2-4");
    let part = raw::ask(&house.server, part).await;
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let matching = async |tag: &str| {
        let put = request("PUT", &older).header("fencing-op", "2").header("if-match", tag);
        let problem = raw::ask(&house.server, put.body(b"x")).await.problem();
        (problem.status, problem.code)
    };
    let weak = format!("W/{}", first.headers["etag"]);
    for other in ["\"1\"", "\"of-another-server\"", weak.as_str()] {
        assert_eq!(matching(other).await, (412, "condition_failed".to_owned()), "{other}");
    }
    for none in ["1", "\"1", "\"1\", \"2\""] {
        assert_eq!(matching(none).await, (422, "invalid".to_owned()), "{none}");
    }
    let body = format!("{{\"token\":{},\"lease\":\"{}\"}}", held.token, held.lease);
    let raise = raw::Request::json(&format!("{PATH}/fence"), &body);
    let raised = raw::ask(&house.server, raise).await.json();
    assert_eq!((&raised["fence"], &raised["token"]), (&held.token.into(), &older.token.into()));
    let late = request("PUT", &older).header("fencing-op", "2").body(b"late");
    assert_eq!(raw::ask(&house.server, late).await.problem().code, "stale_token");
    let list = raw::Request::new("GET", "/v1/objects?prefix=reports/");
    let list = raw::ask(&house.server, list).await.json();
    assert_eq!(list["objects"][0]["key"], "reports/august.txt");
    assert_eq!(list["objects"][0]["size_bytes"], 10);
    let head = raw::ask(&house.server, raw::Request::new("HEAD", PATH)).await;
    assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "10"));
}

/// What each writer is told, whose writes all arrive at once.
async fn write_at_once(house: &House, held: AcquireResponse) -> (u64, raw::Answer) {
    let text = format!("of {}", held.token);
    (held.token, put(house, &held, &text).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixty_four_writers_at_once_the_highest_stands_and_readers_never_go_back() {
    let house = House::start().await;
    let mut holders = Vec::new();
    for index in 0..64 {
        holders.push(hold(&house, &format!("door-{index}"), "writer").await);
    }
    let highest = holders.iter().map(|held| held.token).max().unwrap();
    // No order in particular: 37 and 64 have no common divisor.
    let order: Vec<_> = (0..64).map(|index| holders[index * 37 % 64].clone()).collect();
    let writes =
        futures_util::future::join_all(order.into_iter().map(|held| write_at_once(&house, held)));
    let read_all = async {
        let (mut seen, mut reads) = (Vec::new(), 0);
        while seen.last() != Some(&highest) {
            reads += 1;
            assert!(reads < 100_000, "the highest is never read");
            let read = get(&house).await;
            if read.status == 200 {
                let token: u64 = read.headers["fencing-token"].parse().unwrap();
                assert_eq!(read.text(), format!("of {token}"), "the bytes are the number's own");
                seen.push(token);
            }
        }
        seen
    };
    let (written, seen) = tokio::join!(writes, read_all);
    assert!(seen.is_sorted(), "a reader went back: {seen:?}");
    for (token, answer) in written {
        if answer.status == 200 {
            continue;
        }
        let refused = answer.problem();
        assert_eq!(refused.code, "stale_token", "{token}: {refused:?}");
        let fence = refused.facts["fence"].as_u64().unwrap();
        assert!(fence > token && token != highest, "{token} was refused by {fence}");
    }
    let last = get(&house).await;
    assert_eq!(last.headers["fencing-fence"], highest.to_string());
}
