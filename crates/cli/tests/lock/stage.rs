//! A server, and commands under its locks.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use palisade_lab::drill::{Cluster, Process, wait_for};

use crate::common::{LIMIT, PROGRAM};

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) dir: tempfile::TempDir,
}

/// A command under a lock, and what it has said of itself.
pub(crate) struct Holder {
    pub(crate) process: Process,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let cluster = Cluster::start(Path::new(PROGRAM), dir.path(), &[]).await;
        Self { cluster: cluster.expect("the server starts"), dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts `palisade lock FLAGS… -- sh -c SCRIPT`.
    pub(crate) fn lock(&self, name: &str, flags: &[&str], script: &str) -> Holder {
        let argv = ["sh", "-c", script];
        self.lock_argv(name, flags, &argv, &[])
    }

    pub(crate) fn lock_argv(
        &self,
        name: &str,
        flags: &[&str],
        argv: &[&str],
        environment: &[(&str, &str)],
    ) -> Holder {
        let mut args = vec!["lock"];
        args.extend(flags);
        args.extend(["--holder", name, "--"]);
        args.extend(argv);
        let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
        let (url, folder) = (self.cluster.url(), self.dir.path().display().to_string());
        let mut all = vec![("PALISADE_SERVER", url.as_str()), ("P", PROGRAM), ("DIR", &folder)];
        all.extend(environment);
        let log = self.path(&format!("{name}.log"));
        let process = Process::start(name, Path::new(PROGRAM), &args, &all, &log);
        Holder { process: process.expect("it starts") }
    }

    /// Runs `palisade` to its end, with this on standard input.
    pub(crate) fn palisade(&self, args: &[&str], input: &str) -> Output {
        run(&self.cluster.url(), args, input)
    }

    /// Makes the file that a script waits for.
    pub(crate) fn let_go(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file");
    }

    /// What a reader sees; none: there is nothing.
    pub(crate) fn read(&self, key: &str) -> Option<String> {
        let got = self.palisade(&["object", "get", key], "");
        match got.status.code() {
            Some(0) => Some(text(&got.stdout)),
            Some(4) => None,
            _ => panic!("{}", text(&got.stderr)),
        }
    }
}

/// Runs `palisade` to its end, not on the runtime's threads alone: tests that call it are
/// multi-threaded where something else has to go on meanwhile.
#[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
pub(crate) fn run(url: &str, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(PROGRAM)
        .args(args)
        .env("PALISADE_SERVER", url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // It may end without having read anything.
    let _unread = child.stdin.take().expect("piped").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Holder {
    /// The line of the command's output that begins so, without its beginning.
    pub(crate) async fn said(&self, start: &str) -> String {
        let what = format!("{} to say {start:?}", self.process.name());
        let said = wait_for(&what, LIMIT, async || {
            let lines = self.process.lines();
            let found = lines.iter().find_map(|line| line.strip_prefix(start));
            found.map(str::to_owned).ok_or_else(|| format!("{lines:?}; {}", self.process.log()))
        });
        said.await.expect("it says so")
    }

    /// Waits until `palisade` itself has said this on standard error.
    pub(crate) async fn logged(&self, what: &str) {
        wait_for(what, LIMIT, async || {
            let log = self.process.log();
            if log.contains(what) { Ok(()) } else { Err(log) }
        })
        .await
        .expect("it says so");
    }

    pub(crate) async fn code(&mut self) -> Option<i32> {
        let ended = tokio::time::timeout(LIMIT, self.process.ended()).await;
        ended.expect("it ends in time").expect("it ends").0.code()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.id().expect("it runs"), name);
    }
}

/// Sends a signal by its name.
#[expect(clippy::disallowed_methods, reason = "a test's own tool")]
pub(crate) fn signal(pid: u32, name: &str) {
    let done = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(done.expect("kill runs").success(), "kill -s {name} {pid}");
}

/// The state of a process as `/proc` has it; none: it is gone (a zombie is).
pub(crate) fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit(')').next()?.trim().chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

/// Waits until a process's state is one of these; a blank stands for one that is gone.
pub(crate) async fn until_state(pid: u32, states: &str) {
    wait_for(&format!("{pid} to be in one of {states:?}"), LIMIT, async || {
        let state = state_of(pid).unwrap_or(' ');
        if states.contains(state) { Ok(()) } else { Err(state.to_string()) }
    })
    .await
    .expect("it comes to that");
}

/// Whether a stop signal holds a process: it is stopped, or has one pending in a call that is not
/// interrupted (where a parent waits for its child of `vfork`, which was stopped before its `exec`).
/// Either way it runs no code of its own until it is woken.
pub(crate) fn is_frozen(pid: u32) -> bool {
    let pending = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let bits = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"))?.trim();
        let stop = 1 << (rustix::process::Signal::STOP.as_raw() - 1);
        Some(u64::from_str_radix(bits, 16).ok()? & stop != 0)
    };
    match state_of(pid) {
        Some('T') => true,
        Some('D') => pending().unwrap_or(false),
        _ => false,
    }
}

/// Waits until a process is held by a stop signal.
pub(crate) async fn until_frozen(pid: u32) {
    wait_for(&format!("{pid} to be frozen"), LIMIT, async || {
        if is_frozen(pid) { Ok(()) } else { Err(format!("{:?}", state_of(pid))) }
    })
    .await
    .expect("it comes to that");
}

/// A moment, for what must *not* happen meanwhile; too short, it would only notice less.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(700)).await;
}
