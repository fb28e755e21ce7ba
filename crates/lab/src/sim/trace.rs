//! What is told of a run, for `--timeline`.

use std::fmt::Arguments;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// When, in ms.
    pub at: u64,
    /// To whom.
    pub actor: String,
    /// What.
    pub text: String,
}

/// What happened, if somebody wants to know.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Lines, in order.
    pub lines: Vec<Line>,
    wanted: bool,
}

impl Trace {
    /// A trace that is kept or not.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { lines: Vec::new(), wanted }
    }

    /// Tells something.
    pub(crate) fn tell(&mut self, at: u64, actor: &str, text: Arguments<'_>) {
        if self.wanted {
            let (actor, text) = (actor.to_owned(), text.to_string());
            self.lines.push(Line { at, actor, text });
        }
    }
}
