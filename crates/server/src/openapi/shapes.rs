//! The shapes that submitters see: wishes, jobs, recipes, the journal.

use super::Member;

/// Each with its members.
pub(super) const SHAPES: &[(&str, &[Member])] = &[
    (
        "Problem",
        &[
            ("status!", "integer", "The HTTP status."),
            ("code!", "string", "The stable code: stale_token, invalid, unavailable, …"),
            ("title!", "string", "The status in words."),
            ("detail!", "string", "What happened, naming field, value and what is allowed."),
            ("...", "", "Facts of the code: fence, reason, completed_by, field, allowed, …"),
        ],
    ),
    (
        "Status",
        &[
            ("status!", "string", "ok, or ready."),
            ("blobs", "string", "unreachable, while the storage of blobs does not answer."),
        ],
    ),
    (
        "SubmitRequest",
        &[
            ("recipe!", "string", "A recipe of the server's book."),
            ("inputs", "{InputWire}", "By the name that the recipe declares."),
            ("parameters", "{any}", "By name: strings, numbers or booleans."),
            ("request_id", "string", "Asked again with it, the first answer is given again."),
            ("fresh", "boolean", "Render again, even if it was rendered already."),
            ("priority", "integer", "Higher goes first; -100 to 100."),
            ("run_at_ms", "integer", "Not before this."),
            ("backup_after_ms", "integer", "After how long a second attempt may run beside."),
            ("publish", "string", "The name under which the outputs are to be published."),
            ("tenant", "string", "Whose it is."),
        ],
    ),
    ("SubmitMany", &[("jobs!", "[SubmitRequest]", "The wishes.")]),
    (
        "InputWire",
        &[
            ("digest!", "string", "Its bytes, uploaded before."),
            ("size_bytes!", "integer", "Their length."),
            ("name", "string", "What the customer calls it."),
        ],
    ),
    (
        "SubmitResponse",
        &[
            ("job!", "string", "The job's id."),
            ("submission!", "integer", "The submission's own number."),
            ("deduplicated!", "boolean", "Whether it joined a job that was there."),
            ("cached!", "boolean", "Whether that job is complete already."),
        ],
    ),
    ("SubmitRefused", &[("error!", "Problem", "Why.")]),
    (
        "SubmitManyResponse",
        &[("results!", "[SubmitResponse|SubmitRefused]", "One a wish, in their order.")],
    ),
    (
        "CancelRequest",
        &[
            ("submission", "integer", "Which; may be left out where there is one only."),
            ("all", "boolean", "All of them."),
            ("request_id", "string", "Asked again with it, nothing is done a second time."),
        ],
    ),
    (
        "CancelResponse",
        &[
            ("withdrawn!", "integer", "How many submissions it withdrew."),
            ("state!", "string", "The job's state afterwards."),
        ],
    ),
    (
        "RetryRequest",
        &[
            ("submission", "integer", "For a cancelled job: the submission to revive."),
            ("request_id", "string", "Asked again with it, nothing is done a second time."),
        ],
    ),
    ("RetryResponse", &[("state!", "string", "The job's state afterwards.")]),
    (
        "JobView",
        &[
            ("id!", "string", "Its id."),
            ("tenant!", "string", "Whose it is."),
            ("state!", "string", "queued, running, complete, failed or cancelled."),
            ("claimable!", "boolean", "Whether a claim would be granted now."),
            ("recipe!", "string", "The recipe."),
            ("definition!", "string", "Its definition's digest."),
            ("key!", "string", "The job key."),
            ("inputs!", "{InputWire}", "By name."),
            ("parameters!", "{string}", "Complete, in canonical text."),
            ("priority!", "integer", "Higher goes first."),
            ("run_at_ms!", "integer", "Not before this."),
            ("fence!", "integer", "The lowest token still accepted."),
            ("failures!", "integer", "Since the last retry."),
            ("losses!", "integer", "Since the last retry."),
            ("submissions!", "[SubmissionView]", "Who wants it."),
            ("attempts!", "[AttemptView]", "Who tried it."),
            ("completion", "CompletionView", "What was made, once complete."),
            ("dead_letter", "DeadLetterView", "Why it failed, once failed."),
            ("created_at_ms!", "integer", "When it was submitted first."),
            ("moved_at_ms!", "integer", "When it last moved."),
            ("now_ms!", "integer", "The store's clock when this was read."),
        ],
    ),
    (
        "SubmissionView",
        &[
            ("number!", "integer", "Its number."),
            ("at_ms!", "integer", "When it was recorded."),
            ("how!", "string", "new, joined, cached or revived."),
            ("withdrawn_at_ms", "integer", "When it was withdrawn."),
            ("publication", "PublicationView", "Where its outputs are to be published."),
        ],
    ),
    (
        "PublicationView",
        &[
            ("key!", "string", "The name: a fenced object's key."),
            ("state!", "string", "pending, published, superseded, withdrawn or wrong_kind."),
            ("version", "integer", "The object's version that it made."),
            ("fence", "integer", "The lowest number that the name accepted: it was superseded."),
            ("at_ms", "integer", "When it was decided."),
        ],
    ),
    (
        "AttemptView",
        &[
            ("token!", "integer", "Its fencing token."),
            ("worker!", "string", "Its worker."),
            ("session!", "string", "The worker's session."),
            ("outcome!", "string", "open, or what closed it."),
            ("backup!", "boolean", "Whether it was granted beside a live one."),
            ("granted_at_ms!", "integer", "When it was granted."),
            ("renewed_at_ms!", "integer", "When it was last renewed."),
            ("deadline_ms!", "integer", "When its lease ends unless renewed."),
            ("ttl_ms!", "integer", "The lease's length."),
            ("closed_at_ms", "integer", "When it was closed."),
            ("message", "string", "The failure it reported."),
        ],
    ),
    (
        "CompletionView",
        &[
            ("token!", "integer", "The token that did it."),
            ("worker!", "string", "The worker that held it."),
            ("at_ms!", "integer", "When."),
            ("manifest!", "Manifest", "What was made."),
        ],
    ),
    (
        "DeadLetterView",
        &[("reason!", "string", "A stable word."), ("message!", "string", "In a person's words.")],
    ),
    (
        "JobList",
        &[
            ("jobs!", "[JobView]", "Newest first."),
            ("next_cursor", "string", "Where the next page begins."),
        ],
    ),
    (
        "EventView",
        &[
            ("position!", "integer", "Its position in the journal."),
            ("event!", "string", "submitted, granted, closed, moved, refused, …"),
            ("at_ms!", "integer", "When."),
            ("job!", "string", "The job's id."),
            ("...", "", "What belongs to the event: token, worker, reason, state, …"),
        ],
    ),
    ("HistoryView", &[("events!", "[EventView]", "Oldest first.")]),
    ("RecipeList", &[("recipes!", "[RecipeView]", "In the order of their names.")]),
    (
        "RecipeView",
        &[
            ("name!", "string", "Its name in submissions."),
            ("description!", "string", "For people."),
            ("definition!", "string", "Its definition's digest."),
            ("tool!", "ToolView", "The tool that makes the output."),
            ("inputs!", "[RecipeInputView]", "What must be given."),
            ("parameters!", "[ParameterView]", "What may be given."),
            ("outputs!", "[RecipeOutputView]", "What comes of it."),
        ],
    ),
    (
        "ToolView",
        &[
            ("name!", "string", "The program's name."),
            ("version", "string", "The version that alone may run it."),
        ],
    ),
    (
        "RecipeInputView",
        &[
            ("name!", "string", "Its name in submissions."),
            ("description!", "string", "For people."),
        ],
    ),
    (
        "ParameterView",
        &[
            ("name!", "string", "Its name in submissions."),
            ("description!", "string", "For people."),
            ("type!", "string", "integer, decimal, choice, boolean or text."),
            ("min", "any", "The smallest."),
            ("max", "any", "The largest."),
            ("digits", "integer", "Most digits after the point."),
            ("choices", "[string]", "The list."),
            ("pattern", "string", "What the whole text must match."),
            ("bytes_max", "integer", "Longest, in bytes."),
            ("allowed!", "string", "The same in words."),
            ("default", "string", "The value when none is given."),
        ],
    ),
    (
        "RecipeOutputView",
        &[
            ("name!", "string", "Its name, or a pattern with one *."),
            ("media_type!", "string", "The media type of the file or files."),
            ("required!", "boolean", "Whether a render without it has failed."),
        ],
    ),
];
