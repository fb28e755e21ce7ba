//! The first answer to a request.

use deadpool_postgres::Client;
use palisade_core::RequestId;

use crate::{
    postgres::session::{Question, question},
    tables::{Recorded, Scope},
};

const FIND: &str = "SELECT scope, id, fingerprint, answer FROM requests \
    JOIN unnest($1::text[], $2::text[]) AS w (scope, id) USING (scope, id)";
/// A request that another server has answered meanwhile is refused: the batch runs again and finds
/// that answer.
const INSERT: &str = "INSERT INTO requests (scope, id, fingerprint, answer) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[FIND, INSERT];

/// A scope as its column holds it.
pub(in crate::postgres) fn scope_column(scope: &Scope) -> String {
    match scope {
        Scope::Tenant(tenant) => format!("tenant/{tenant}"),
        Scope::Job(job) => format!("job/{job}"),
    }
}

pub(in crate::postgres) fn find<'a>(
    client: &'a Client,
    requests: &[&(Scope, RequestId)],
) -> Question<'a> {
    question!(
        client,
        FIND,
        requests.iter().map(|(scope, _)| scope_column(scope)).collect::<Vec<_>>(),
        requests.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn insert<'a>(
    client: &'a Client,
    requests: &[(&(Scope, RequestId), &Recorded)],
) -> Question<'a> {
    let bytes = |recorded: &Recorded| recorded.fingerprint.as_bytes().to_vec();
    question!(
        client,
        INSERT,
        requests.iter().map(|((scope, _), _)| scope_column(scope)).collect::<Vec<_>>(),
        requests.iter().map(|((_, id), _)| id.to_string()).collect::<Vec<_>>(),
        requests.iter().map(|(_, recorded)| bytes(recorded)).collect::<Vec<_>>(),
        requests.iter().map(|(_, recorded)| recorded.answer.clone()).collect::<Vec<_>>(),
    )
}
