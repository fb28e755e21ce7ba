//! The tree of a child as `/proc` shows it, and signals to all of it.
//!
//! A process is named by its pid *and* its start time: a pid alone may by now be somebody else's.
//! Signals go through a pidfd, so that nothing can come between the look and the signal.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, for as long as the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// In clock ticks since the machine started.
    pub(super) started: u64,
}

/// One process as a scan found it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) identity: Identity,
    pub(super) parent: i32,
    state: u8,
}

impl Seen {
    /// Whether it still is a process: zombies hold no slot and need no signal.
    fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it can run no code of its own before it takes a stop signal that it was sent:
    /// it is stopped, or in a call that is not interrupted. In the latter state a parent waits
    /// for a child of `vfork` that was stopped before its `exec`, for as long as that one is.
    fn is_held(&self) -> bool {
        matches!(self.state, b'T' | b't' | b'D')
    }
}

impl Identity {
    /// The process of that pid now, if there is one that is not a zombie.
    pub(super) fn of(pid: i32) -> Option<Self> {
        look(pid).filter(Seen::is_alive).map(|seen| seen.identity)
    }

    /// Sends a signal to this very process. Nothing happens if it is gone.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // The handle is of whoever has the pid now; only then is the start time worth reading.
        if look(self.pid).is_some_and(|seen| seen.identity == self) {
            // It may have ended since, or belong to another user by now: both are not ours.
            let _gone = pidfd_send_signal(&handle, signal);
        }
    }
}

fn look(pid: i32) -> Option<Seen> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`. The program's name stands in parentheses and may hold anything, so the
/// fields are counted from the last one.
fn parse_stat(pid: i32, stat: &str) -> Option<Seen> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Seen { identity: Identity { pid, started }, parent, state })
}

/// All processes of the machine that can be seen.
fn scan() -> io::Result<Vec<Seen>> {
    let pids = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(look).collect())
}

/// Which processes are meant.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// All that these started, directly or not, but not they themselves.
    pub(super) below: Vec<i32>,
    /// These, if they still are who they were, and all that they started.
    pub(super) with: Vec<Identity>,
    /// All whose environment holds one of these marks.
    pub(super) marks: Vec<String>,
}

impl Selection {
    /// Those meant that are alive.
    fn find(&self) -> io::Result<Vec<Seen>> {
        let all = scan()?;
        let mut children: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (index, seen) in all.iter().enumerate() {
            children.entry(seen.parent).or_default().push(index);
        }
        let mut found: BTreeSet<usize> = BTreeSet::new();
        let mut open: Vec<usize> = Vec::new();
        for root in &self.below {
            open.extend(children.get(root).into_iter().flatten());
        }
        for (index, seen) in all.iter().enumerate() {
            if self.with.contains(&seen.identity) || self.is_marked(seen) {
                open.push(index);
            }
        }
        while let Some(index) = open.pop() {
            if found.insert(index) {
                open.extend(children.get(&all[index].identity.pid).into_iter().flatten());
            }
        }
        let own = std::process::id().cast_signed();
        let meant = found.into_iter().map(|index| all[index]);
        Ok(meant.filter(|seen| seen.is_alive() && seen.identity.pid != own).collect())
    }

    fn is_marked(&self, seen: &Seen) -> bool {
        if self.marks.is_empty() || !seen.is_alive() {
            return false;
        }
        let Ok(environment) = fs::read(format!("/proc/{}/environ", seen.identity.pid)) else {
            return false;
        };
        let has =
            |mark: &String| environment.split(|byte| *byte == 0).any(|e| e == mark.as_bytes());
        self.marks.iter().any(has)
    }

    /// Stops all of them. They may fork while we look, so it looks again until two scans in a row
    /// show nobody new, and all of them held.
    pub(super) fn stop(&self) -> io::Result<()> {
        let mut told = BTreeSet::new();
        let mut quiet_scans = 0;
        for _round in 0..STOP_ROUNDS_MAX {
            let found = self.find()?;
            let fresh: Vec<_> =
                found.iter().filter(|seen| !told.contains(&seen.identity)).collect();
            for seen in &fresh {
                seen.identity.signal(Signal::STOP);
                told.insert(seen.identity);
            }
            let settled = fresh.is_empty() && found.iter().all(Seen::is_held);
            quiet_scans = if settled { quiet_scans + 1 } else { 0 };
            if quiet_scans == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Lets all of them run again.
    pub(super) fn thaw(&self) -> io::Result<()> {
        self.find()?.into_iter().for_each(|seen| seen.identity.signal(Signal::CONT));
        Ok(())
    }

    /// Kills all of them, also those that are stopped, and returns when they are gone. `between`
    /// is called after every round (a nanny reaps in it). Answers those that were killed.
    pub(super) fn end(&self, mut between: impl FnMut()) -> io::Result<BTreeSet<Identity>> {
        let mut killed = BTreeSet::new();
        let mut quiet_scans = 0;
        let mut pause_ms = 1;
        // Stopped first, so that nobody forks faster than we kill.
        self.stop()?;
        while quiet_scans < 2 {
            let found = self.find()?;
            quiet_scans = if found.is_empty() { quiet_scans + 1 } else { 0 };
            for seen in found {
                seen.identity.signal(Signal::KILL);
                killed.insert(seen.identity);
            }
            between();
            if quiet_scans == 0 {
                std::thread::sleep(Duration::from_millis(pause_ms));
                // One in an uninterruptible call may take its time; no need to hurry then.
                pause_ms = (pause_ms * 2).min(500);
            }
        }
        Ok(killed)
    }
}

/// After this many rounds (of a ms at least) those not stopped yet will stop when they can.
const STOP_ROUNDS_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) S 1 (b) c) T 42 7 7 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 98765 1 2 3";
        let seen = parse_stat(7, stat).expect("well formed");
        assert_eq!((seen.parent, seen.state, seen.identity.started), (42, b'T', 98765));
        assert!(seen.is_alive() && seen.is_held());
    }

    #[test]
    fn a_signal_for_a_recycled_pid_reaches_nobody() {
        let own = Identity::of(std::process::id().cast_signed()).expect("we run");
        // This very process, had it been started at another time. SIGKILL would end the test.
        Identity { started: own.started + 1, ..own }.signal(Signal::KILL);
    }
}
