use std::{
    io,
    sync::mpsc::{Sender, channel},
};

use super::*;
use crate::events::Event;

/// A pipe whose reader takes a line only when it is told to.
struct Pipe {
    entered: Sender<()>,
    allowed: Receiver<()>,
    taken: Sender<String>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.entered.send(());
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.allowed.recv().map_err(gone)?;
        let _ = self.taken.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stamped(at_ms: u64) -> Stamped {
    Stamped { at_ms, event: Event::ServerBack }
}

struct Scene {
    sink: JsonLines,
    entered: Receiver<()>,
    allow: Sender<()>,
    seen: Receiver<String>,
}

fn scene(patience: Duration) -> Scene {
    let (enter, entered) = channel();
    let (allow, allowed) = channel();
    let (taken, seen) = channel();
    let pipe = Box::new(Pipe { entered: enter, allowed, taken });
    Scene { sink: JsonLines::with_patience(pipe, patience), entered, allow, seen }
}

#[test]
fn a_reader_that_reads_has_each_line_before_the_write_returns() {
    let Scene { sink, allow, seen, .. } = scene(Duration::from_mins(1));
    allow.send(()).unwrap();
    sink.write(&stamped(1));
    assert!(seen.try_recv().unwrap().contains("\"at_ms\":1"));
}

#[test]
fn a_reader_that_stalls_holds_nobody_up_and_is_told_what_it_missed() {
    let Scene { sink, entered, allow, seen } = scene(Duration::from_millis(20));
    let more = KEPT_MAX as u64 + 10;
    // The first waits in the pipe; as many as fit are kept behind it, and the last are dropped.
    sink.write(&stamped(0));
    entered.recv().unwrap();
    for at_ms in 1..more {
        sink.write(&stamped(at_ms));
    }
    let kept = KEPT_MAX as u64 + 1;
    for at_ms in 0..kept {
        allow.send(()).unwrap();
        let line = seen.recv().unwrap();
        assert!(line.contains(&format!("\"at_ms\":{at_ms},")), "{line}");
    }
    for _ in 0..2 {
        allow.send(()).unwrap();
    }
    // The first line's being written may be told a moment after it was read.
    while !sink.state.lock().unwrap().keeps_up() {
        std::thread::yield_now();
    }
    sink.write(&stamped(more));
    assert_eq!(seen.recv().unwrap(), "{\"event\":\"lines_missed\",\"lines\":9}\n");
    assert!(seen.recv().unwrap().contains(&format!("\"at_ms\":{more},")));
}

#[test]
fn a_reader_that_has_gone_is_no_reason_to_stop() {
    let Scene { sink, allow, .. } = scene(Duration::from_mins(1));
    drop(allow);
    for at_ms in 0..3 {
        sink.write(&stamped(at_ms));
    }
}
