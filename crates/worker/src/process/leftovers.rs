//! What runs on from a previous life of the worker is found and ended before anything new starts:
//! a leftover renderer would write into folders that are given out again, and use up the machine.

use std::{fs, io, path::Path};

use super::{
    record::{self, Record},
    tree::Selection,
};

/// What was found and ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// The pids of the processes that were killed.
    pub pids: Vec<i32>,
}

/// Ends all processes that attempts below `scratch_root` (one folder each) have left, and returns
/// when they are gone. Blocks; call it at start, before the folders are removed.
///
/// A process is known by pid and start time within this boot, or by the mark in its environment,
/// which no other process has: a recycled pid is not touched.
///
/// Must be called only by the one worker that owns `scratch_root`: it ends what runs there.
pub fn end_all(scratch_root: &Path) -> io::Result<Ended> {
    let attempts = match fs::read_dir(scratch_root) {
        Ok(attempts) => attempts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ended::default()),
        Err(error) => return Err(error),
    };
    let boot = record::boot_id()?;
    let mut selection = Selection::default();
    for attempt in attempts {
        for record in records(&attempt?.path())? {
            if record.boot == boot {
                selection.marks.extend(record.mark());
                selection.with.extend(record.processes);
            }
        }
    }
    if selection.with.is_empty() {
        return Ok(Ended::default());
    }
    let killed = selection.end(|| {})?;
    Ok(Ended { pids: killed.into_iter().map(|identity| identity.pid).collect() })
}

fn records(attempt: &Path) -> io::Result<Vec<Record>> {
    let Ok(entries) = fs::read_dir(attempt.join(record::FOLDER)) else {
        // No child was ever started for it, or it is a stray file.
        return Ok(Vec::new());
    };
    entries.map(|entry| Ok(Record::parse(&fs::read_to_string(entry?.path())?))).collect()
}
