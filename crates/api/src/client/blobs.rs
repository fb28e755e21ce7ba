//! Blobs and outputs: files up and down, streamed.

use std::path::Path;

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use palisade_core::{Digest, digest::Hasher, lease::Pair};
use reqwest::{Body, Method, Response};
use tokio::io::AsyncReadExt;

use crate::wire::{ArtefactsView, BlobView, FinishRequest, PairWire, PinRequest, PinResponse};

use super::{Client, ClientError};

/// How much of a file is read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// How often an upload begins again because its place was condemned meanwhile.
const TRIES: u32 = 3;

/// What an upload is for: it decides how long the blob is kept before a commit names it.
#[derive(Debug, Clone)]
pub enum Upload {
    /// An input: kept for a day, then by the job that names it.
    Input,
    /// An output of this job's attempt: kept until the attempt is closed.
    Output {
        /// The job's id.
        job: String,
        /// The attempt's pair.
        pair: Pair,
    },
}

impl Upload {
    fn pin(&self) -> PinRequest {
        match self {
            Self::Input => PinRequest::default(),
            Self::Output { job, pair } => PinRequest {
                job: Some(job.clone()),
                pair: Some(PairWire { token: pair.token.get(), lease: pair.lease_id.to_string() }),
            },
        }
    }
}

impl Client {
    /// Uploads a file, unless its bytes are there already. Answers its digest and size.
    ///
    /// The file is read twice: once to name it, once to send it. What arrives is hashed by the
    /// server, so a file that changes in between is refused.
    pub async fn upload(
        &self,
        path: &Path,
        purpose: &Upload,
    ) -> Result<(Digest, u64), ClientError> {
        let (digest, size_bytes) = Self::hash(path).await?;
        let mut tries = TRIES;
        loop {
            if self.pin(digest, purpose).await?.present {
                return Ok((digest, size_bytes));
            }
            match self.put_blob(path, digest, size_bytes, purpose).await {
                Ok(_) => return Ok((digest, size_bytes)),
                // Its place was condemned while it was on its way: it gets another one.
                Err(error) if tries > 0 && error.code() == Some("stale_generation") => tries -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// A file's digest and size.
    pub async fn hash(path: &Path) -> Result<(Digest, u64), ClientError> {
        hash_file(path).await.map_err(|error| file_error(path, error))
    }

    /// Asks whether a blob is there, and keeps it if it is. If not, it may be written to the
    /// generation that is answered, by who sees the blobs' place.
    pub async fn pin(&self, digest: Digest, purpose: &Upload) -> Result<PinResponse, ClientError> {
        self.post_again(&format!("/blobs/{digest}/pin"), &purpose.pin()).await
    }

    /// Says that a blob was written to its place.
    pub async fn finish_blob(
        &self,
        digest: Digest,
        written: &FinishRequest,
    ) -> Result<BlobView, ClientError> {
        self.post_again(&format!("/blobs/{digest}/finish"), written).await
    }

    /// Where the blobs live.
    pub async fn artefacts(&self) -> Result<ArtefactsView, ClientError> {
        self.get("/artefacts").await
    }

    async fn put_blob(
        &self,
        path: &Path,
        digest: Digest,
        size_bytes: u64,
        purpose: &Upload,
    ) -> Result<BlobView, ClientError> {
        let file = tokio::fs::File::open(path).await.map_err(|e| file_error(path, e))?;
        let body = Body::wrap_stream(file_pieces(file));
        let mut request = self
            .http
            .request(Method::PUT, format!("{}/v1/blobs/{digest}", self.url()))
            .header("content-length", size_bytes)
            .body(body);
        if let Upload::Output { job, pair } = purpose {
            request = request
                .header("palisade-job", job)
                .header("fencing-token", pair.token.get())
                .header("fencing-lease", pair.lease_id.to_string());
        }
        self.json(request).await
    }

    /// Streams a blob.
    pub async fn blob(&self, digest: Digest) -> Result<Download, ClientError> {
        let url = format!("{}/v1/blobs/{digest}", self.url());
        self.download(self.http.get(url)).await
    }

    /// Streams a job's output.
    pub async fn output(&self, job: &str, name: &str) -> Result<Download, ClientError> {
        let url = format!("{}/v1/jobs/{job}/outputs/{name}", self.url());
        self.download(self.http.get(url)).await
    }

    async fn download(&self, request: reqwest::RequestBuilder) -> Result<Download, ClientError> {
        let response = self.send(request).await?;
        Ok(Download::of(self.clone(), response))
    }
}

/// Bytes on their way down.
pub struct Download {
    client: Client,
    /// The length that the server announced.
    pub size_bytes: Option<u64>,
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
}

impl Download {
    pub(super) fn of(client: Client, response: Response) -> Self {
        let size_bytes = response.content_length();
        Self { client, size_bytes, chunks: response.bytes_stream().boxed() }
    }

    /// The next piece. None: all of it has come. A connection that ends early is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.chunks.next().await.transpose().map_err(|error| self.client.broken(error))
    }
}

impl std::fmt::Debug for Download {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Download")
            .field("size_bytes", &self.size_bytes)
            .finish_non_exhaustive()
    }
}

async fn hash_file(path: &Path) -> std::io::Result<(Digest, u64)> {
    let mut file = tokio::fs::File::open(path).await?;
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut size_bytes = 0;
    loop {
        let read = file.read(&mut buffer).await?;
        if read == 0 {
            return Ok((hasher.finish(), size_bytes));
        }
        hasher.update(&buffer[..read]);
        size_bytes += read as u64;
    }
}

/// A file's bytes from where it stands, piece by piece: the body of an upload.
pub fn file_pieces(
    file: tokio::fs::File,
) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    futures_util::stream::try_unfold(file, |mut file| async move {
        let mut buffer = vec![0; CHUNK_BYTES];
        let read = file.read(&mut buffer).await?;
        buffer.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(buffer), file)))
    })
}

fn file_error(path: &Path, source: std::io::Error) -> ClientError {
    ClientError::File { path: path.display().to_string(), source }
}
