//! CSV cells with line breaks in them: a record goes on until its quotes are closed.
//!
//! A quote that is never closed must not swallow the rest of a log, so a record that does not end
//! soon is one unreadable line, and those after it are read again by themselves.

use super::{LINE_BYTES_MAX, Reader, Why};
use crate::Entry;

/// A record has at most so many lines.
const LINES_MAX: usize = 200;

impl Reader<'_> {
    /// Takes the next line of a record whose quotes are open.
    pub(super) fn go_on(&mut self, number: u64, line: &[u8], sink: &mut impl FnMut(&Entry<'_>)) {
        self.open.push((number, line.to_vec()));
        // Only a quote can close it.
        if line.contains(&b'"') {
            let open = std::mem::take(&mut self.open);
            let lines: Vec<&[u8]> = open.iter().map(|(_, line)| line.as_slice()).collect();
            self.number = open[0].0;
            match self.try_record(&lines.join(&b'\n'), sink) {
                Ok(()) => return,
                Err(Why::Open) => self.open = open,
                Err(_) => {
                    self.open = open;
                    return self.give_up(sink);
                }
            }
        }
        let bytes: usize = self.open.iter().map(|(_, line)| line.len()).sum();
        if self.open.len() > LINES_MAX || bytes > LINE_BYTES_MAX {
            self.give_up(sink);
        }
    }

    /// Calls the line that began the record unreadable, and reads the others by themselves.
    pub(super) fn give_up(&mut self, sink: &mut impl FnMut(&Entry<'_>)) {
        let mut open = std::mem::take(&mut self.open).into_iter();
        let Some((number, first)) = open.next() else { return };
        self.number = number;
        self.unreadable(&first, "a quote that is not closed".to_owned());
        for (number, line) in open {
            self.next_line(number, &line, sink);
        }
    }
}
