//! One program of a render, run to its end under the render's control and limits.

use std::{path::PathBuf, sync::Arc, time::Duration};

use palisade_core::clock::Clock;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    time::{MissedTickBehavior, interval, timeout},
};

use super::{
    RenderControl, RenderError,
    control::Wish,
    stopwatch::{Reached, Stopwatch},
};
use crate::{
    media::{self, ToolIdentity},
    process::{ChildSpec, Exit, Supervisor},
};

/// What the programs of one render have in common.
pub(super) struct Runner {
    pub(super) supervisor: Supervisor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) control: RenderControl,
    /// The scratch folder, in which they run.
    pub(super) folder: PathBuf,
    pub(super) stopwatch: Stopwatch,
}

/// How a program ended, unless it was killed.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) exit: Exit,
    /// The end of what it wrote to standard error.
    pub(super) log: String,
}

/// What a program writes to standard output goes here as it comes.
pub(super) trait Listener: Send {
    /// Whether it tells its progress, so that silence is a stall.
    fn tells_progress(&self) -> bool;
    /// The next line, without its end. Answers whether anything has moved.
    fn line(&mut self, line: &str) -> bool;
}

/// How often limits are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the rest of standard output is waited for once everything has ended.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);
/// The longest line that is kept whole, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The most that is kept of what a program writes, where all of it is wanted, in bytes.
const CAPTURED_BYTES_MAX: usize = 4 << 20;

impl Runner {
    /// Runs a program. `label` is what it is called in the notes of what runs.
    pub(super) async fn run(
        &mut self,
        argv: &[String],
        label: &str,
        listener: &mut dyn Listener,
    ) -> Result<Ran, RenderError> {
        self.control.until_running().await?;
        let spec = ChildSpec {
            argv: argv.iter().map(Into::into).collect(),
            folder: self.folder.clone(),
            label: label.to_owned(),
            ..ChildSpec::default()
        };
        let spawned = self.supervisor.spawn(spec).await;
        let mut child =
            spawned.map_err(|error| RenderError::of_io(&error.to_string(), &error.source))?;
        let control = child.control();
        self.control.attach(control.clone());
        let mut lines = LineReader::new(child.take_stdout());
        let mut reached = None;
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let exit = loop {
            tokio::select! {
                biased;
                exit = child.wait() => break exit,
                has_more = lines.read(), if lines.is_open() => {
                    if has_more && lines.pass_on(listener) {
                        self.stopwatch.moved();
                    }
                }
                _ = looks.tick() => {
                    let is_frozen = self.control.is_frozen();
                    let tells = listener.tells_progress();
                    let now = self.clock.now();
                    reached = reached.or(self.stopwatch.look(now, is_frozen, tells));
                    if reached.is_some() {
                        control.kill();
                    }
                }
            }
        };
        self.control.detach();
        lines.drain(listener).await;
        if self.control.wish() == Wish::Kill {
            return Err(RenderError::Killed);
        }
        match reached {
            Some(reached) => Err(beyond_limit(&argv[0], reached)),
            None => Ok(Ran { exit, log: child.stderr_tail() }),
        }
    }

    /// Runs a program whose output is wanted whole.
    pub(super) async fn capture(
        &mut self,
        argv: &[String],
        label: &str,
    ) -> Result<(Ran, String), RenderError> {
        let mut captured = Captured(String::new());
        let ran = self.run(argv, label, &mut captured).await?;
        Ok((ran, captured.0))
    }

    /// Which build of a tool is here.
    pub(super) async fn identify(&mut self, tool: &str) -> Result<ToolIdentity, RenderError> {
        let (ran, said) = self.capture(&media::version_argv(tool), "version").await?;
        let identity = ToolIdentity::parse(tool, &said).filter(|_| ran.exit == Exit::Code(0));
        identity.ok_or_else(|| {
            let how = how_ended(ran.exit);
            let message = format!(
                "this worker has no {tool} that says its version ({how}; {})",
                ran.log.trim()
            );
            RenderError::retryable("tool_missing", message)
        })
    }
}

/// How a program ended, in words.
pub(super) fn how_ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::NannyLost => "its supervisor killed".to_owned(),
    }
}

fn beyond_limit(program: &str, reached: Reached) -> RenderError {
    match reached {
        Reached::Time(limit_ms) => RenderError::retryable(
            "time_limit",
            format!("{program} was ended at the recipe's time limit of {} s", limit_ms / 1_000),
        ),
        Reached::Stall(limit_ms) => RenderError::retryable(
            "stalled",
            format!("{program} was ended: it made no progress for {} s", limit_ms / 1_000),
        ),
    }
}

struct Captured(String);

impl Listener for Captured {
    fn tells_progress(&self) -> bool {
        false
    }

    fn line(&mut self, line: &str) -> bool {
        if self.0.len() < CAPTURED_BYTES_MAX {
            self.0.push_str(line);
            self.0.push('\n');
        }
        true
    }
}

/// Cuts what comes into lines, of a bounded length whatever a hostile file makes a tool write.
struct LineReader {
    pipe: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    fresh: Vec<u8>,
}

impl LineReader {
    fn new(pipe: Option<pipe::Receiver>) -> Self {
        Self { pipe, buffer: Vec::new(), fresh: Vec::with_capacity(16 << 10) }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for more. Answers whether there is any.
    async fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        self.fresh.clear();
        let has_more = matches!(pipe.read_buf(&mut self.fresh).await, Ok(1..));
        if !has_more {
            self.pipe = None;
        }
        has_more
    }

    /// Passes the lines that are complete on. Answers whether any of them moved anything.
    fn pass_on(&mut self, listener: &mut dyn Listener) -> bool {
        let mut has_moved = false;
        for byte in self.fresh.drain(..) {
            if byte == b'\n' {
                has_moved |= listener.line(&String::from_utf8_lossy(&self.buffer));
                self.buffer.clear();
            } else if self.buffer.len() < LINE_BYTES_MAX {
                self.buffer.push(byte);
            }
        }
        has_moved
    }

    /// Takes what is still in the pipe of a program that has ended.
    async fn drain(&mut self, listener: &mut dyn Listener) {
        let rest = async {
            while self.read().await {
                self.pass_on(listener);
            }
        };
        // All writers are gone, so the end comes at once; a stranger with the pipe is not awaited.
        let _end = timeout(LAST_WORDS_WAIT, rest).await;
        if !self.buffer.is_empty() {
            listener.line(&String::from_utf8_lossy(&self.buffer));
        }
    }
}
