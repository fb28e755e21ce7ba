//! The nanny: a process of its own between the worker and a tool. See the module above.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream, unix::process::CommandExt as _},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    signal::unix::{self, SignalKind, signal},
};

use palisade_core::clock::Clock as _;

use crate::clock::BoottimeClock;

use super::{
    attached::receive_descriptor,
    leash::{Leash, Pull},
    record::{self, Record},
    signals::Keys,
    tree::{Identity, Selection},
    words::{Order, Report},
};

/// The exit code of a stage that could not do its part; as shells have it, "not found".
const CANNOT_RUN: u8 = 127;
/// The exit code where the tool is there and cannot be run, as shells have it.
const NOT_EXECUTABLE: u8 = 126;

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
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            ExitCode::from(if denied { NOT_EXECUTABLE } else { CANNOT_RUN })
        }
    }
}

const WATCH: &str = "watch";
const BECOME: &str = "become";

/// Where a child runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In a scratch folder, cut off from everything; this is where to note what runs.
    Scratch(PathBuf),
    /// With its caller's standard streams, in a process group of its own.
    Background,
    /// With its caller's standard streams, in its caller's process group at the terminal.
    Terminal,
}

impl Place {
    fn into_args(self) -> [OsString; 2] {
        match self {
            Self::Scratch(record) => ["scratch".into(), record.into()],
            Self::Background => ["background".into(), OsString::new()],
            Self::Terminal => ["terminal".into(), OsString::new()],
        }
    }

    fn parse(word: &OsStr, record: &OsStr) -> Option<Self> {
        match word.to_str()? {
            "scratch" => Some(Self::Scratch(record.into())),
            "background" => Some(Self::Background),
            "terminal" => Some(Self::Terminal),
            _ => None,
        }
    }

    const fn is_attached(&self) -> bool {
        matches!(self, Self::Background | Self::Terminal)
    }
}

/// How the worker calls the first stage: everything after the subcommand's own words.
pub(super) struct WatchArgs {
    /// Where the child runs.
    pub(super) place: Place,
    /// The words that lead to this subcommand (`nanny`), for the second stage.
    pub(super) words: Vec<OsString>,
    /// The tool and its arguments.
    pub(super) argv: Vec<OsString>,
}

impl WatchArgs {
    pub(super) fn into_args(self) -> Vec<OsString> {
        let parent = getpid().as_raw_nonzero().to_string();
        let mut args: Vec<OsString> = vec![WATCH.into()];
        args.extend(self.place.into_args());
        args.extend([parent.into(), self.words.len().to_string().into()]);
        args.extend(self.words);
        args.extend(self.argv);
        args
    }

    fn parse(args: &[OsString]) -> Option<(Self, i32)> {
        let [place, record, parent, count, rest @ ..] = args else { return None };
        let (words, argv) = rest.split_at_checked(count.to_str()?.parse().ok()?)?;
        let place = Place::parse(place, record)?;
        let args = Self { place, words: words.to_vec(), argv: argv.to_vec() };
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
    runtime.block_on(async {
        // Before the tool is started: a key pressed as soon as it runs must not end its nanny.
        let signals = Signals::listen()?;
        Watch::start(&args)?.run(signals).await
    })
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
    let text = format!("cannot start {}: {error}", program.display());
    Err(io::Error::new(error.kind(), text))
}

/// What the nanny hears of.
struct Signals {
    children: unix::Signal,
    termination: unix::Signal,
    keys: Keys,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            children: signal(SignalKind::child())?,
            termination: signal(SignalKind::terminate())?,
            keys: Keys::listen()?,
        })
    }
}

/// A nanny at work.
struct Watch {
    place: Place,
    child: i32,
    tree: Selection,
    leash: Leash,
    ended: Option<Report>,
}

/// What an order comes to.
enum Obeyed {
    Say(Report),
    Quietly,
    EndItAll,
}

impl Watch {
    /// Notes itself, starts the second stage, notes that too.
    fn start(args: &WatchArgs) -> io::Result<Self> {
        let own = getpid().as_raw_pid();
        let identity = Identity::of(own).ok_or_else(malformed)?;
        let mut record = Record { boot: record::boot_id()?, processes: vec![identity] };
        let note = |record: &Record| match &args.place {
            Place::Scratch(path) => record.write(path),
            // No folder is this child's own, and nobody looks for leftovers of it.
            Place::Background | Place::Terminal => Ok(()),
        };
        note(&record)?;
        let mark = record.mark().expect("the record names its nanny");
        let child = spawn_second_stage(args, own, &mark)?;
        if let Some(identity) = Identity::of(child) {
            record.processes.push(identity);
            note(&record)?;
        }
        Ok(Self {
            place: args.place.clone(),
            child,
            tree: Selection { below: vec![own], ..Selection::default() },
            leash: Leash::default(),
            ended: None,
        })
    }

    async fn run(mut self, mut signals: Signals) -> io::Result<()> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        socket.set_nonblocking(true)?;
        // Written to directly: tokio's would not write before its reactor has seen that it can,
        // and a tool may have ended before the reactor has looked even once.
        let mut answers = socket.try_clone()?;
        let mut orders = BufReader::new(tokio::net::UnixStream::from_std(socket)?).lines();
        while self.ended.is_none() {
            let pull = self.leash.look(BoottimeClock.now());
            self.pull(pull)?;
            tokio::select! {
                biased;
                order = orders.next_line() => match order.ok().flatten() {
                    Some(line) => match self.obey(Order::parse(&line))? {
                        // A worker that does not listen is about to be gone; the next read tells.
                        Obeyed::Say(report) => drop(answers.write_all(report.line().as_bytes())),
                        Obeyed::Quietly => {}
                        Obeyed::EndItAll => break,
                    },
                    // The worker is gone, or has let go of the child.
                    None => break,
                },
                _ = signals.children.recv() => self.reap(),
                _ = signals.termination.recv() => break,
                // The terminal tells an attached command by itself, and that one decides.
                () = signals.keys.pressed() => if !self.place.is_attached() { break },
                () = self.time_is_up() => {}
            }
        }
        let tree = self.tree.clone();
        tree.end(|| self.reap())?;
        self.reap();
        let report = self.ended.unwrap_or(Report::Signal(Signal::KILL.as_raw()));
        let _unheard = answers.write_all(report.line().as_bytes());
        Ok(())
    }

    /// Carries out an order.
    fn obey(&mut self, order: Option<Order>) -> io::Result<Obeyed> {
        Ok(match order {
            Some(Order::Freeze) => {
                self.leash.freeze();
                self.tree.stop()?;
                Obeyed::Say(Report::Frozen)
            }
            Some(Order::Thaw) => {
                let pull = self.leash.thaw(BoottimeClock.now());
                self.pull(pull)?;
                Obeyed::Say(Report::Thawed)
            }
            Some(Order::RunUntil(until)) => {
                let pull = self.leash.lengthened(until, BoottimeClock.now());
                self.pull(pull)?;
                Obeyed::Quietly
            }
            Some(Order::Signal(number)) => {
                // Not reaped yet, so the pid is still its own.
                if let (Some(pid), Some(signal)) =
                    (Pid::from_raw(self.child), Signal::from_named_raw(number))
                {
                    let _gone = kill_process(pid, signal);
                }
                Obeyed::Quietly
            }
            Some(Order::Kill) | None => Obeyed::EndItAll,
        })
    }

    fn pull(&self, pull: Pull) -> io::Result<()> {
        match pull {
            Pull::Stop => self.tree.stop(),
            Pull::LetRun => self.tree.thaw(),
            Pull::Nothing => Ok(()),
        }
    }

    /// Waits until the leash is to be looked at again. The timer stands still while the machine is
    /// suspended, and the leash's clock does not, so it never waits for long.
    async fn time_is_up(&self) {
        match self.leash.left_ms(BoottimeClock.now()) {
            None => std::future::pending().await,
            Some(left_ms) => {
                tokio::time::sleep(Duration::from_millis(left_ms.clamp(1, 1_000))).await;
            }
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
/// later must not find the child still in ours. At a terminal it stays in the caller's: a group
/// of its own would be in the background there.
#[expect(clippy::disallowed_methods, reason = "this is the room in which children are started")]
fn spawn_second_stage(args: &WatchArgs, own: i32, mark: &str) -> io::Result<i32> {
    let (variable, value) = mark.split_once('=').expect("a mark is an assignment");
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("palisade")
        .args(&args.words)
        .args([OsStr::new(BECOME), OsStr::new(&own.to_string())])
        .args(&args.argv)
        .env(variable, value);
    if args.place.is_attached() {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        command.stdin(receive_descriptor(&socket)?);
    } else {
        command.stdin(Stdio::null());
    }
    if args.place != Place::Terminal {
        command.process_group(0);
    }
    let child = command.spawn()?;
    // Not waited for through this handle: all that ends below us is reaped in one place.
    Ok(child.id().cast_signed())
}
