use reqwest::Method;

use super::*;

fn three() -> Servers {
    Servers::parse("http://a:1, http://b:2/below/ ,https://C:443").unwrap()
}

#[test]
fn servers_are_asked_in_the_order_given_and_around_again() {
    let servers = three();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(servers.now().to_owned());
        servers.leave(servers.turn());
    }
    assert_eq!(seen, ["http://a:1", "http://b:2/below", "https://c", "http://a:1"]);
}

#[test]
fn calls_that_fail_together_leave_a_server_once() {
    let servers = three();
    let turn = servers.turn();
    servers.leave(turn);
    servers.leave(turn);
    assert_eq!(servers.now(), "http://b:2/below");
}

#[test]
fn a_request_is_pointed_at_the_server_that_is_asked_now() {
    let servers = three();
    let url = Url::parse("http://a:1/v1/jobs?limit=2").unwrap();
    let mut request = Request::new(Method::GET, url);
    servers.leave(servers.turn());
    servers.point(&mut request);
    assert_eq!(request.url().as_str(), "http://b:2/below/v1/jobs?limit=2");
    servers.leave(servers.turn());
    servers.point(&mut request);
    assert_eq!(request.url().as_str(), "https://c/v1/jobs?limit=2");
}

#[test]
fn an_address_that_begins_like_another_is_not_taken_for_it() {
    let servers = Servers::parse("http://a:1,http://a:17").unwrap();
    let mut request = Request::new(Method::GET, Url::parse("http://a:17/v1/jobs").unwrap());
    servers.point(&mut request);
    assert_eq!(request.url().as_str(), "http://a:1/v1/jobs");
}

#[test]
fn an_address_that_is_none_is_refused_by_name() {
    for (list, bad) in
        [("", ""), ("http://a,", ""), ("http://a,ftp://b", "ftp://b"), ("b:1", "b:1")]
    {
        let Err(ClientError::Address { url }) = Servers::parse(list) else { panic!("{list:?}") };
        assert_eq!(url, bad, "{list:?}");
    }
}
