//! The shapes that workers see: claims, heartbeats, attempts, manifests.

use super::Member;

const TOKEN: Member = ("token!", "integer", "The fencing token.");
const LEASE: Member = ("lease!", "string", "The lease id.");
const JOB: Member = ("job!", "string", "The job's id.");

/// Each with its members.
pub(super) const SHAPES: &[(&str, &[Member])] = &[
    (
        "ClaimRequest",
        &[
            ("worker!", "string", "The worker as its operator calls it."),
            ("session!", "string", "A random id of this start of the worker."),
            ("request_id!", "string", "Asked again with it, what was granted is given again."),
            ("seq", "integer", "The seq of the last heartbeat sent before."),
            ("ttl_ms", "integer", "The leases' length, 500 to 86400000; 30000 if not given."),
            ("wait_ms", "integer", "How long to wait for a job; at most 60000."),
            ("max_jobs", "integer", "At most so many, 1 to 1000; 1 if not given."),
            ("recipes!", "[CapabilityWire]", "What this worker can run."),
        ],
    ),
    (
        "CapabilityWire",
        &[
            ("recipe!", "string", "The recipe."),
            ("definition!", "string", "Its definition's digest."),
        ],
    ),
    (
        "ClaimResponse",
        &[
            ("grants!", "[GrantWire]", "Jobs granted; none when nothing came in time."),
            ("lost", "[LeaseWire]", "For a claim asked again: what was lost since."),
        ],
    ),
    (
        "GrantWire",
        &[
            JOB,
            TOKEN,
            LEASE,
            ("ttl_ms!", "integer", "The lease's length, counted from the grant."),
            ("waited_ms!", "integer", "How long the claim had waited at the server."),
            ("recipe!", "string", "The recipe."),
            ("definition!", "string", "Its definition's digest."),
            ("inputs!", "{InputWire}", "By name."),
            ("parameters!", "{string}", "Complete, in canonical text."),
            ("attempt!", "integer", "Which attempt of the job this is, from 1."),
        ],
    ),
    ("LeaseWire", &[JOB, TOKEN, LEASE]),
    ("PairWire", &[TOKEN, LEASE]),
    (
        "ProgressRequest",
        &[("session!", "string", "The session."), ("renders!", "[ProgressWire]", "One a render.")],
    ),
    (
        "ProgressWire",
        &[
            JOB,
            TOKEN,
            LEASE,
            ("share", "number", "The share done, 0 to 1; absent where the length is unknown."),
            ("speed", "number", "Seconds of output a second of work brings."),
            ("left_ms", "integer", "How long it will take still."),
        ],
    ),
    (
        "HeartbeatRequest",
        &[
            ("session!", "string", "The session."),
            ("seq!", "integer", "Rises with each heartbeat of the session, from 1."),
            ("leases!", "[LeaseWire]", "Every lease that the session has."),
            ("pending", "[string]", "Its claims that are unanswered, by request id."),
            ("pauses", "[PauseWire]", "Pauses measured since the last heartbeat."),
        ],
    ),
    ("PauseWire", &[JOB, TOKEN, LEASE, ("pause_ms!", "integer", "For how long.")]),
    (
        "HeartbeatResponse",
        &[
            ("leases!", "[LeaseAnswer]", "One answer a lease, in their order."),
            ("released", "[ReleasedWire]", "Grants that the session does not know of."),
        ],
    ),
    ("ReleasedWire", &[JOB, TOKEN]),
    (
        "LeaseAnswer",
        &[
            JOB,
            TOKEN,
            ("status!", "string", "held, lost, cancelled or unknown_token."),
            ("reason", "string", "For lost: what closed the attempt."),
            ("fence", "integer", "For lost: the lowest token still accepted."),
            ("completed_by", "integer", "For lost: the token that completed the job."),
        ],
    ),
    (
        "SessionEvent",
        &[
            ("event!", "string", "open, ping, lost or cancelled."),
            ("job", "string", "The job's id."),
            ("token", "integer", "The fencing token."),
            ("reason", "string", "For lost: what closed the attempt."),
        ],
    ),
    (
        "CompleteRequest",
        &[TOKEN, LEASE, ("manifest!", "Manifest", "What was made; its blobs uploaded before.")],
    ),
    (
        "CompleteResponse",
        &[
            ("completed_by!", "integer", "The token that completed the job."),
            ("completed_at_ms!", "integer", "When."),
            ("manifest_differs!", "boolean", "Whether other outputs were recorded."),
            ("manifest!", "Manifest", "The recorded outputs."),
        ],
    ),
    (
        "Manifest",
        &[
            ("outputs!", "[Output]", "The outputs."),
            ("checks", "[Check]", "What was verified."),
            ("provenance", "Provenance", "What made them."),
        ],
    ),
    (
        "Output",
        &[
            ("name!", "string", "Its name; may have folders."),
            ("digest!", "string", "Its bytes."),
            ("size_bytes!", "integer", "Their length."),
            ("media_type!", "string", "Its media type."),
            ("facts", "{any}", "What was measured of it."),
        ],
    ),
    (
        "Check",
        &[
            ("name!", "string", "What was looked at."),
            ("expected!", "string", "What was expected, in words."),
            ("found!", "string", "What was found, in words."),
        ],
    ),
    (
        "Provenance",
        &[
            ("toolchain!", "string", "The tool's exact build."),
            ("commands!", "[[string]]", "The command lines that ran, in order."),
        ],
    ),
    (
        "FailRequest",
        &[
            TOKEN,
            LEASE,
            ("reason!", "string", "A stable word for the cause."),
            ("message!", "string", "What happened; of a long one the end is kept."),
            ("final", "boolean", "Whether another try cannot help."),
        ],
    ),
    ("ReleaseRequest", &[TOKEN, LEASE]),
    (
        "RequeuedResponse",
        &[
            ("state!", "string", "The job's state."),
            ("run_at_ms", "integer", "For queued: not before this."),
        ],
    ),
    (
        "PinRequest",
        &[
            ("job", "string", "For an output: the job's id."),
            ("pair", "PairWire", "For an output: the attempt's pair."),
        ],
    ),
    (
        "PinResponse",
        &[
            ("present!", "boolean", "If not: PUT it."),
            ("size_bytes", "integer", "Its length, once present."),
            ("generation", "integer", "If not: where to write it, for who sees the blobs' place."),
        ],
    ),
    (
        "FinishRequest",
        &[
            ("generation!", "integer", "The generation that it was written to."),
            ("size_bytes!", "integer", "Its length."),
        ],
    ),
    (
        "ArtefactsView",
        &[
            ("url", "string", "Where workers may write blobs themselves; none: nowhere."),
            ("presign_ms", "integer", "How long a signed address of a download is good."),
        ],
    ),
    ("BlobView", &[("digest!", "string", "Its name."), ("size_bytes!", "integer", "Its length.")]),
    ("WorkerList", &[("workers!", "[WorkerView]", "One a session.")]),
    (
        "WorkerView",
        &[
            ("worker!", "string", "The worker as its operator calls it."),
            ("session!", "string", "The session."),
            ("connected!", "boolean", "Whether its stream is open at this server."),
            ("leases!", "[LeaseHeldView]", "What it holds."),
        ],
    ),
    (
        "LeaseHeldView",
        &[
            JOB,
            TOKEN,
            ("granted_at_ms!", "integer", "When it was granted."),
            ("deadline_ms!", "integer", "When it ends unless renewed."),
            ("ttl_ms!", "integer", "Its length."),
        ],
    ),
];
