//! Signals. Which ones this process was started to ignore (`nohup`, a shell's `&`): those stay ignored,
//! here and in whatever is started from here.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Whether this process ignores a signal. Ask before a handler is set: that ends the ignoring.
pub fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (ignored_mask(&status) >> (signal.as_raw() - 1)) & 1 == 1
}

/// The line `SigIgn:` of `/proc/PID/status`: a bit for each signal, the first for signal 1.
fn ignored_mask(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// What a terminal sends to everybody in its foreground. One that was ignored from the start stays
/// ignored.
pub(super) struct Keys([Option<tokio::signal::unix::Signal>; 3]);

impl Keys {
    pub(super) fn listen() -> io::Result<Self> {
        let listen = |number: Signal| {
            if is_ignored(number) {
                return Ok(None);
            }
            signal(SignalKind::from_raw(number.as_raw())).map(Some)
        };
        Ok(Self([listen(Signal::INT)?, listen(Signal::HUP)?, listen(Signal::QUIT)?]))
    }

    pub(super) async fn pressed(&mut self) {
        let [interrupt, hangup, quit] = &mut self.0;
        tokio::select! {
            () = next(interrupt) => {}
            () = next(hangup) => {}
            () = next(quit) => {}
        }
    }
}

async fn next(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_found_among_the_other_lines() {
        let status = "Name:\tcat\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored_mask(status), 0x1001);
        assert_eq!(ignored_mask("Name:\tcat\n"), 0);
        assert!(is_ignored(Signal::PIPE), "this language's programs ignore it");
        assert!(!is_ignored(Signal::TERM));
    }
}
