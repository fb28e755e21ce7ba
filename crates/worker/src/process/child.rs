//! A running child, and the handle by which it is frozen, thawed and killed.

use std::{io::Write as _, os::unix::net::UnixStream, sync::Arc, time::Duration};

use palisade_core::Timestamp;
use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::unix::pipe,
    task::JoinHandle,
};

use super::{
    record::{self, Record},
    tail::Tail,
    tree::{Identity, Selection},
    words::{Order, Report},
};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Its nanny was killed, and with it the child.
    NannyLost,
}

/// Freezes, thaws, kills: the child and all that it started, however far they have gone. Never
/// blocks, needs no runtime, works from any thread. Orders are carried out in the order in which
/// they are given; those that come too late do nothing.
#[derive(Debug, Clone)]
pub struct ChildControl {
    socket: Arc<UnixStream>,
    nanny: Option<Identity>,
}

impl ChildControl {
    pub(super) fn new(socket: UnixStream, nanny: Option<Identity>) -> Self {
        Self { socket: Arc::new(socket), nanny }
    }

    /// Stops the whole tree (SIGSTOP).
    pub fn freeze(&self) {
        self.order(Order::Freeze);
    }

    /// Lets the whole tree run again (SIGCONT).
    pub fn thaw(&self) {
        self.order(Order::Thaw);
    }

    /// Ends the whole tree (SIGKILL, which also reaches those that are stopped; a SIGTERM would
    /// stay pending). [`Child::wait`] tells when it is gone.
    pub fn kill(&self) {
        self.order(Order::Kill);
    }

    /// Passes a signal on to the child itself, not to what it started. A child that is frozen gets
    /// it when it is thawed.
    pub fn signal(&self, signal: Signal) {
        self.order(Order::Signal(signal.as_raw()));
    }

    /// Lets the whole tree run up to then, on [`crate::clock::BoottimeClock`], unless this is said
    /// again: at that time it is stopped, whoever has been stopped meanwhile. Until it is said
    /// for the first time it may run for ever.
    pub fn run_until(&self, until: Timestamp) {
        self.order(Order::RunUntil(until));
    }

    fn order(&self, order: Order) {
        // It fails where the nanny has ended, and then `wait` sees to what is left.
        let _too_late = (&*self.socket).write_all(order.line().as_bytes());
        // Somebody may have stopped the nanny by hand; it must not miss this for it.
        if let Some(nanny) = self.nanny {
            nanny.signal(Signal::CONT);
        }
    }
}

/// A child that runs. Dropped, it and all that it started are killed.
#[derive(Debug)]
pub struct Child {
    control: ChildControl,
    nanny: Option<std::process::Child>,
    exit: Option<Exit>,
    reports: Lines<BufReader<tokio::net::UnixStream>>,
    stdout: Option<pipe::Receiver>,
    tail: Tail,
    tail_reader: Option<JoinHandle<()>>,
}

impl Child {
    pub(super) fn new(
        nanny: std::process::Child,
        control: ChildControl,
        reports: tokio::net::UnixStream,
        pipes: Option<(pipe::Receiver, pipe::Receiver)>,
    ) -> Self {
        let tail = Tail::default();
        let (stdout, stderr) = pipes.unzip();
        let tail_reader = stderr.map(|stderr| tokio::spawn(tail.clone().follow(stderr)));
        Self {
            control,
            nanny: Some(nanny),
            exit: None,
            reports: BufReader::new(reports).lines(),
            stdout,
            tail,
            tail_reader,
        }
    }

    /// The handle by which others steer it.
    pub fn control(&self) -> ChildControl {
        self.control.clone()
    }

    /// What it writes to standard output. Can be taken once, and not from an attached child.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// The end of what it has written to standard error so far, as lossy UTF-8, at most 16 KiB.
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Waits until the child has ended *and* nothing that it started is left (zombies do not
    /// count). May be dropped and called again.
    pub async fn wait(&mut self) -> Exit {
        let exit = match self.exit {
            Some(exit) => exit,
            None => self.read_exit().await,
        };
        self.exit = Some(exit);
        self.clear_up(exit).await;
        exit
    }

    async fn read_exit(&mut self) -> Exit {
        loop {
            match self.reports.next_line().await {
                Ok(Some(line)) => match Report::parse(&line) {
                    Some(Report::Code(code)) => return Exit::Code(code),
                    Some(Report::Signal(signal)) => return Exit::Signal(signal),
                    Some(Report::Frozen | Report::Thawed) | None => {}
                },
                Ok(None) | Err(_) => return Exit::NannyLost,
            }
        }
    }

    /// Reaps the nanny; ends what it can no longer end if it was killed; waits for the last words.
    async fn clear_up(&mut self, exit: Exit) {
        let nanny = self.nanny.take();
        let identity = self.control.nanny;
        let cleared = tokio::task::spawn_blocking(move || {
            if exit == Exit::NannyLost {
                end_orphans(identity);
            }
            nanny.map(|mut nanny| nanny.wait())
        });
        // It fails only when the runtime shuts down, and then the nannies end everything.
        let _shutting_down = cleared.await;
        if let Some(mut reader) = self.tail_reader.take() {
            // All writers are gone, so this is at once; a process of somebody else's that was
            // handed the pipe must not hold us up.
            let _end = tokio::time::timeout(LAST_WORDS_WAIT, &mut reader).await;
            reader.abort();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.control.kill();
        if let Some(mut nanny) = self.nanny.take() {
            // Somebody must reap it, and a destructor must not wait.
            let reap = std::thread::Builder::new().name("palisade-reap".to_owned());
            let _unreaped = reap.spawn(move || nanny.wait());
        }
    }
}

/// How long the last of standard error is waited for once everything has ended.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// Ends what a nanny has left that was killed itself. The kernel has killed its child; what that
/// one started is known by its mark.
fn end_orphans(nanny: Option<Identity>) {
    let (Some(identity), Ok(boot)) = (nanny, record::boot_id()) else { return };
    let record = Record { boot, processes: vec![identity] };
    let selection =
        Selection { marks: record.mark().into_iter().collect(), ..Selection::default() };
    if let Err(error) = selection.end(|| {}) {
        tracing::warn!(%error, "what a killed nanny has left could not be looked for");
    }
}
