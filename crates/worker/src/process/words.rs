//! What worker and nanny say to each other: one word a line, over the nanny's standard input,
//! which is a socket.

use palisade_core::Timestamp;

/// What the worker wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Freeze,
    Thaw,
    Kill,
    /// Pass this signal on to the tool itself.
    Signal(i32),
    /// It may run up to then, on CLOCK_BOOTTIME.
    RunUntil(Timestamp),
}

impl Order {
    pub(super) fn line(self) -> String {
        match self {
            Self::Freeze => "freeze\n".to_owned(),
            Self::Thaw => "thaw\n".to_owned(),
            Self::Kill => "kill\n".to_owned(),
            Self::Signal(signal) => format!("signal {signal}\n"),
            Self::RunUntil(until) => format!("until {}\n", until.0),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "freeze" => Some(Self::Freeze),
            None if line == "thaw" => Some(Self::Thaw),
            None if line == "kill" => Some(Self::Kill),
            Some(("signal", signal)) => signal.parse().ok().map(Self::Signal),
            Some(("until", until)) => until.parse().ok().map(Timestamp).map(Self::RunUntil),
            _ => None,
        }
    }
}

/// What the nanny tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The whole tree is stopped.
    Frozen,
    /// The whole tree runs again.
    Thawed,
    /// The tool ended with this code, and nothing of its tree is left.
    Code(i32),
    /// The tool was ended by this signal, and nothing of its tree is left.
    Signal(i32),
}

impl Report {
    pub(super) fn line(self) -> String {
        match self {
            Self::Frozen => "frozen\n".to_owned(),
            Self::Thawed => "thawed\n".to_owned(),
            Self::Code(code) => format!("code {code}\n"),
            Self::Signal(signal) => format!("signal {signal}\n"),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            None if line == "frozen" => Some(Self::Frozen),
            None if line == "thawed" => Some(Self::Thawed),
            Some(("code", code)) => code.parse().ok().map(Self::Code),
            Some(("signal", signal)) => signal.parse().ok().map(Self::Signal),
            _ => None,
        }
    }
}
