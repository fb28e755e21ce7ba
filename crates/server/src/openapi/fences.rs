//! Locks and fenced objects: their operations and shapes.

use super::{
    Member,
    operations::{FILE_ANSWERS, FILE_HEADERS, JSON, Operation, get},
};

const TOKEN: Member = ("token!", "integer", "The fencing token.");
const LEASE: Member = ("lease!", "string", "The lease id.");

/// How a page of names is asked for.
const PAGE: &[(&str, &str, &str, &str)] = &[
    ("query", "prefix", "string", "Only names that begin so."),
    ("query", "cursor", "string", "Where the page begins: the last one's next_cursor."),
    ("query", "limit", "integer", "At most so many, 1 to 1000; 100 if not given."),
];

/// What of a lock is shown.
const LOCK_VIEW: &[(&str, &str, &str, &str)] = &[
    ("query", "history", "boolean", "Show its history instead."),
    ("query", "limit", "integer", "Of its history the newest entries, 1 to 100000; 10000."),
];

/// How a fenced write shows its pair.
const WRITE_HEADERS: &[(&str, &str, &str, &str)] = &[
    ("header", "Fencing-Token!", "integer", "The fencing token."),
    ("header", "Fencing-Lease!", "string", "The lease id."),
    ("header", "Fencing-Op", "integer", "Which of this holder's writes it is, rising; 1."),
    ("header", "If-Match", "string", "The version that must be there, as its ETag says; or *."),
    ("header", "If-None-Match", "string", "*: nothing must be there."),
];

/// All of them.
pub(super) const OPERATIONS: &[Operation] = &[
    get("/v1/locks", "The locks.", PAGE, &[("200", JSON, "LockList")]),
    get(
        "/v1/locks/{*path}",
        "One lock; with history=true, or as NAME/history, what happened to it, oldest first, with \
         what its holders wrote or were refused to write.",
        LOCK_VIEW,
        &[("200", JSON, "LockView|HistoryView")],
    ),
    Operation {
        path: "/v1/locks/{*path}",
        method: "post",
        summary: "NAME/acquire, NAME/renew or NAME/release; a name may have slashes.",
        parameters: &[],
        body: Some((JSON, "AcquireRequest|PairWire")),
        answers: &[("200", JSON, "AcquireResponse|RenewResponse|LockReleased")],
    },
    get("/v1/objects", "The fenced objects.", PAGE, &[("200", JSON, "ObjectList")]),
    get(
        "/v1/objects/{*key}",
        "A fenced object's bytes, a published manifest, or a file of one.",
        FILE_HEADERS,
        FILE_ANSWERS,
    ),
    Operation {
        path: "/v1/objects/{*key}",
        method: "put",
        summary: "Write a fenced object.",
        parameters: WRITE_HEADERS,
        body: Some(("*/*", "bytes")),
        answers: &[("200", JSON, "ObjectView")],
    },
    Operation {
        path: "/v1/objects/{*key}",
        method: "delete",
        summary: "Delete a fenced object; its fence stays.",
        parameters: WRITE_HEADERS,
        body: None,
        answers: &[("200", JSON, "ObjectView")],
    },
    Operation {
        path: "/v1/objects/{*key}",
        method: "post",
        summary: "KEY/fence: raise the fence without writing.",
        parameters: &[],
        body: Some((JSON, "PairWire")),
        answers: &[("200", JSON, "ObjectView")],
    },
];

/// Each with its members.
pub(super) const SHAPES: &[(&str, &[Member])] = &[
    (
        "AcquireRequest",
        &[
            ("holder!", "string", "Who asks, as it calls itself."),
            ("ttl_ms", "integer", "The lease's length; 30000 if not given."),
            ("wait_ms", "integer", "How long to wait while somebody else holds it; 0."),
            ("request_id", "string", "Asked again with it, the same grant or the same wish."),
        ],
    ),
    (
        "AcquireResponse",
        &[
            TOKEN,
            LEASE,
            ("ttl_ms!", "integer", "The lease's length, counted from the grant."),
            ("waited_ms!", "integer", "How long the request had waited at the server."),
        ],
    ),
    (
        "RenewResponse",
        &[
            ("ttl_ms!", "integer", "The lease's length, counted from this renewal."),
            ("deadline_ms!", "integer", "Up to when nobody else is granted the lock."),
        ],
    ),
    ("LockReleased", &[("released!", "boolean", "True.")]),
    (
        "LockList",
        &[
            ("locks!", "[LockView]", "By name."),
            ("next_cursor", "string", "Where the next page begins; absent on the last."),
        ],
    ),
    (
        "LockView",
        &[
            ("name!", "string", "Its name."),
            ("fence!", "integer", "The lowest token still accepted."),
            ("held", "LockHeldView", "Who holds it."),
            ("waiters!", "[LockWaiterView]", "In the order in which they will be served."),
        ],
    ),
    (
        "LockHeldView",
        &[
            TOKEN,
            ("holder!", "string", "As it calls itself."),
            ("granted_at_ms!", "integer", "When it was granted."),
            ("ttl_ms!", "integer", "The lease's length."),
            ("deadline_ms!", "integer", "Up to when nobody else is granted it."),
        ],
    ),
    (
        "LockWaiterView",
        &[("holder!", "string", "As it calls itself."), ("since_ms!", "integer", "Since when.")],
    ),
    (
        "ObjectList",
        &[
            ("objects!", "[ObjectView]", "By key; deleted ones are not among them."),
            ("next_cursor", "string", "Where the next page begins; absent on the last."),
        ],
    ),
    (
        "ObjectView",
        &[
            ("key!", "string", "Its name."),
            ("fence!", "integer", "The lowest token still accepted."),
            ("token!", "integer", "The number that wrote it last."),
            ("op!", "integer", "Which of that holder's writes it was."),
            ("version!", "integer", "The version that the write made; the ETag names it."),
            ("written_at_ms!", "integer", "When."),
            ("job", "string", "Of a published name: whose outputs it shows."),
            ("digest", "string", "The bytes; absent: deleted, only raised, or published."),
            ("size_bytes", "integer", "Their length."),
            ("media_type", "string", "Their media type."),
        ],
    ),
];
