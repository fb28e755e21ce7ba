//! A private database server: in a temporary folder, on a socket of its own, as a user without
//! rights, gone with the test.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::session::LIMIT;

/// A folder that belongs to the user whom the server runs as.
#[derive(Debug)]
pub(crate) struct Home {
    dir: TempDir,
    /// The user and group to become; none where we have no rights to give away.
    ids: Option<(u32, u32)>,
}

impl Home {
    /// `user` is whom to become if we are root: database servers refuse root.
    pub(crate) fn of(user: &'static str) -> Home {
        let dir = tempfile::tempdir().expect("a folder");
        let ids = geteuid().is_root().then(|| ids(user));
        if let Some((uid, gid)) = ids {
            chown(dir.path(), Some(uid), Some(gid)).expect("root may give its folder away");
        }
        Home { dir, ids }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A program that runs as that user, in the folder, and dies with the thread that started it.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = command("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some((uid, gid)) = self.ids {
            let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={gid}"));
            command.args([uid, gid, "--clear-groups".to_owned()]);
        }
        // MariaDB removes what it takes for old temporary tables in its temporary folder when it
        // starts: in a shared one, those of its neighbours.
        command.arg(program).env("TMPDIR", self.path());
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }
}

/// Runs a command to its end, which must be a good one.
pub(crate) fn run(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn ids(user: &str) -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").expect("the users");
    let line = passwd.lines().find(|line| line.split(':').next() == Some(user));
    let line = line.unwrap_or_else(|| panic!("there is no user {user}: run scripts/setup test"));
    let id = |field| line.split(':').nth(field).and_then(|id: &str| id.parse().ok());
    (id(2).expect("a user id"), id(3).expect("a group id"))
}

/// A command of the tests.
#[expect(clippy::disallowed_methods, reason = "the tests start databases and their clients")]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}

/// The first of these programs that is there.
pub(crate) fn find(candidates: impl IntoIterator<Item = PathBuf>) -> PathBuf {
    let candidates: Vec<_> = candidates.into_iter().collect();
    let found = candidates.iter().find(|candidate| candidate.is_file());
    found.unwrap_or_else(|| panic!("none of {candidates:?}: run scripts/setup test")).clone()
}

/// A running server. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    end: Signal,
}

impl Server {
    /// Starts a server and waits until its log says that it is ready. `end` is the signal that
    /// ends it without ceremony.
    pub(crate) fn start(mut command: Command, ready: &str, end: Signal) -> Server {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = child.stderr.take().expect("piped");
        let (told, lines) = channel();
        std::thread::spawn(move || {
            // Read to its end: a server whose log is full stands still.
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        let server = Server { child, end };
        let mut log = Vec::new();
        loop {
            match lines.recv_timeout(LIMIT) {
                Ok(line) if line.contains(ready) => return server,
                Ok(line) => log.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("the server does not come up: {}", log.join("\n"))
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.end);
        let _ = self.child.wait();
    }
}
