//! Every refusal and fault, turned into a status, a stable code and words. Nowhere else.
//!
//! What is the server's own (paths of files, texts of databases) goes to the log alone.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use palisade_api::{Problem, problem::PROBLEM_JSON};
use palisade_artefacts::BlobError;
use palisade_core::{Invalid, Refusal, with_causes};
use palisade_store::Failure;

/// What a handler answers.
pub(crate) type Reply = Result<Response, Rejection>;

/// A request that was not done, and what only the log is told of it.
#[derive(Debug, Clone)]
pub(crate) struct Rejection {
    problem: Box<Problem>,
    internal: Option<String>,
    is_expected: bool,
}

impl Rejection {
    fn internal(problem: Problem, internal: impl Into<String>) -> Self {
        Self { problem: Box::new(problem), internal: Some(internal.into()), is_expected: false }
    }

    /// What the client is told.
    pub(crate) fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What only the log is told.
    pub(crate) fn internal_text(&self) -> &str {
        self.internal.as_deref().unwrap_or_default()
    }

    /// Whether it was asked for: a server that is told to stop answers so, and no fault of its own
    /// is behind it.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_expected
    }

    /// The problem alone, for an answer that holds several.
    pub(crate) fn into_problem(self) -> Problem {
        *self.problem
    }
}

/// The body is not JSON at all.
pub(crate) fn malformed(what: &str, line: usize, column: usize) -> Rejection {
    let detail = format!("the body is not JSON: {what}, in line {line}, column {column}");
    let problem = Problem::new(400, "malformed", detail).with("field", "body");
    problem.with("line", line).with("column", column).into()
}

/// The body ended early, or stalled.
pub(crate) fn interrupted(status: u16, detail: &str) -> Rejection {
    Problem::new(status, "interrupted", detail).with("field", "body").into()
}

/// The body is not of a type that the route reads.
pub(crate) fn media_type(given: &str, allowed: &str) -> Rejection {
    let invalid = Invalid::new("content-type", given, format!("must be {allowed}"));
    Problem::new(415, "unsupported_media_type", invalid.to_string())
        .with("field", invalid.field)
        .with("value", invalid.value)
        .with("allowed", invalid.allowed)
        .into()
}

/// The body is longer than the route takes.
pub(crate) fn too_large(bytes_max: u64) -> Rejection {
    let detail = format!("body: is not allowed; must be at most {bytes_max} bytes");
    let problem = Problem::new(413, "too_large", detail).with("field", "body");
    problem.with("bytes_max", bytes_max).into()
}

/// No route has this path.
pub(crate) fn no_route(path: &str) -> Rejection {
    let shown: String = path.chars().take(200).collect();
    let detail = format!("there is no route {shown:?}; /openapi.json lists those there are");
    Problem::new(404, "not_found", detail).with("what", "route").into()
}

/// The path is one of a family whose last part says what is to be done, and it says nothing known.
pub(crate) fn no_verb(path: &str, verbs: &str) -> Rejection {
    let shown: String = path.chars().take(200).collect();
    let detail = format!("there is no route POST {shown:?}; there is {verbs}");
    Problem::new(404, "not_found", detail).with("what", "route").into()
}

/// The path is there, for other methods.
pub(crate) fn no_method(method: &str, path: &str) -> Rejection {
    let detail = format!("{method} is not allowed at {path:?}; the Allow header lists what is");
    Problem::new(405, "method_not_allowed", detail).with("field", "method").into()
}

/// There is no such thing.
pub(crate) fn not_found(what: &'static str, id: impl Into<String>) -> Rejection {
    Refusal::NotFound { what, id: id.into() }.into()
}

/// The journal has forgotten what was asked for.
pub(crate) fn history_gone(after: u64, oldest: u64) -> Rejection {
    let detail = format!(
        "after: {after} is not allowed any more; the journal is whole from position {oldest} on, \
         and what was before it is forgotten"
    );
    Problem::new(410, "history_gone", detail).with("after", after).with("oldest", oldest).into()
}

/// Who asks is not known.
pub(crate) fn unauthorized() -> Rejection {
    let detail = "authorization: must be \"Bearer \" and a token that this server knows";
    Problem::new(401, "unauthorized", detail).with("field", "authorization").into()
}

/// The request did not come the way it should: another site's page sends it.
pub(crate) fn forbidden(field: &str, given: &str, allowed: &str) -> Rejection {
    let invalid = Invalid::new(field, given, allowed);
    Problem::new(403, "forbidden", invalid.to_string())
        .with("field", invalid.field)
        .with("value", invalid.value)
        .with("allowed", invalid.allowed)
        .into()
}

/// The server is about to end; nothing was done.
pub(crate) fn stopping() -> Rejection {
    let problem = Problem::unavailable("the server is stopping; nothing was done, ask again");
    Rejection { problem: Box::new(problem), internal: None, is_expected: true }
}

/// Another connection took over this claim's or this lock's wait.
pub(crate) fn taken_over() -> Rejection {
    let detail = "another connection asked with the same request_id and took over the wait; its \
                  answer counts";
    Problem::unknown(detail).into()
}

/// A handler broke.
pub(crate) fn panicked(what: String) -> Rejection {
    let detail = "the server failed at this request; what was done of it is unknown";
    Rejection::internal(Problem::new(500, "internal", detail), what)
}

/// No byte of the file is in the range asked for.
pub(crate) fn out_of_range(size_bytes: u64) -> Rejection {
    let detail = format!("range: is not allowed; the file has {size_bytes} bytes");
    let problem = Problem::new(416, "range_not_satisfiable", detail).with("field", "range");
    problem.with("size_bytes", size_bytes).into()
}

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), internal: None, is_expected: false }
    }
}

impl From<Invalid> for Rejection {
    fn from(invalid: Invalid) -> Self {
        Problem::from(invalid).into()
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Unavailable(why) => {
                let detail = "the store is unavailable; nothing was done, ask again";
                Self::internal(Problem::unavailable(detail), why)
            }
            Failure::Unknown(why) => {
                let detail = "the store failed while it answered; it may have been done, so ask \
                              again with the same ids";
                Self::internal(Problem::unknown(detail), why)
            }
        }
    }
}

impl From<BlobError> for Rejection {
    fn from(error: BlobError) -> Self {
        let internal = with_causes(&error);
        match error {
            BlobError::NotFound(place) => not_found("blob", place.digest.to_string()),
            BlobError::Mismatch { expected, got } => {
                let allowed = format!("must be the digest of the bytes, which have {got}");
                Invalid::new("digest", &expected.to_string(), allowed).into()
            }
            BlobError::TooLarge { size_max } => too_large(size_max),
            BlobError::OutOfRange { size, .. } => out_of_range(size),
            BlobError::Source(_) => interrupted(400, "the body ended before all of it had come"),
            BlobError::DiskFull { .. } => {
                let detail = "the server's disk for blobs is full; nothing was kept, ask again \
                              when there is room";
                Self::internal(Problem::new(507, "disk_full", detail), internal)
            }
            BlobError::Corrupt { place, .. } => {
                let detail = format!("the stored bytes of blob {} are damaged", place.digest);
                Self::internal(Problem::new(500, "internal", detail), internal)
            }
            BlobError::Store { .. } | BlobError::Io { .. } => {
                let detail = "the storage of blobs is unavailable; nothing was done, ask again";
                Self::internal(Problem::unavailable(detail), internal)
            }
        }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status)
            .expect("statuses come from the table in this file and the one of the API");
        let body = serde_json::to_vec(&self.problem).expect("problems always serialise");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                if let Some(size) = self.problem.facts.get("size_bytes")
                    && let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}"))
                {
                    headers.insert(header::CONTENT_RANGE, range);
                }
            }
            _ => {}
        }
        // The log's line is written where all requests pass.
        response.extensions_mut().insert(self);
        response
    }
}
