//! Reading a file piece by piece, checking the digest when the whole is read.

use std::{
    fs,
    io::{self, Read as _, Seek as _},
    ops::Range,
    path::PathBuf,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use palisade_core::digest::Hasher;

use super::{blocking, layout};
use crate::{BlobError, BlobReader, ByteRange, Place, transfer::CHUNK_BYTES};

/// Opens a blob's file.
pub(super) async fn open(
    place: Place,
    path: PathBuf,
    range: ByteRange,
) -> Result<BlobReader, BlobError> {
    blocking(move || {
        let file = open_file(place, &path)?;
        let size =
            file.metadata().map_err(|error| BlobError::io("look at", path.clone(), error))?.len();
        let range = range.within(size).ok_or(BlobError::OutOfRange { place, size })?;
        let whole = range == (0..size);
        let mut cursor =
            Cursor { place, path, file, rest: range.clone(), hasher: whole.then(Hasher::new) };
        cursor.seek()?;
        if cursor.rest.is_empty() {
            // No chunk will come, so nothing else would check it.
            cursor.check()?;
        }
        let chunks = stream::try_unfold(cursor, |cursor| blocking(move || cursor.next_chunk()));
        Ok(BlobReader { size, range, chunks: chunks.boxed() })
    })
    .await
}

fn open_file(place: Place, path: &PathBuf) -> Result<fs::File, BlobError> {
    match fs::File::open(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            layout::check_folder_of(path)?;
            Err(BlobError::NotFound(place))
        }
        Err(error) => Err(BlobError::io("open", path, error)),
    }
}

struct Cursor {
    place: Place,
    path: PathBuf,
    file: fs::File,
    /// What is still to be read.
    rest: Range<u64>,
    /// Set when the whole blob is read.
    hasher: Option<Hasher>,
}

impl Cursor {
    fn seek(&mut self) -> Result<(), BlobError> {
        self.file
            .seek(io::SeekFrom::Start(self.rest.start))
            .map(|_| ())
            .map_err(|error| BlobError::io("read", self.path.clone(), error))
    }

    fn next_chunk(mut self) -> Result<Option<(Bytes, Self)>, BlobError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let wanted = (self.rest.end - self.rest.start).min(CHUNK_BYTES as u64);
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        (&self.file)
            .take(wanted)
            .read_to_end(&mut chunk)
            .map_err(|error| BlobError::io("read", self.path.clone(), error))?;
        let got = chunk.len() as u64;
        if got < wanted {
            let found = format!("it ends at byte {}", self.rest.start + got);
            return Err(BlobError::Corrupt { place: self.place, found });
        }
        self.rest.start += got;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&chunk);
        }
        if self.rest.is_empty() {
            self.check()?;
        }
        Ok(Some((Bytes::from(chunk), self)))
    }

    /// Compares the digest of all that was read, if it was the whole.
    fn check(&self) -> Result<(), BlobError> {
        let Some(digest) = self.hasher.as_ref().map(Hasher::finish) else { return Ok(()) };
        if digest == self.place.digest {
            return Ok(());
        }
        let found = format!("the bytes have the digest {digest}");
        Err(BlobError::Corrupt { place: self.place, found })
    }
}
