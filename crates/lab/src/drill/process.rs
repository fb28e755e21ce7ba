//! Processes of the drill's own, and the signals that are sent to them.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::DrillError;

/// A process that this drill started. Dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: tokio::process::Child,
    lines: Arc<Mutex<Vec<String>>>,
    log: PathBuf,
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended(pub ExitStatus);

impl Process {
    /// Starts a program with these arguments. Its standard output is kept line by line, its
    /// standard error goes to `log`.
    #[expect(clippy::disallowed_methods, reason = "the drill's own processes start here alone")]
    pub fn start(
        name: &str,
        program: &Path,
        args: &[String],
        env: &[(&str, &str)],
        log: &Path,
    ) -> Result<Self, DrillError> {
        let io = |what: &str| DrillError::io(format!("{what} {name}"));
        let file = std::fs::File::options().create(true).append(true).open(log);
        let file = file.map_err(io("cannot write the log of"))?;
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .map_err(io("cannot start"))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = child.stdout.take().expect("it was piped");
        tokio::spawn(collect(stdout, Arc::clone(&lines)));
        Ok(Self { name: name.to_owned(), child, lines, log: log.to_owned() })
    }

    /// What the drill calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id. None once it was seen to end.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The lines of its standard output so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("nobody panics while holding it").clone()
    }

    /// Its standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `SIGKILL`: it ends without a word.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// `SIGSTOP`: it stops, and does not know it.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// `SIGCONT`: it wakes, and believes that no time has passed.
    pub fn wake(&self) {
        self.signal(Signal::CONT);
    }

    /// `SIGTERM`: it is asked to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended a moment ago; it is not reaped yet, so the id is still its own.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until it ends.
    pub async fn ended(&mut self) -> Result<Ended, DrillError> {
        let doing = format!("cannot wait for {}", self.name);
        self.child.wait().await.map(Ended).map_err(DrillError::io(doing))
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

async fn collect(stdout: impl AsyncRead + Unpin, lines: Arc<Mutex<Vec<String>>>) {
    let mut reader = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.lock().expect("nobody panics while holding it").push(line);
    }
}
