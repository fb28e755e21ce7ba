//! Webhooks: their operations and shapes.

use super::{
    Member,
    operations::{JSON, Operation, get},
};

/// All of them.
pub(super) const OPERATIONS: &[Operation] = &[
    get("/v1/webhooks", "Who is told.", &[], &[("200", JSON, "WebhookList")]),
    Operation {
        path: "/v1/webhooks",
        method: "post",
        summary: "Add a webhook. The answer alone shows its secret.",
        parameters: &[],
        body: Some((JSON, "WebhookRequest")),
        answers: &[("201", JSON, "WebhookView")],
    },
    get("/v1/webhooks/{id}", "One webhook.", &[], &[("200", JSON, "WebhookView")]),
    Operation {
        path: "/v1/webhooks/{id}",
        method: "delete",
        summary: "Remove a webhook, and what was still to be told to it.",
        parameters: &[],
        body: None,
        answers: &[("204", "", "")],
    },
    Operation {
        path: "/v1/webhooks/{id}/rotate",
        method: "post",
        summary: "Another secret. The answer alone shows it; the old one signs too for a while.",
        parameters: &[],
        body: Some((JSON, "RotateRequest")),
        answers: &[("200", JSON, "WebhookView")],
    },
    get(
        "/v1/webhooks/{id}/deliveries",
        "What is told to a webhook, newest first.",
        &[
            ("query", "state", "string", "Only pending, leased, delivered or dead ones."),
            ("query", "cursor", "string", "Where the page begins: next_cursor of the one before."),
            ("query", "limit", "integer", "At most so many, 1 to 1000; 100 if not given."),
        ],
        &[("200", JSON, "DeliveryList")],
    ),
    Operation {
        path: "/v1/deliveries/{id}/redeliver",
        method: "post",
        summary: "Deliver a notification again, under the same id.",
        parameters: &[],
        body: None,
        answers: &[("200", JSON, "DeliveryView")],
    },
];

/// Each with its members.
pub(super) const SHAPES: &[(&str, &[Member])] = &[
    (
        "WebhookRequest",
        &[
            ("url!", "string", "Where to: an http:// or https:// address."),
            (
                "events",
                "[string]",
                "job.completed, job.failed, job.cancelled, job.progress; the \
              first three if none is named.",
            ),
            ("tenant", "string", "Whose jobs; the default tenant's if none is named."),
        ],
    ),
    (
        "RotateRequest",
        &[("keep_ms", "integer", "How long the old secret signs too; a day, at most a week.")],
    ),
    (
        "WebhookView",
        &[
            ("id!", "string", "Its id."),
            ("url!", "string", "Where to."),
            ("events!", "[string]", "What of."),
            ("tenant!", "string", "Whose jobs."),
            ("created_at_ms!", "integer", "When it was made."),
            ("secret", "string", "What signs: whsec_ and base64. Shown once."),
            ("old_secret_until_ms", "integer", "Up to when the secret before it signs too."),
        ],
    ),
    ("WebhookList", &[("webhooks!", "[WebhookView]", "By id.")]),
    (
        "DeliveryView",
        &[
            ("id!", "string", "Its stable id: the webhook-id header of every delivery of it."),
            ("webhook!", "string", "The webhook."),
            ("event!", "string", "What happened."),
            ("job!", "string", "The job."),
            ("submission!", "integer", "The submission."),
            ("token", "integer", "The token that did it."),
            ("seq!", "integer", "Rises with each thing told about the job."),
            ("at_ms!", "integer", "When it happened."),
            ("state!", "string", "pending, leased, delivered or dead."),
            ("tries!", "integer", "Tries begun since it was queued."),
            ("due_at_ms!", "integer", "Pending: not before this. Leased: up to when. Else: since."),
            ("last_status", "integer", "The receiver's status at the last failed try."),
            ("last_error", "string", "What the last failed try came to."),
        ],
    ),
    (
        "DeliveryList",
        &[
            ("deliveries!", "[DeliveryView]", "Newest first."),
            ("next_cursor", "string", "Where the next page begins; absent on the last."),
        ],
    ),
];
