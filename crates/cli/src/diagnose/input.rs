//! The logs as bytes: read in pieces, side by side in the order of time, with a progress bar.

use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use palisade_audit::Entry;
use palisade_audit::read::{Reader, Tally, Translation};

/// How much is read of a file before another has its turn, in bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// The files, open.
#[derive(Debug)]
pub(super) struct Inputs {
    inputs: Vec<Input>,
}

#[derive(Debug)]
struct Input {
    name: String,
    file: File,
    length: u64,
}

/// A file while it is read.
struct Turn<'t> {
    index: usize,
    reader: Option<Reader<'t>>,
    /// The last instant read, corrected, in ms: the file that is behind goes next.
    reached_ms: i64,
}

impl Inputs {
    /// Opens all. Standard input is copied to a nameless file, as it may be read more than once.
    pub(super) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let inputs = paths.iter().map(|path| open(path)).collect::<anyhow::Result<_>>()?;
        Ok(Self { inputs })
    }

    pub(super) const fn count(&self) -> usize {
        self.inputs.len()
    }

    /// Reads all from the start and hands every entry to `sink`.
    pub(super) fn read(
        &mut self,
        doing: &'static str,
        translation: &Translation,
        offsets_ms: &[i64],
        sink: &mut dyn FnMut(&Entry<'_>),
    ) -> anyhow::Result<Vec<Tally>> {
        let bar = progress(doing, self.inputs.iter().map(|input| input.length).sum());
        let mut turns = Vec::new();
        for (index, input) in self.inputs.iter_mut().enumerate() {
            input.file.seek(SeekFrom::Start(0)).with_context(|| cannot_read(&input.name))?;
            let number = u32::try_from(index).context("too many files")?;
            let reader = Some(Reader::new(translation, number, &input.name));
            turns.push(Turn { index, reader, reached_ms: i64::MIN });
        }
        let mut tallies = vec![Tally::default(); turns.len()];
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let open = turns.iter_mut().filter(|turn| turn.reader.is_some());
            let Some(turn) = open.min_by_key(|turn| turn.reached_ms) else { break };
            let input = &mut self.inputs[turn.index];
            let offset_ms = offsets_ms.get(turn.index).copied().unwrap_or(0);
            let length = input.file.read(&mut piece).with_context(|| cannot_read(&input.name))?;
            let mut reached_ms = turn.reached_ms;
            let mut noting = |entry: &Entry<'_>| {
                let at_ms = i64::try_from(entry.at.0).unwrap_or(i64::MAX);
                reached_ms = at_ms.saturating_add(offset_ms);
                sink(entry);
            };
            if length == 0 {
                if let Some(reader) = turn.reader.take() {
                    tallies[turn.index] = reader.finish(&mut noting);
                }
            } else if let Some(reader) = &mut turn.reader {
                reader.feed(&piece[..length], &mut noting);
            }
            turn.reached_ms = reached_ms;
            bar.inc(length as u64);
        }
        bar.finish_and_clear();
        Ok(tallies)
    }
}

fn cannot_read(name: &str) -> String {
    format!("cannot read {name}")
}

fn open(path: &Path) -> anyhow::Result<Input> {
    let name = path.display().to_string();
    let file = if path == Path::new("-") {
        let mut copy = tempfile::tempfile().context("cannot keep a copy of standard input")?;
        std::io::copy(&mut std::io::stdin().lock(), &mut copy).context("cannot read stdin")?;
        copy
    } else {
        File::open(path).with_context(|| cannot_read(&name))?
    };
    let length = file.metadata().with_context(|| cannot_read(&name))?.len();
    Ok(Input { name, file, length })
}

/// A bar on a terminal; nothing elsewhere.
fn progress(doing: &'static str, length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(
        "{msg} {wide_bar} {bytes} of {total_bytes} ({bytes_per_sec}, {eta} left)",
    );
    let bar = ProgressBar::new(length).with_message(doing);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
