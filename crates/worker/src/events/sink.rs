//! Where events are written.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
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

/// A JSON object a line, each written and flushed before what it announces is begun. A reader that
/// has gone is no reason to stop working.
pub struct JsonLines(Mutex<Box<dyn Write + Send>>);

impl JsonLines {
    /// To this writer. If its reader does not read and its buffer is full, attempts wait for it;
    /// heartbeats do not.
    pub fn new(writer: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(writer))
    }
}

impl EventSink for JsonLines {
    fn write(&self, event: &Stamped) {
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.write_all(&line).and_then(|()| writer.flush());
    }
}

impl std::fmt::Debug for JsonLines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JsonLines")
    }
}
