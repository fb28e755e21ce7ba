//! Being asked to end, and signals that are passed on.

use std::task::Poll;

use anyhow::Context;
use palisade_worker::process::is_ignored;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `SIGTERM` and `SIGINT`, as often as they come.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Signals that are meant for the command that runs from here. One that this process was started to
/// ignore (`nohup`) stays ignored, there too.
pub(crate) struct PassedSignals(Vec<(rustix::process::Signal, Signal)>);

impl PassedSignals {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use rustix::process::Signal as Number;
        let all =
            [Number::INT, Number::TERM, Number::HUP, Number::QUIT, Number::USR1, Number::USR2];
        let mut listened = Vec::new();
        for number in all.into_iter().filter(|number| !is_ignored(*number)) {
            let kind = SignalKind::from_raw(number.as_raw());
            listened.push((number, signal(kind).context("cannot listen to signals")?));
        }
        Ok(Self(listened))
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> rustix::process::Signal {
        std::future::poll_fn(|context| {
            let came = self.0.iter_mut().find_map(|(number, signal)| {
                signal.poll_recv(context).is_ready().then_some(*number)
            });
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
