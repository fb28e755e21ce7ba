//! What a person sees who opens the server in a browser, and the description for programs.

use axum::{
    http::{HeaderValue, header},
    response::{Html, IntoResponse, Response},
};

use super::ok;
use crate::openapi;

/// The page, whole: it loads nothing.
const PAGE: &str = include_str!("page.html");

/// `GET /`.
pub(crate) async fn page() -> Response {
    let mut response = Html(PAGE).into_response();
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> Response {
    ok(&openapi::document())
}
