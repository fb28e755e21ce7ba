//! Where events are written.

use std::{
    io::Write,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    },
    time::Duration,
};

use super::Stamped;

/// Takes events as they happen. Called from an attempt's own task, in the order of what happens
/// to it, and never from the heartbeat's thread: what it does may take a moment.
pub trait EventSink: Send + Sync + std::fmt::Debug {
    /// One event, before whatever it announces is begun.
    fn write(&self, event: &Stamped);
}

/// A sink for those who do not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn write(&self, _event: &Stamped) {}
}

/// How long an attempt waits for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many lines are kept for a reader that does not read; more are dropped, and counted.
const KEPT_MAX: usize = 1_024;

/// A JSON object a line, each written and flushed before what it announces is begun. A reader that
/// has gone is no reason to stop working, and one that reads no more holds up work for two seconds
/// once, not for ever: when it reads again, it is told how many lines it missed.
pub struct JsonLines {
    state: Mutex<State>,
    patience: Duration,
}

struct State {
    writer: SyncSender<Line>,
    /// The line that the reader has not taken in time. None: it keeps up.
    behind: Option<Receiver<()>>,
    dropped: u64,
}

/// A line for the writer's thread, and where its being written is told.
struct Line {
    text: Vec<u8>,
    done: Option<SyncSender<()>>,
}

impl JsonLines {
    /// To this writer. If its reader does not read and its buffer is full, attempts wait for it a
    /// moment; heartbeats do not.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        Self::with_patience(writer, PATIENCE)
    }

    fn with_patience(mut writer: Box<dyn Write + Send>, patience: Duration) -> Self {
        let (sender, lines) = sync_channel::<Line>(KEPT_MAX);
        let thread = std::thread::Builder::new().name("palisade-events".to_owned());
        let write = move || {
            for Line { text, done } in lines {
                let _ = writer.write_all(&text).and_then(|()| writer.flush());
                if let Some(done) = done {
                    let _ = done.send(());
                }
            }
        };
        // Without the thread nobody is told anything, as with a reader that has gone.
        let _ = thread.spawn(write);
        let state = State { writer: sender, behind: None, dropped: 0 };
        Self { state: Mutex::new(state), patience }
    }
}

impl State {
    /// Whether the reader keeps up (again).
    fn keeps_up(&mut self) -> bool {
        let taken = self.behind.as_ref().map(Receiver::try_recv);
        if matches!(taken, Some(Err(TryRecvError::Empty))) {
            return false;
        }
        self.behind = None;
        true
    }

    fn hand_over(&mut self, text: Vec<u8>, done: Option<SyncSender<()>>) -> bool {
        let taken = self.writer.try_send(Line { text, done }).is_ok();
        self.dropped += u64::from(!taken);
        taken
    }
}

impl EventSink for JsonLines {
    fn write(&self, event: &Stamped) {
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.keeps_up() {
            state.hand_over(line, None);
            return;
        }
        if state.dropped > 0 {
            let missed = format!("{{\"event\":\"lines_missed\",\"lines\":{}}}\n", state.dropped);
            if state.hand_over(missed.into_bytes(), None) {
                state.dropped = 0;
            }
        }
        let (done, written) = sync_channel(1);
        if state.hand_over(line, Some(done))
            && written.recv_timeout(self.patience) == Err(RecvTimeoutError::Timeout)
        {
            state.behind = Some(written);
        }
    }
}

impl std::fmt::Debug for JsonLines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JsonLines")
    }
}

#[cfg(test)]
mod tests;
