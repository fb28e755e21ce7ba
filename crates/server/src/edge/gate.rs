//! Who is let in: the address asked for, the page that asks, and the token.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    app::App,
    config::ServerConfig,
    problems::{self, Rejection},
};

/// Routes that tell nothing of jobs, and that probes and people ask without a token.
const OPEN_ROUTES: [&str; 4] = ["/", "/healthz", "/readyz", "/openapi.json"];

/// Refuses what should not come in.
pub(crate) async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let open = OPEN_ROUTES.contains(&request.uri().path());
    let checked = check_host(&app.config, headers)
        .and_then(|()| check_origin(headers))
        .and_then(|()| if open { Ok(()) } else { check_token(&app.config, headers) });
    match checked {
        Ok(()) => next.run(request).await,
        Err(rejection) => rejection.into_response(),
    }
}

/// On loopback a page of any site could reach the server under a name of its own that it lets
/// resolve to this machine. Such a request says that name as its host.
fn check_host(config: &ServerConfig, headers: &HeaderMap) -> Result<(), Rejection> {
    if !config.listen.ip().is_loopback() && config.hosts.is_empty() {
        return Ok(());
    }
    let given = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host_name(given);
    let is_address = |text: &str| text.parse::<std::net::IpAddr>().is_ok();
    let known = name.eq_ignore_ascii_case("localhost")
        || is_address(name.trim_matches(['[', ']']))
        || config.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
    if known {
        return Ok(());
    }
    let allowed = "must be localhost, an address, or a host that the server was told of";
    Err(problems::forbidden("host", given, allowed))
}

/// A browser names the page that asks. One of another site has no business here.
fn check_origin(headers: &HeaderMap) -> Result<(), Rejection> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let same = origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
    if same {
        return Ok(());
    }
    Err(problems::forbidden("origin", origin, "must be this server's own, or not be given"))
}

fn check_token(config: &ServerConfig, headers: &HeaderMap) -> Result<(), Rejection> {
    let Some(tokens) = &config.tokens else { return Ok(()) };
    let shown = headers
        .get(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes)
        .and_then(|value| value.split_at_checked("Bearer ".len()))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "))
        .map(|(_, token)| token);
    if shown.is_some_and(|token| tokens.allow(token)) {
        return Ok(());
    }
    Err(problems::unauthorized())
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    if host.starts_with('[') {
        return host.split_inclusive(']').next().unwrap_or(host);
    }
    host.split(':').next().unwrap_or(host)
}
