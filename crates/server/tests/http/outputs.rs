//! Outputs as a player and a browser fetch them.

use crate::support::{House, raw, raw::Request};

/// A server with one finished job; answers the path of its output, ten bytes long.
async fn finished() -> (House, String) {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"0123456789").await;
    (house, format!("/v1/jobs/{job}/outputs/copy.mp4"))
}

async fn got(house: &House, path: &str, headers: &[(&str, &str)]) -> raw::Answer {
    let request = Request::new("GET", path);
    let with = |request: Request, (name, value): &(&str, &str)| request.header(name, value);
    raw::ask(&house.server, headers.iter().fold(request, with)).await
}

#[tokio::test]
async fn parts_are_sent_as_they_are_asked_for() {
    let (house, path) = finished().await;
    for (range, part, content_range) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=5-500", "56789", "bytes 5-9/10"),
        ("bytes=0-", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = got(&house, &path, &[("range", range)]).await;
        assert_eq!((answer.status, answer.text().as_str()), (206, part), "{range}");
        assert_eq!(answer.headers["content-range"], content_range);
        assert_eq!(answer.headers["content-length"], part.len().to_string());
    }
    let beyond = got(&house, &path, &[("range", "bytes=10-")]).await;
    assert_eq!(beyond.problem().code, "range_not_satisfiable");
    assert_eq!(beyond.headers["content-range"], "bytes */10");
    for ignored in ["bytes=0-1,3-4", "lines=1-2", "bytes=x"] {
        let answer = got(&house, &path, &[("range", ignored)]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{ignored}");
    }
}

#[tokio::test]
async fn who_has_the_file_is_sent_nothing_or_the_rest() {
    let (house, path) = finished().await;
    let whole = got(&house, &path, &[]).await;
    let etag = whole.headers["etag"].clone();
    let again = got(&house, &path, &[("if-none-match", &etag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let rest = got(&house, &path, &[("range", "bytes=4-"), ("if-range", &etag)]).await;
    assert_eq!((rest.status, rest.text().as_str()), (206, "456789"));
    let other = got(&house, &path, &[("range", "bytes=4-"), ("if-range", "\"other\"")]).await;
    assert_eq!((other.status, other.body.len()), (200, 10));
}

#[tokio::test]
async fn a_head_tells_of_the_file_without_sending_it() {
    let (house, path) = finished().await;
    let request = Request::new("HEAD", &path).header("range", "bytes=0-3");
    let head = raw::ask(&house.server, request).await;
    assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "10"));
    assert_eq!(head.headers["accept-ranges"], "bytes");
    assert_eq!(head.headers["x-content-type-options"], "nosniff");
    assert_eq!(head.headers["content-security-policy"], "sandbox");
}

#[tokio::test]
async fn a_name_that_the_job_did_not_make_is_not_found() {
    let (house, path) = finished().await;
    let other = path.replace("copy.mp4", "other.mp4");
    let problem = got(&house, &other, &[]).await.problem();
    assert_eq!(
        (problem.code.as_str(), problem.facts["what"].as_str()),
        ("not_found", Some("output"))
    );
}
