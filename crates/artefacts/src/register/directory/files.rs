//! The files of one cell, and the steps of a swap. All of it happens under the cell's lock.
//!
//! A cell's file is one line, `palisade-cell 1 REVISION DIGEST`, and then the bytes. The revision
//! counts the swaps, so that equal bytes have different versions; the digest tells damage.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use palisade_core::Digest;

use super::super::{Cell, Version, cells::CELL_BYTES_MAX};

const MAGIC: &str = "palisade-cell 1";
/// Longer than any first line.
const HEAD_BYTES_MAX: usize = 128;

/// The files of one cell.
#[derive(Debug, Clone)]
pub(super) struct Files {
    folder: PathBuf,
    name: String,
}

/// What became of a replacement.
#[derive(Debug)]
pub(super) enum Replaced {
    Done,
    Conflict,
    NotDone(io::Error),
    Unknown(io::Error),
}

impl Files {
    pub(super) fn new(root: &Path, name: Digest) -> Self {
        Self { folder: root.to_path_buf(), name: name.to_string() }
    }

    /// Never deleted and never replaced: whoever locked the old one would hold nothing.
    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join(format!("{}.lock", self.name))
    }

    pub(super) fn cell(&self) -> PathBuf {
        self.folder.join(format!("{}.cell", self.name))
    }

    /// What is to be renamed over the cell. A leftover of a dead writer is written over.
    pub(super) fn next(&self) -> PathBuf {
        self.folder.join(format!("{}.next", self.name))
    }

    /// Makes the last rename durable.
    pub(super) fn sync_folder(&self) -> io::Result<()> {
        fs::File::open(&self.folder)?.sync_all()
    }

    /// Whether there is a cell. The whole folder's absence is no cell's absence.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        Ok(self.cell().try_exists()? || !fs::metadata(&self.folder)?.is_dir())
    }

    /// The cell as it is; none if there is none.
    pub(super) fn read(&self) -> io::Result<Option<Cell>> {
        let file = match fs::File::open(self.cell()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The whole folder's absence is no cell's absence.
                fs::metadata(&self.folder)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        file.take((CELL_BYTES_MAX + HEAD_BYTES_MAX) as u64).read_to_end(&mut all)?;
        decode(&all).map(Some).ok_or_else(|| {
            let file = self.cell();
            io::Error::new(io::ErrorKind::InvalidData, format!("{} is damaged", file.display()))
        })
    }

    /// Replaces the cell if its version is the expected one.
    pub(super) fn replace(&self, expected: Option<&Version>, bytes: &Bytes) -> Replaced {
        let revision = match self.check(expected, bytes) {
            Ok(Some(revision)) => revision + 1,
            Ok(None) => return Replaced::Conflict,
            Err(error) => return Replaced::NotDone(error),
        };
        if let Err(error) = self.prepare(revision, bytes) {
            return Replaced::NotDone(error);
        }
        // From here on it may be done although an error is told.
        match self.rename().and_then(|()| self.sync_folder()) {
            Ok(()) => Replaced::Done,
            Err(error) => Replaced::Unknown(error),
        }
    }

    /// The revision now, if the version is the expected one; a cell that is not there has 0.
    pub(super) fn check(
        &self,
        expected: Option<&Version>,
        bytes: &Bytes,
    ) -> io::Result<Option<u64>> {
        if bytes.len() > CELL_BYTES_MAX {
            let allowed = format!("a cell has at most {CELL_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, allowed));
        }
        let found = self.read()?;
        let version = found.as_ref().map(|cell| &cell.version);
        Ok((version == expected).then(|| version.map_or(0, revision_of)))
    }

    /// Writes what is to be the cell, durably, beside it.
    pub(super) fn prepare(&self, revision: u64, bytes: &Bytes) -> io::Result<()> {
        let mut file = fs::File::create(self.next())?;
        file.write_all(&encode(revision, bytes))?;
        file.sync_all()
    }

    /// Puts it in the cell's place.
    pub(super) fn rename(&self) -> io::Result<()> {
        fs::rename(self.next(), self.cell())
    }
}

fn encode(revision: u64, bytes: &[u8]) -> Vec<u8> {
    let mut all = format!("{MAGIC} {revision} {}\n", Digest::of(bytes)).into_bytes();
    all.extend_from_slice(bytes);
    all
}

fn decode(all: &[u8]) -> Option<Cell> {
    let end = all.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&all[..end]).ok()?.strip_prefix(MAGIC)?;
    let (revision, digest) = head.strip_prefix(' ')?.split_once(' ')?;
    let bytes = Bytes::copy_from_slice(&all[end + 1..]);
    let revision: u64 = revision.parse().ok()?;
    (digest.parse::<Digest>().ok()? == Digest::of(&bytes)).then_some(())?;
    let version = Version { e_tag: None, version: Some(revision.to_string()) };
    Some(Cell { bytes, version })
}

fn revision_of(version: &Version) -> u64 {
    version
        .version
        .as_ref()
        .and_then(|text| text.parse().ok())
        .expect("a version that was just read counts revisions")
}
