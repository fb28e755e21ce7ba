//! Reads other people's logs: JSON lines, CSV, logfmt, or plain lines with a pattern.
//!
//! A [`Translation`] says how their fields and words become ours; a [`Reader`] takes a file's
//! bytes in pieces of any size and hands out entries that borrow from them. A line that cannot be
//! read is counted and kept for showing, never fatal.

mod csv;
mod json;
mod logfmt;
mod pattern;
mod profile;
mod quoted;
mod time;
mod translation;

use memchr::memchr;

pub use profile::{Profile, built_in, built_in_names};
pub use time::{parse_span_ms, parse_time};
pub use translation::{Field, Format, Translation, TranslationError};

use crate::event::says_refused;
use crate::{Entry, EventKind, Source};
use translation::FIELDS;

/// How many unreadable lines are kept for showing.
const UNREADABLE_SHOWN: usize = 20;
/// How much of an unreadable line is kept, in characters.
const UNREADABLE_CHARS: usize = 160;
/// What a completion is called that is an effect too.
const COMPLETION: &str = "completion";
/// A line longer than this is not kept together, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// How many different unknown event words are kept.
const UNKNOWN_WORDS_MAX: usize = 50;

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it stands.
    pub source: Source,
    /// Why it cannot be read.
    pub why: String,
    /// Its text, cut to a length fit for showing.
    pub text: String,
}

/// What a reader came across.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Lines, blank ones included.
    pub lines: u64,
    /// Entries handed out.
    pub entries: u64,
    /// Lines that could not be read.
    pub unreadable_lines: u64,
    /// The first of them.
    pub unreadable: Vec<Unreadable>,
    /// Lines of other matters, which a profile says to pass over.
    pub other_lines: u64,
    /// Event words that are not ours and were not translated, each with its number of lines.
    pub unknown_words: Vec<(String, u64)>,
}

/// Why a line yields no entry.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Why {
    /// It cannot be read.
    Unreadable(String),
    /// It speaks of other matters.
    Other,
    /// It is the beginning of a record, which goes on in the next line.
    Open,
    /// It is what stands around entries: a CSV file's header, a list's brackets.
    Frame,
    /// Its event word is not one of ours.
    UnknownWord(String),
}

/// The fields of a line, as texts; empty where absent.
#[derive(Debug, Clone, Copy)]
struct Raw<'a> {
    values: [&'a str; FIELDS],
    /// The event, where a pattern fixes it.
    event: Option<EventKind>,
}

impl<'a> Raw<'a> {
    const fn new() -> Self {
        Self { values: [""; FIELDS], event: None }
    }

    const fn get(&self, field: Field) -> &'a str {
        self.values[field as usize]
    }

    const fn set(&mut self, field: Field, value: &'a str) {
        self.values[field as usize] = value;
    }
}

/// Room for values that cannot be borrowed from the line, because they hold escapes.
type Scratch = [String; FIELDS];

/// Reads one file.
#[derive(Debug)]
pub struct Reader<'t> {
    translation: &'t Translation,
    file: u32,
    /// What stands for the worker where a profile says that the file is the worker.
    file_worker: String,
    format: Option<Format>,
    columns: Option<csv::Columns>,
    carry: Vec<u8>,
    /// The lines of a record whose quotes are open, with their numbers.
    open: Vec<(u64, Vec<u8>)>,
    /// The line that is being read; a record's first.
    number: u64,
    skipping: bool,
    scratch: Scratch,
    clock: time::DayCache,
    tally: Tally,
}

impl<'t> Reader<'t> {
    /// A reader of the file with this index. `file_name` serves as a hint at the format, and as
    /// the worker where the translation says so.
    pub fn new(translation: &'t Translation, file: u32, file_name: &str) -> Self {
        let format = translation.format.or_else(|| Format::from_file_name(file_name));
        let base = file_name.rsplit('/').next().unwrap_or(file_name);
        let stem = base.split_once('.').map_or(base, |(stem, _)| stem);
        Self {
            translation,
            file,
            file_worker: stem.to_owned(),
            format,
            columns: None,
            carry: Vec::new(),
            open: Vec::new(),
            number: 0,
            skipping: false,
            scratch: Scratch::default(),
            clock: time::DayCache::default(),
            tally: Tally::default(),
        }
    }

    /// Takes the next bytes of the file, and hands every entry that they complete to `sink`.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut impl FnMut(&Entry<'_>)) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.skipping {
                self.skipping = false;
                continue;
            }
            if self.carry.is_empty() {
                self.line(line, sink);
            } else {
                let mut carry = std::mem::take(&mut self.carry);
                carry.extend_from_slice(line);
                self.line(&carry, sink);
                carry.clear();
                self.carry = carry;
            }
        }
        if self.skipping {
            return;
        }
        self.carry.extend_from_slice(rest);
        if self.carry.len() > LINE_BYTES_MAX {
            self.tally.lines += 1;
            let carry = std::mem::take(&mut self.carry);
            self.number = self.tally.lines;
            self.unreadable(&carry, format!("longer than {LINE_BYTES_MAX} bytes"));
            self.skipping = true;
        }
    }

    /// Ends the file: a last line without a line break is a line too.
    pub fn finish(mut self, sink: &mut impl FnMut(&Entry<'_>)) -> Tally {
        if !self.carry.is_empty() {
            let carry = std::mem::take(&mut self.carry);
            self.line(&carry, sink);
        }
        while !self.open.is_empty() {
            self.give_up(sink);
        }
        self.tally
    }

    fn line(&mut self, line: &[u8], sink: &mut impl FnMut(&Entry<'_>)) {
        self.tally.lines += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if self.tally.lines == 1 {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
        } else {
            line
        };
        self.next_line(self.tally.lines, line, sink);
    }

    fn next_line(&mut self, number: u64, line: &[u8], sink: &mut impl FnMut(&Entry<'_>)) {
        if !self.open.is_empty() {
            return self.go_on(number, line, sink);
        }
        self.number = number;
        match self.try_record(line, sink) {
            Ok(()) | Err(Why::Frame) => {}
            Err(Why::Open) => self.open.push((number, line.to_vec())),
            Err(Why::Unreadable(why)) => self.unreadable(line, why),
            Err(Why::Other) => self.tally.other_lines += 1,
            Err(Why::UnknownWord(word)) => self.unknown(word),
        }
    }

    /// Reads one record, and hands its entry to `sink`.
    fn try_record(&mut self, line: &[u8], sink: &mut impl FnMut(&Entry<'_>)) -> Result<(), Why> {
        let not_text = |_| Why::Unreadable("not UTF-8".to_owned());
        let text = std::str::from_utf8(line).map_err(not_text)?;
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.parse(text, &mut scratch).and_then(|raw| self.entry(&raw));
        let read = read.map(|mut entry| {
            self.tally.entries += 1;
            if entry.worker.is_empty() && self.translation.worker_is_file {
                entry.worker = &self.file_worker;
            }
            if entry.event == EventKind::Completed
                && self.translation.customs.completions_are_effects
            {
                let (event, kind) = (EventKind::Effect, Some(COMPLETION));
                sink(&Entry { event, kind, ..entry });
            }
            sink(&entry);
        });
        self.scratch = scratch;
        read
    }

    fn parse<'a>(&mut self, line: &'a str, scratch: &'a mut Scratch) -> Result<Raw<'a>, Why> {
        let format = match self.format {
            Some(format) => format,
            None => *self.format.insert(Format::guess(line, self.translation)),
        };
        match format {
            Format::Json => json::parse(line, self.translation, scratch),
            Format::Logfmt => logfmt::parse(line, self.translation, scratch),
            Format::Pattern => pattern::parse(line, self.translation),
            Format::Csv => {
                if let Some(columns) = &self.columns {
                    return csv::parse(line, columns, scratch);
                }
                self.columns = Some(csv::Columns::from_header(line, self.translation)?);
                Err(Why::Frame)
            }
        }
    }

    fn entry<'a>(&mut self, raw: &Raw<'a>) -> Result<Entry<'a>, Why>
    where
        't: 'a,
    {
        let event = match raw.event {
            Some(event) => event,
            None => self.event(raw)?,
        };
        let at_text = raw.get(Field::At);
        if at_text.is_empty() {
            return Err(self.missing(Field::At));
        }
        let at = self.clock.parse(at_text, self.translation.year).ok_or_else(|| {
            Why::Unreadable(format!(
                "{}: {at_text:?} is not a time (RFC 3339, epoch seconds or milliseconds)",
                self.translation.name_of(Field::At)
            ))
        })?;
        let (worker, resource) = (raw.get(Field::Worker), raw.get(Field::Resource));
        if resource.is_empty() && !event.may_lack_resource() {
            return Err(self.missing(Field::Resource));
        }
        if worker.is_empty() && !event.may_lack_worker() && !self.translation.worker_is_file {
            return Err(self.missing(Field::Worker));
        }
        let some = |field: Field| Some(raw.get(field)).filter(|text| !text.is_empty());
        let (kind, detail) = (some(Field::Kind), some(Field::Detail));
        let refused = event == EventKind::Effect
            && [kind, detail, some(Field::Outcome)].into_iter().flatten().any(says_refused);
        let grants = matches!(event, EventKind::Acquired | EventKind::Renewed);
        let in_seconds = || some(Field::TtlS).and_then(time::parse_span_s);
        let said_ms = some(Field::TtlMs).and_then(parse_span_ms).or_else(in_seconds);
        Ok(Entry {
            at,
            worker,
            resource,
            event: if refused { EventKind::Refused } else { event },
            ttl_ms: said_ms.or(self.translation.ttl_ms.filter(|_| grants)),
            ttl_assumed: said_ms.is_none(),
            token: some(Field::Token).and_then(|text| text.parse().ok()),
            kind,
            detail: detail.or_else(|| some(Field::Outcome)),
            duration_ms: some(Field::DurationMs).and_then(parse_span_ms),
            source: Source { file: self.file, line: self.number },
        })
    }

    fn event(&self, raw: &Raw<'_>) -> Result<EventKind, Why> {
        let word = raw.get(Field::Event);
        if word.is_empty() {
            return Err(self.missing(Field::Event));
        }
        self.translation.event(word).ok_or_else(|| Why::UnknownWord(word.to_owned()))
    }

    fn missing(&self, field: Field) -> Why {
        if self.translation.pass_over_others {
            return Why::Other;
        }
        Why::Unreadable(format!("no field `{}`", self.translation.name_of(field)))
    }

    fn unreadable(&mut self, line: &[u8], why: String) {
        self.tally.unreadable_lines += 1;
        if self.tally.unreadable.len() < UNREADABLE_SHOWN {
            let text = String::from_utf8_lossy(line).chars().take(UNREADABLE_CHARS).collect();
            let source = Source { file: self.file, line: self.number };
            self.tally.unreadable.push(Unreadable { source, why, text });
        }
    }

    fn unknown(&mut self, word: String) {
        if self.translation.pass_over_others {
            self.tally.other_lines += 1;
            return;
        }
        let words = &mut self.tally.unknown_words;
        if let Some(known) = words.iter_mut().find(|(known, _)| *known == word) {
            known.1 += 1;
        } else if words.len() < UNKNOWN_WORDS_MAX {
            words.push((word, 1));
        }
    }
}

#[cfg(test)]
mod tests;
