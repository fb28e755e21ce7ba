//! A fenced object's row.

use deadpool_postgres::Client;
use palisade_core::object::Object;
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, count, json, number},
    },
};

const FIND: &str = "SELECT fence, key, kind, last, content FROM objects \
    WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE";
const INSERT: &str = "INSERT INTO objects (key, kind, fence, readable, last, content) \
    SELECT key, kind, fence, content IS NOT NULL, last, content \
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) \
        AS n (key, kind, fence, last, content)";
const UPDATE: &str = "WITH written AS (UPDATE objects o SET fence = n.fence, \
        readable = n.content IS NOT NULL, last = n.last, content = n.content \
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) \
        AS n (key, kind, fence, last, content) \
    WHERE o.key = n.key AND o.kind = n.kind AND o.fence <= n.fence RETURNING 1) \
    SELECT palisade_expect(count(*), $6::bigint, 'objects') FROM written";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[FIND, INSERT, UPDATE];

/// Decodes `fence, key, kind, last, content`.
pub(in crate::postgres) fn decode(row: &Row) -> Result<Object, Fault> {
    let columns = Columns::new("object", row);
    let readable = columns.get::<Option<&str>>(4)?.is_some();
    Ok(Object {
        key: columns.parsed(1)?,
        kind: columns.word(2)?,
        fence: columns.number(0)?,
        last: columns.json(3)?,
        content: if readable { Some(columns.json(4)?) } else { None },
    })
}

pub(in crate::postgres) fn find(client: &Client, keys: Vec<String>) -> Question<'_> {
    question!(client, FIND, keys)
}

pub(in crate::postgres) fn insert<'a>(client: &'a Client, objects: &[&Object]) -> Question<'a> {
    let (keys, kinds, fences, lasts, contents) = columns(objects);
    question!(client, INSERT, keys, kinds, fences, lasts, contents)
}

pub(in crate::postgres) fn update<'a>(client: &'a Client, objects: &[&Object]) -> Question<'a> {
    let (keys, kinds, fences, lasts, contents) = columns(objects);
    question!(client, UPDATE, keys, kinds, fences, lasts, contents, count(objects.len()))
}

type ObjectColumns = (Vec<String>, Vec<&'static str>, Vec<i64>, Vec<String>, Vec<Option<String>>);

fn columns(objects: &[&Object]) -> ObjectColumns {
    (
        objects.iter().map(|object| object.key.to_string()).collect(),
        objects.iter().map(|object| object.kind.as_str()).collect(),
        objects.iter().map(|object| number(object.fence)).collect(),
        objects.iter().map(|object| json(&object.last)).collect(),
        objects.iter().map(|object| object.content.as_ref().map(json)).collect(),
    )
}
