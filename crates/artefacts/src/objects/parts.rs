//! The parts of one large upload: a few on their way at a time, all taken back unless it ends well.

use std::sync::{Mutex, PoisonError};

use object_store::{Error, MultipartUpload, PutPayload};
use tokio::{runtime::Handle, task::JoinSet};

/// What is smaller than this is sent in one request.
pub(super) const PART_BYTES: usize = 8 << 20;
/// How much larger the parts after [`SMALL_PARTS`] are: stores take 10,000 parts.
const LATER_PARTS_ARE: usize = 4;
/// How many parts come before that.
const SMALL_PARTS: usize = 1_000;
/// How many parts a store takes.
const PARTS_MAX: usize = 10_000;
/// How many parts are on their way at a time. With the one that is being filled, an upload holds
/// at most three parts in memory.
const AT_ONCE: usize = 2;

/// The longest blob that parts of `part_bytes` can make: about 289 GiB with [`PART_BYTES`].
pub(super) const fn size_max(part_bytes: usize) -> u64 {
    let later = (PARTS_MAX - SMALL_PARTS) * LATER_PARTS_ARE;
    (SMALL_PARTS + later) as u64 * part_bytes as u64
}

/// How many bytes the part of this index has, unless it is the last. All are equal as far as
/// possible: some stores want that.
pub(super) const fn bytes_of(part_bytes: usize, index: usize) -> usize {
    if index < SMALL_PARTS { part_bytes } else { part_bytes * LATER_PARTS_ARE }
}

/// An upload in parts. Dropped before it is [`complete`](Self::complete), it is taken back.
#[derive(Debug)]
pub(super) struct Parts {
    /// None once it is over. In a mutex that nobody ever waits for: it makes the whole `Sync`.
    upload: Mutex<Option<Box<dyn MultipartUpload>>>,
    sending: JoinSet<Result<(), Error>>,
    sent: usize,
    runtime: Handle,
}

impl Parts {
    /// Takes over an upload that was just begun.
    pub(super) fn new(upload: Box<dyn MultipartUpload>) -> Self {
        let runtime = Handle::current();
        let upload = Mutex::new(Some(upload));
        Self { upload, sending: JoinSet::new(), sent: 0, runtime }
    }

    fn upload(&mut self) -> &mut Option<Box<dyn MultipartUpload>> {
        self.upload.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many parts were given out.
    pub(super) fn sent(&self) -> usize {
        self.sent
    }

    /// Sends the next part; waits for room first.
    pub(super) async fn send(&mut self, part: PutPayload) -> Result<(), Error> {
        while self.sending.len() >= AT_ONCE {
            self.one_ended().await?;
        }
        let upload = self.upload().as_mut().expect("nothing is sent after the end");
        let sending = upload.put_part(part);
        self.sending.spawn(sending);
        self.sent += 1;
        Ok(())
    }

    /// Waits until all parts have arrived.
    pub(super) async fn all_arrived(&mut self) -> Result<(), Error> {
        while !self.sending.is_empty() {
            self.one_ended().await?;
        }
        Ok(())
    }

    async fn one_ended(&mut self) -> Result<(), Error> {
        match self.sending.join_next().await {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(source)) => Err(Error::JoinError { source }),
        }
    }

    /// Makes one object of the parts. Upon an error nobody knows whether it was done; the parts
    /// are taken back if it was not.
    pub(super) async fn complete(&mut self) -> Result<(), Error> {
        let upload = self.upload().as_mut().expect("an upload is completed once");
        upload.complete().await?;
        *self.upload() = None;
        Ok(())
    }

    /// Takes the parts back, and waits for it.
    pub(super) async fn abort(mut self) {
        self.sending.shutdown().await;
        if let Some(upload) = self.upload().take() {
            take_back(upload).await;
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.sending.abort_all();
        if let Some(upload) = self.upload().take() {
            self.runtime.spawn(take_back(upload));
        }
    }
}

async fn take_back(mut upload: Box<dyn MultipartUpload>) {
    match upload.abort().await {
        // Gone already: it was completed, or swept.
        Ok(()) | Err(Error::NotFound { .. }) => {}
        // The sweep finds it later.
        Err(error) => tracing::warn!(%error, "an unfinished upload was not taken back"),
    }
}
