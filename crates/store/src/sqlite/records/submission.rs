//! A submission's row.

use palisade_core::{
    JobId,
    history::Joined,
    job::{Publication, Submission},
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, json, number},
};

fn how_word(how: Joined) -> &'static str {
    match how {
        Joined::New => "new",
        Joined::Joined => "joined",
        Joined::Cached => "cached",
        Joined::Revived => "revived",
    }
}

/// All submissions of a job, by rising number.
pub(in crate::sqlite) fn read_all(
    connection: &Connection,
    job: JobId,
) -> Result<Vec<Submission>, Fault> {
    let sql = "SELECT number, at_ms, how, withdrawn_at_ms, publish_key, publication \
               FROM submissions WHERE job = ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(job.0)]).map_err(fault)?;
    let mut submissions = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("submission", row);
        submissions.push(Submission {
            number: columns.number(0)?,
            at: columns.instant(1)?,
            how: columns.word(2)?,
            withdrawn_at: columns.optional_instant(3)?,
            publication: publication(&columns)?,
        });
    }
    Ok(submissions)
}

fn publication(columns: &Columns<'_>) -> Result<Option<Publication>, Fault> {
    if columns.optional_text(4)?.is_none() {
        return Ok(None);
    }
    let decided = columns.optional_text(5)?.is_some();
    let outcome = if decided { Some(columns.json(5)?) } else { None };
    Ok(Some(Publication { key: columns.parsed(4)?, outcome }))
}

/// Writes what changed. `before` and `after` are in rising order; none is ever taken away.
pub(in crate::sqlite) fn write_changes(
    connection: &Connection,
    job: JobId,
    before: &[Submission],
    after: &[Submission],
) -> Result<(), Fault> {
    let sql = "INSERT INTO submissions (job, number, at_ms, how, withdrawn_at_ms, publish_key, \
               publication) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE \
               SET how = excluded.how, withdrawn_at_ms = excluded.withdrawn_at_ms, \
               publication = excluded.publication";
    for (index, submission) in after.iter().enumerate() {
        if before.get(index) == Some(submission) {
            continue;
        }
        let publication = submission.publication.as_ref();
        let outcome = publication.and_then(|one| one.outcome.as_ref());
        let values = params![
            number(job.0),
            number(submission.number),
            instant(submission.at),
            how_word(submission.how),
            submission.withdrawn_at.map(instant),
            publication.map(|one| one.key.as_str()),
            outcome.map(json)
        ];
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        statement.execute(values).map_err(fault)?;
    }
    Ok(())
}
