//! The note in an attempt's scratch of what runs for it, so that the next worker on the host can
//! find it should this one and its nanny both be killed.

use std::{fs, io, io::Write as _, path::Path};

use super::tree::Identity;

/// The folder of records within an attempt's scratch folder.
pub(super) const FOLDER: &str = "children";
/// The variable that marks all that a nanny started, also what left its group and session.
pub(super) const MARK_VARIABLE: &str = "PALISADE_CHILD";

/// What a record holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The boot in which it was written: start times mean nothing in another.
    pub(super) boot: String,
    /// The nanny and, soon after, its child.
    pub(super) processes: Vec<Identity>,
}

/// This boot's id.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

impl Record {
    /// The mark of all that this nanny starts: unique, since no two processes of a boot share pid
    /// and start time.
    pub(super) fn mark(&self) -> Option<String> {
        let Identity { pid, started } = self.processes.first()?;
        Some(format!("{MARK_VARIABLE}={}-{pid}-{started}", self.boot))
    }

    /// Writes the record. Plainly: what a crash of the machine leaves of it does not matter, as
    /// nothing of that boot runs any more.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("boot {}\n", self.boot);
        for Identity { pid, started } in &self.processes {
            text.push_str(&format!("process {pid} {started}\n"));
        }
        let fresh = path.with_extension("fresh");
        fs::File::create(&fresh)?.write_all(text.as_bytes())?;
        fs::rename(&fresh, path)
    }

    /// Reads a record. One that is cut off says what it says; a line that means nothing is passed.
    pub(super) fn parse(text: &str) -> Self {
        let mut record = Self { boot: String::new(), processes: Vec::new() };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["boot", id] => id.clone_into(&mut record.boot),
                ["process", pid, started] => {
                    if let (Ok(pid), Ok(started)) = (pid.parse(), started.parse()) {
                        record.processes.push(Identity { pid, started });
                    }
                }
                _ => {}
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("step-1.record");
        let processes = vec![Identity { pid: 10, started: 99 }, Identity { pid: 11, started: 100 }];
        let record = Record { boot: "b-1".into(), processes };
        record.write(&path).expect("written");
        assert_eq!(Record::parse(&fs::read_to_string(&path).expect("read")), record);
        assert_eq!(record.mark().as_deref(), Some("PALISADE_CHILD=b-1-10-99"));
    }
}
