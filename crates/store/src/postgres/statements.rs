//! Every statement of a batch: introduced to each connection when it is made.

use super::{batch, fetch, flush, records};

/// All of them, by file.
pub(super) const ALL: &[&[&str]] = &[
    records::blob::ALL,
    records::claim::ALL,
    records::collection::ALL,
    records::job::ALL,
    records::journal::ALL,
    records::lease::ALL,
    records::lock::ALL,
    records::object::ALL,
    records::outbox::ALL,
    records::publication::ALL,
    records::request::ALL,
    records::session::ALL,
    fetch::ALL,
    flush::ALL,
    batch::ALL,
];
