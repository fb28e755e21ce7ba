//! The nanny: a process of its own between the worker and a tool. See the module above.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream, unix::process::CommandExt as _},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_child_subreaper,
    set_parent_process_death_signal,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    signal::unix::{SignalKind, signal},
};

use super::{
    record::{self, Record},
    tree::{Identity, Selection},
    words::{Order, Report},
};

/// The exit code of a stage that could not do its part; as shells have it, "cannot be run".
const CANNOT_RUN: u8 = 127;

/// What the hidden subcommand does; `args` are those after its name. Call it first thing in
/// `main`, on the main thread, before any other thread or runtime exists.
///
/// Standard input must be the worker's socket. Standard output and error are the tool's.
#[must_use]
pub fn nanny_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let outcome = match args.split_first() {
        Some((stage, rest)) if stage == WATCH => watch(rest),
        Some((stage, rest)) if stage == BECOME => become_tool(rest),
        _ => Err(io::Error::other("this subcommand is for the worker alone")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The worker keeps the end of the tool's standard error, and shows it.
            let _unheard = writeln!(io::stderr(), "palisade: {error}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

const WATCH: &str = "watch";
const BECOME: &str = "become";

/// How the worker calls the first stage: everything after the subcommand's own words.
pub(super) struct WatchArgs {
    /// Where to note what runs.
    pub(super) record: PathBuf,
    /// The words that lead to this subcommand (`nanny`), for the second stage.
    pub(super) words: Vec<OsString>,
    /// The tool and its arguments.
    pub(super) argv: Vec<OsString>,
}

impl WatchArgs {
    pub(super) fn into_args(self) -> Vec<OsString> {
        let parent = getpid().as_raw_nonzero().to_string();
        let mut args: Vec<OsString> = vec![WATCH.into(), self.record.into(), parent.into()];
        args.push(self.words.len().to_string().into());
        args.extend(self.words);
        args.extend(self.argv);
        args
    }

    fn parse(args: &[OsString]) -> Option<(Self, i32)> {
        let [record, parent, count, rest @ ..] = args else { return None };
        let (words, argv) = rest.split_at_checked(count.to_str()?.parse().ok()?)?;
        let args = Self { record: record.into(), words: words.to_vec(), argv: argv.to_vec() };
        Some((args, parent.to_str()?.parse().ok()?))
    }
}

fn malformed() -> io::Error {
    io::Error::other("the worker's call is malformed")
}

/// The first stage: starts the second, and watches over all that comes of it.
fn watch(args: &[OsString]) -> io::Result<()> {
    let (args, parent) = WatchArgs::parse(args).ok_or_else(malformed)?;
    // SIGTERM is caught below; until then its default, to end us, is right: nothing runs yet.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    set_child_subreaper(Some(getpid()))?;
    if getppid().map(Pid::as_raw_pid) != Some(parent) {
        return Err(io::Error::other("the worker was gone before its tool was started"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Watch::start(&args)?.run())
}

/// The second stage: binds itself to the nanny, then becomes the tool.
#[expect(clippy::disallowed_methods, reason = "this is the room in which children are started")]
fn become_tool(args: &[OsString]) -> io::Result<()> {
    let [parent, program, rest @ ..] = args else { return Err(malformed()) };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let expected: i32 = parent.to_str().and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
    if getppid().map(Pid::as_raw_pid) != Some(expected) {
        return Err(io::Error::other("the nanny was gone before the tool was started"));
    }
    let error = Command::new(program).args(rest).exec();
    Err(io::Error::other(format!("cannot start {}: {error}", program.display())))
}

/// A nanny at work.
struct Watch {
    child: i32,
    tree: Selection,
    ended: Option<Report>,
}

impl Watch {
    /// Notes itself, starts the second stage in a group of its own, notes that too.
    fn start(args: &WatchArgs) -> io::Result<Self> {
        let own = getpid().as_raw_pid();
        let identity = Identity::of(own).ok_or_else(malformed)?;
        let mut record = Record { boot: record::boot_id()?, processes: vec![identity] };
        record.write(&args.record)?;
        let mark = record.mark().expect("the record names its nanny");
        let child = spawn_second_stage(args, own, &mark)?;
        if let Some(identity) = Identity::of(child) {
            record.processes.push(identity);
            record.write(&args.record)?;
        }
        Ok(Self {
            child,
            tree: Selection { below: vec![own], ..Selection::default() },
            ended: None,
        })
    }

    async fn run(mut self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let mut termination = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        // Written to directly: tokio's would not write before its reactor has seen that it can,
        // and a tool may have ended before the reactor has looked even once.
        let mut answers = socket.try_clone()?;
        let mut orders = BufReader::new(tokio::net::UnixStream::from_std(socket)?).lines();
        // A child that ended before the signal was caught.
        self.reap();
        while self.ended.is_none() {
            tokio::select! {
                biased;
                order = orders.next_line() => match order.ok().flatten() {
                    Some(line) => {
                        let Some(report) = self.obey(Order::parse(&line))? else { break };
                        // A worker that does not listen is about to be gone; the next read tells.
                        let _unheard = answers.write_all(report.line().as_bytes());
                    }
                    // The worker is gone, or has let go of the child.
                    None => break,
                },
                _ = children.recv() => self.reap(),
                _ = termination.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => break,
            }
        }
        let tree = self.tree.clone();
        tree.end(|| self.reap())?;
        self.reap();
        let report = self.ended.unwrap_or(Report::Signal(Signal::KILL.as_raw()));
        let _unheard = answers.write_all(report.line().as_bytes());
        Ok(())
    }

    /// Carries out an order. Nothing to answer means: end it all.
    fn obey(&self, order: Option<Order>) -> io::Result<Option<Report>> {
        match order {
            Some(Order::Freeze) => self.tree.stop().map(|()| Some(Report::Frozen)),
            Some(Order::Thaw) => self.tree.thaw().map(|()| Some(Report::Thawed)),
            Some(Order::Kill) | None => Ok(None),
        }
    }

    /// Takes note of all that have ended. Orphans of the tree end up here too.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid.as_raw_pid() == self.child {
                self.ended = Some(report_of(status));
            }
        }
    }
}

fn report_of(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Code(code),
        (None, Some(signal)) => Report::Signal(signal),
        (None, None) => Report::Code(i32::from(CANNOT_RUN)),
    }
}

/// Starts the second stage. Its group is set at the spawn itself: whoever kills the group a moment
/// later must not find the child still in ours.
#[expect(clippy::disallowed_methods, reason = "this is the room in which children are started")]
fn spawn_second_stage(args: &WatchArgs, own: i32, mark: &str) -> io::Result<i32> {
    let (variable, value) = mark.split_once('=').expect("a mark is an assignment");
    let child = Command::new("/proc/self/exe")
        .arg0("palisade")
        .args(&args.words)
        .args([OsStr::new(BECOME), OsStr::new(&own.to_string())])
        .args(&args.argv)
        .env(variable, value)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    // Not waited for through this handle: all that ends below us is reaped in one place.
    Ok(child.id().cast_signed())
}
