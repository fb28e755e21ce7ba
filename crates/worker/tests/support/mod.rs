//! What the tests of this crate share.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod clips;
pub(crate) mod exports;
pub(crate) mod road;
pub(crate) mod service;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use palisade_worker::process::{Child, ChildSpec, NannyCommand, Supervisor};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// The nanny of the tests.
pub(crate) fn nanny() -> NannyCommand {
    NannyCommand {
        program: PathBuf::from(env!("CARGO_BIN_EXE_palisade-test-nanny")),
        words: vec!["nanny".into()],
    }
}

/// A child that runs a shell script in `folder`. Only tests use a shell.
pub(crate) async fn script(folder: &Path, text: &str) -> Child {
    let argv: Vec<OsString> = vec!["sh".into(), "-c".into(), text.into()];
    let spec =
        ChildSpec { argv, folder: folder.into(), label: "step-1".into(), ..ChildSpec::default() };
    Supervisor::new(nanny()).spawn(spec).await.expect("it can be started")
}

/// The next `count` lines of a child's standard output, as pids.
pub(crate) async fn pids(child: &mut Child, count: usize) -> Vec<i32> {
    let mut lines = BufReader::new(child.take_stdout().expect("not taken yet")).lines();
    let mut pids = Vec::new();
    while pids.len() < count {
        let line = lines.next_line().await.expect("readable").expect("a line");
        pids.push(line.trim().parse().expect("a pid"));
    }
    pids
}

/// The letter of a process's state, if there is such a process.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a stop signal holds the process: it is stopped, or it has one pending in a call that is
/// not interrupted (where a parent waits for its child of `vfork` to `exec`, and that one is
/// stopped). Either way it runs no code of its own until it is woken.
pub(crate) fn is_frozen(pid: i32) -> bool {
    let pending = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let bits = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?.trim();
        let stop = 1 << (Signal::STOP.as_raw() - 1);
        Some(u64::from_str_radix(bits, 16).ok()? & stop != 0)
    };
    match state(pid) {
        Some('T') => true,
        Some('D') => pending() == Some(true),
        _ => false,
    }
}

/// Whether the process is there and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The parent of a process.
pub(crate) fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_ascii_whitespace().nth(1).expect("a parent").parse().expect("a pid")
}

/// Waits until something is so; the time limit only ends a test that would hang.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _round in 0..6_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never came about: {what}");
}

/// Sends a signal.
pub(crate) fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a pid is not zero");
    kill_process(pid, signal).expect("the process is there");
}
