//! What a claim walks: queued jobs, each capability's in the order of one partial index.
//!
//! Invariant: the cost depends on how many priorities are in use, never on how many jobs wait.

use std::cmp::Reverse;

use palisade_core::{JobId, Timestamp};
use rusqlite::{Connection, params};

use crate::{command::Capability, fault::Fault};

use super::values::{Columns, fault, instant};

const DUE: &str = "SELECT id, run_at_ms FROM jobs WHERE state = 'queued' AND recipe = ?1 \
                   AND definition = ?2 AND priority = ?3 AND run_at_ms <= ?4 \
                   ORDER BY run_at_ms, id LIMIT ?5";
const PRIORITY: &str = "SELECT priority FROM jobs WHERE state = 'queued' AND recipe = ?1 \
                        AND definition = ?2 AND priority < ?3 ORDER BY priority DESC LIMIT 1";
const NEXT: &str = "SELECT run_at_ms FROM jobs WHERE state = 'queued' AND recipe = ?1 \
                    AND definition = ?2 AND priority = ?3 AND run_at_ms > ?4 \
                    ORDER BY run_at_ms LIMIT 1";
/// All of the above, whose plans a test looks at.
#[cfg(test)]
pub(super) const STATEMENTS: [&str; 3] = [DUE, PRIORITY, NEXT];

/// The job's place among all that are due: higher priority first, then who has waited longest.
type Place = (Reverse<i16>, Timestamp, JobId);

/// Queued jobs that are due and fit, in their order.
pub(super) fn due(
    connection: &Connection,
    fits: &[Capability],
    now: Timestamp,
    limit: usize,
) -> Result<Vec<JobId>, Fault> {
    let mut found: Vec<Place> = Vec::new();
    for (index, capability) in fits.iter().enumerate() {
        // Named twice, it would be granted twice.
        if !fits[..index].contains(capability) {
            of_capability(connection, capability, now, limit, &mut found)?;
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, _, id)| id).take(limit).collect())
}

fn of_capability(
    connection: &Connection,
    capability: &Capability,
    now: Timestamp,
    limit: usize,
    found: &mut Vec<Place>,
) -> Result<(), Fault> {
    let mut room = limit;
    let mut below = None;
    while room > 0
        && let Some(priority) = next_priority(connection, capability, below)?
    {
        let mut statement = connection.prepare_cached(DUE).map_err(fault)?;
        let values = params![
            capability.recipe.as_str(),
            capability.definition.as_bytes(),
            priority,
            instant(now),
            i64::try_from(room).unwrap_or(i64::MAX)
        ];
        let mut rows = statement.query(values).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let columns = Columns::new("job", row);
            found.push((Reverse(priority), columns.instant(1)?, columns.job(0)?));
            room -= 1;
        }
        below = Some(priority);
    }
    Ok(())
}

/// The highest priority in use below another: a loose scan, one probe each.
fn next_priority(
    connection: &Connection,
    capability: &Capability,
    below: Option<i16>,
) -> Result<Option<i16>, Fault> {
    let below = below.map_or(i64::from(i16::MAX) + 1, i64::from);
    let mut statement = connection.prepare_cached(PRIORITY).map_err(fault)?;
    let values = params![capability.recipe.as_str(), capability.definition.as_bytes(), below];
    let mut rows = statement.query(values).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => Columns::new("job", row).get(0).map(Some),
    }
}

/// The earliest instant after `now` at which a queued job that fits becomes due.
pub(super) fn next_due(
    connection: &Connection,
    fits: &[Capability],
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let mut earliest: Option<Timestamp> = None;
    for capability in fits {
        let mut below = None;
        while let Some(priority) = next_priority(connection, capability, below)? {
            let mut statement = connection.prepare_cached(NEXT).map_err(fault)?;
            let values = params![
                capability.recipe.as_str(),
                capability.definition.as_bytes(),
                priority,
                instant(now)
            ];
            let mut rows = statement.query(values).map_err(fault)?;
            if let Some(row) = rows.next().map_err(fault)? {
                let at = Columns::new("job", row).instant(0)?;
                earliest = Some(earliest.map_or(at, |earliest| earliest.min(at)));
            }
            below = Some(priority);
        }
    }
    Ok(earliest)
}
