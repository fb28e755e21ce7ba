//! Every operation: where it is, what it takes, what it answers when it is done.

/// One method of one path.
pub(super) struct Operation {
    /// The path as it is routed.
    pub(super) path: &'static str,
    /// In lower case.
    pub(super) method: &'static str,
    /// What it does.
    pub(super) summary: &'static str,
    /// Beside those in the path: where, name (with `!` if required), shape, what it is.
    pub(super) parameters: &'static [(&'static str, &'static str, &'static str, &'static str)],
    /// Media type and shape of the body.
    pub(super) body: Option<(&'static str, &'static str)>,
    /// Status, media type and shape. No shape: no body.
    pub(super) answers: &'static [(&'static str, &'static str, &'static str)],
}

pub(super) const JSON: &str = "application/json";

/// An operation that takes a body of JSON.
const fn post(
    path: &'static str,
    summary: &'static str,
    body: &'static str,
    answers: &'static [(&'static str, &'static str, &'static str)],
) -> Operation {
    Operation { path, method: "post", summary, parameters: &[], body: Some((JSON, body)), answers }
}

/// An operation that only looks.
pub(super) const fn get(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [(&'static str, &'static str, &'static str, &'static str)],
    answers: &'static [(&'static str, &'static str, &'static str)],
) -> Operation {
    Operation { path, method: "get", summary, parameters, body: None, answers }
}

/// The headers with which a part of a file, or nothing new, is asked for.
pub(super) const FILE_HEADERS: &[(&str, &str, &str, &str)] = &[
    ("header", "Range", "string", "One range of bytes: bytes=0-99, bytes=100- or bytes=-100."),
    ("header", "If-Range", "string", "The ETag of the file of which the rest is wanted."),
    ("header", "If-None-Match", "string", "The ETag of the file that is there already."),
];
/// What is answered to them.
pub(super) const FILE_ANSWERS: &[(&str, &str, &str)] =
    &[("200", "*/*", "bytes"), ("206", "*/*", "bytes"), ("304", "", "")];

/// The same of a blob or an output, which may be had from where it lives.
const DOWNLOAD: &[(&str, &str, &str, &str)] = &[
    ("header", "Range", "string", "One range of bytes: bytes=0-99, bytes=100- or bytes=-100."),
    ("header", "If-Range", "string", "The ETag of the file of which the rest is wanted."),
    ("header", "If-None-Match", "string", "The ETag of the file that is there already."),
    ("query", "redirect", "string", "no: send the bytes, not an address."),
];
const DOWNLOAD_ANSWERS: &[(&str, &str, &str)] =
    &[("200", "*/*", "bytes"), ("206", "*/*", "bytes"), ("304", "", ""), ("307", "", "")];

/// All of them.
pub(super) const OPERATIONS: &[Operation] = &[
    get("/", "A page for people.", &[], &[("200", "text/html", "string")]),
    get("/openapi.json", "This document.", &[], &[("200", JSON, "any")]),
    get("/healthz", "The process answers.", &[], &[("200", JSON, "Status")]),
    get(
        "/readyz",
        "The server can serve: its store answers. Says so where its blobs are out of reach.",
        &[],
        &[("200", JSON, "Status")],
    ),
    get(
        "/metrics",
        "Counters, as Prometheus reads them; without the store's own while that is away.",
        &[],
        &[("200", "text/plain", "string")],
    ),
    get(
        "/v1/jobs",
        "Jobs, newest first.",
        &[
            ("query", "state", "string", "Only in this state."),
            ("query", "recipe", "string", "Only of this recipe."),
            ("query", "cursor", "string", "Where the page begins: next_cursor of the one before."),
            ("query", "limit", "integer", "At most so many, 1 to 1000; 100 if not given."),
        ],
        &[("200", JSON, "JobList")],
    ),
    post(
        "/v1/jobs",
        "Submit one wish, or many, each by itself.",
        "SubmitRequest|SubmitMany",
        &[("201", JSON, "SubmitResponse"), ("200", JSON, "SubmitResponse|SubmitManyResponse")],
    ),
    get(
        "/v1/jobs/{id}",
        "One job, with its submissions and attempts.",
        &[],
        &[("200", JSON, "JobView")],
    ),
    get(
        "/v1/jobs/{id}/wait",
        "The job when it is over, or as it stands when the time is.",
        &[("query", "timeout_ms", "integer", "How long to wait; at most, and by default, 60000.")],
        &[("200", JSON, "JobView")],
    ),
    get(
        "/v1/jobs/{id}/history",
        "What happened to the job, oldest first.",
        &[],
        &[("200", JSON, "HistoryView")],
    ),
    post(
        "/v1/jobs/{id}/cancel",
        "Withdraw a submission, or all.",
        "CancelRequest",
        &[("200", JSON, "CancelResponse")],
    ),
    post(
        "/v1/jobs/{id}/retry",
        "Another try of a job that is over.",
        "RetryRequest",
        &[("200", JSON, "RetryResponse")],
    ),
    post(
        "/v1/jobs/{id}/complete",
        "Commit an attempt.",
        "CompleteRequest",
        &[("200", JSON, "CompleteResponse")],
    ),
    post(
        "/v1/jobs/{id}/fail",
        "Report a failed attempt.",
        "FailRequest",
        &[("200", JSON, "RequeuedResponse")],
    ),
    post(
        "/v1/jobs/{id}/release",
        "Hand an attempt back.",
        "ReleaseRequest",
        &[("200", JSON, "RequeuedResponse")],
    ),
    get("/v1/jobs/{id}/outputs/{*name}", "An output file.", DOWNLOAD, DOWNLOAD_ANSWERS),
    post(
        "/v1/claims",
        "Ask for jobs; waits until there is one.",
        "ClaimRequest",
        &[("200", JSON, "ClaimResponse")],
    ),
    post(
        "/v1/heartbeats",
        "Renew all leases of a session.",
        "HeartbeatRequest",
        &[("200", JSON, "HeartbeatResponse")],
    ),
    post(
        "/v1/progress",
        "Tell how far the session's renders are. Hearsay: nothing is decided by it.",
        "ProgressRequest",
        &[("204", "", "")],
    ),
    get("/v1/workers", "The workers and what they hold.", &[], &[("200", JSON, "WorkerList")]),
    get(
        "/v1/workers/{name}/session",
        "A session's stream: a JSON object a line.",
        &[("query", "session!", "string", "The random id of this start of the worker.")],
        &[("200", "application/x-ndjson", "SessionEvent")],
    ),
    get("/v1/blobs/{digest}", "A blob.", DOWNLOAD, DOWNLOAD_ANSWERS),
    Operation {
        path: "/v1/blobs/{digest}",
        method: "put",
        summary: "Bring a blob. It is hashed as it arrives. The three headers, together, pin it \
                  to an open attempt; without them it is kept for a day.",
        parameters: &[
            ("header", "Palisade-Job", "string", "The job's id."),
            ("header", "Fencing-Token", "integer", "The attempt's token."),
            ("header", "Fencing-Lease", "string", "The attempt's lease id."),
        ],
        body: Some(("*/*", "bytes")),
        answers: &[("200", JSON, "BlobView")],
    },
    post(
        "/v1/blobs/{digest}/pin",
        "Is it there? If so, keep it.",
        "PinRequest",
        &[("200", JSON, "PinResponse")],
    ),
    post(
        "/v1/blobs/{digest}/finish",
        "A worker that sees the blobs' place has written a blob there itself.",
        "FinishRequest",
        &[("200", JSON, "BlobView")],
    ),
    get(
        "/v1/artefacts",
        "Where the blobs live, for workers that see it.",
        &[],
        &[("200", JSON, "ArtefactsView")],
    ),
    get("/v1/recipes", "What can be asked for.", &[], &[("200", JSON, "RecipeList")]),
    get(
        "/v1/events",
        "The journal, as server-sent events whose id is the position.",
        &[
            (
                "query",
                "after",
                "string",
                "Entries after this position, or after `now`; all that the journal has if not \
                 given. A position that was forgotten is refused with 410 `history_gone`.",
            ),
            ("query", "follow", "boolean", "Go on with what comes (the default), or end there."),
            (
                "header",
                "Last-Event-ID",
                "integer",
                "The same, as a browser that comes back says it.",
            ),
        ],
        &[("200", "text/event-stream", "EventView")],
    ),
];
