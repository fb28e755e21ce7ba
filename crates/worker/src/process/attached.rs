//! A child that stays attached to its caller: a command that runs under a lock. It keeps the
//! caller's folder, environment and standard streams, and, where there is one, the terminal.
//!
//! The nanny talks through its own standard input, so the caller's is handed to it through that
//! socket. At a terminal all stay in the caller's process group: keys like Ctrl-C and Ctrl-Z reach
//! the command from the terminal itself, it may read, and a shell's job control works. Elsewhere
//! the command has a group of its own. Either way the nanny has the whole tree in its hands.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut, IsTerminal as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::Stdio,
};

use palisade_core::Timestamp;
use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::getpgrp,
    termios::tcgetpgrp,
};

use super::{
    child::Child,
    nanny::Place,
    spawner::{self, SpawnError, Supervisor},
    words::Order,
};

/// A child that keeps its caller's surroundings.
#[derive(Debug, Clone, Default)]
pub struct AttachedSpec {
    /// The program, found in `PATH` if it is a bare name, and its arguments.
    pub argv: Vec<OsString>,
    /// Variables beside those of the caller.
    pub environment: BTreeMap<String, String>,
    /// Up to when it may run, as [`ChildControl::run_until`](super::ChildControl::run_until) says
    /// it later; none: for ever.
    pub run_until: Option<Timestamp>,
}

impl Supervisor {
    /// Starts a child with this process's folder, environment and standard streams. Needs a tokio
    /// runtime with IO. When everything that belongs to the child has been dropped, its whole tree
    /// is killed.
    pub async fn spawn_attached(&self, spec: AttachedSpec) -> Result<Child, SpawnError> {
        let program = spec.argv.first().map(|word| word.to_string_lossy().into_owned());
        let program = program.unwrap_or_default();
        self.try_spawn_attached(spec).await.map_err(|source| SpawnError { program, source })
    }

    async fn try_spawn_attached(&self, spec: AttachedSpec) -> io::Result<Child> {
        if spec.argv.is_empty() {
            return Err(io::Error::other("no program was named"));
        }
        let place = if is_in_foreground() { Place::Terminal } else { Place::Background };
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = self.nanny_command(place.clone(), spec.argv);
        command
            .envs(spec.environment)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        if matches!(place, Place::Background) {
            command.process_group(0);
        }
        let nanny = spawner::start(command).await?;
        send_descriptor(&ours, io::stdin().as_fd(), spec.run_until)?;
        spawner::adopt(nanny, ours, None)
    }
}

/// Whether this process is in its terminal's foreground, with the terminal as standard input: then
/// the terminal's keys reach an attached child by themselves.
pub fn is_in_foreground() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|foreground| foreground == getpgrp())
}

/// With the first order, so that a caller that is stopped here has either said both or neither, and
/// without the descriptor nothing starts.
fn send_descriptor(
    socket: &UnixStream,
    descriptor: BorrowedFd<'_>,
    run_until: Option<Timestamp>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("a descriptor does not fit its message"));
    }
    // One byte goes with it: a message without bytes carries nothing.
    let order = run_until.map(|until| Order::RunUntil(until).line()).unwrap_or_default();
    let bytes = [b"i", order.as_bytes()].concat();
    let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty())?;
    if sent != bytes.len() {
        return Err(io::Error::other("a new socket took less than a line"));
    }
    Ok(())
}

/// The caller's standard input, as [`Supervisor::spawn_attached`] sends it first of all.
pub(super) fn receive_descriptor(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::other("the caller was gone before its command was started"))
}
