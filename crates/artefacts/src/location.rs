//! Where artefacts live, as an operator says it: `s3://bucket/prefix`, `gs://…`, `az://…`,
//! `file:///dir`, `memory:`.

use std::{path::PathBuf, sync::Arc};

use object_store::path::Path;
use palisade_core::Invalid;

use crate::{
    BlobError, Blobs, LocalBlobs, MemoryBlobs, ObjectBlobs,
    bucket::{self, Bucket, BucketError, ProveError, Scheme},
};

const ALLOWED: &str = "must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, \
                       file:///FOLDER or memory:";

const NO_KEYS: &str = "must have no keys before an @: secrets belong into the environment";

/// A place for artefacts, not opened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder of this machine.
    Folder(PathBuf),
    /// This process's memory: nothing outlives it.
    Memory,
    /// A bucket.
    Bucket {
        /// Whose.
        scheme: Scheme,
        /// The bucket or container.
        bucket: String,
        /// The prefix below which everything is kept.
        prefix: Path,
        /// Settings, from the address's query: no secrets.
        settings: Vec<(String, String)>,
    },
}

/// A place for artefacts that is open.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Names it for people. Holds no secret.
    pub name: String,
    /// The blobs.
    pub blobs: Arc<dyn Blobs>,
    /// The bucket, when it is one.
    pub bucket: Option<Bucket>,
    /// The folder, when it is one.
    pub folder: Option<PathBuf>,
}

/// A place for artefacts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its client cannot be made.
    #[error(transparent)]
    Client(#[from] BucketError),
    /// Its folder cannot be opened.
    #[error(transparent)]
    Folder(#[from] BlobError),
    /// It was tried out, and must not be used.
    #[error(transparent)]
    Proof(#[from] ProveError),
}

impl OpenError {
    /// Whether it may well be there later: it could not be reached.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Proof(error) if error.is_away())
    }
}

impl Location {
    /// Opens it. `environment` is where credentials may stand ([`bucket::open`]). A bucket is not
    /// spoken to yet.
    pub async fn open(&self, environment: &[(String, String)]) -> Result<Opened, OpenError> {
        Ok(match self {
            Self::Folder(folder) => {
                let name = format!("file://{}", folder.display());
                let blobs = LocalBlobs::open(folder.clone()).await?;
                Opened { name, blobs: Arc::new(blobs), bucket: None, folder: Some(folder.clone()) }
            }
            Self::Memory => {
                let blobs = Arc::new(MemoryBlobs::new());
                Opened { name: "memory:".to_owned(), blobs, bucket: None, folder: None }
            }
            Self::Bucket { scheme, bucket, prefix, settings } => {
                let prefix = prefix.clone();
                let bucket = bucket::open(*scheme, bucket, prefix, settings, environment)?;
                let blobs = Arc::new(ObjectBlobs::new(bucket.clone()));
                Opened { name: bucket.name.clone(), blobs, bucket: Some(bucket), folder: None }
            }
        })
    }

    /// Opens it to read alone: of a folder that others write to, or of a copy, nothing is changed.
    pub async fn open_as_found(
        &self,
        environment: &[(String, String)],
    ) -> Result<Opened, OpenError> {
        let Self::Folder(folder) = self else { return self.open(environment).await };
        let name = format!("file://{}", folder.display());
        let blobs = Arc::new(LocalBlobs::as_found(folder.clone()));
        Ok(Opened { name, blobs, bucket: None, folder: Some(folder.clone()) })
    }

    /// Opens it, and tries out what it really does: for whoever trusts it with a fence.
    pub async fn open_proven(
        &self,
        environment: &[(String, String)],
        nonce: u128,
    ) -> Result<Opened, OpenError> {
        let opened = self.open(environment).await?;
        if let Some(bucket) = &opened.bucket {
            bucket.prove(nonce).await?;
        }
        Ok(opened)
    }
}

/// As it is parsed, settings included: those hold no secrets.
impl std::fmt::Display for Location {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => write!(formatter, "file://{}", folder.display()),
            Self::Memory => formatter.write_str("memory:"),
            Self::Bucket { scheme, bucket, prefix, settings } => {
                let text = format!("{}://{bucket}/{prefix}", scheme.as_str());
                let mut url = reqwest::Url::parse(&text).map_err(|_| std::fmt::Error)?;
                if !settings.is_empty() {
                    url.query_pairs_mut().extend_pairs(settings);
                }
                formatter.write_str(url.as_str())
            }
        }
    }
}

impl std::str::FromStr for Location {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // Nothing of it is repeated but its scheme: any part may be one of a secret.
        let bad = || Invalid::new("artefacts", &scheme_alone(text), ALLOWED);
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        let url = reqwest::Url::parse(text).map_err(|_| bad())?;
        let scheme = match url.scheme() {
            "file" => {
                let folder = url.to_file_path().map_err(|()| bad())?;
                let is_plain = url.query().is_none() && url.fragment().is_none();
                return if is_plain { Ok(Self::Folder(folder)) } else { Err(bad()) };
            }
            "s3" => Scheme::S3,
            "gs" => Scheme::Gs,
            "az" => Scheme::Az,
            _ => return Err(bad()),
        };
        let bucket = url.host_str().filter(|host| !host.is_empty()).ok_or_else(bad)?;
        if has_user_info(&url) {
            return Err(Invalid::new("artefacts", &scheme_alone(text), NO_KEYS));
        }
        if url.port().is_some() || url.fragment().is_some() {
            return Err(bad());
        }
        let prefix = Path::from_url_path(url.path()).map_err(|_| bad())?;
        let mut settings = Vec::new();
        for (name, value) in url.query_pairs() {
            settings.push(setting(scheme, &name, &value)?);
        }
        Ok(Self::Bucket { scheme, bucket: bucket.to_owned(), prefix, settings })
    }
}

/// An address that was not understood, as far as it may be shown.
fn scheme_alone(text: &str) -> String {
    let known = |scheme: &&str| ["s3", "gs", "az", "file", "memory"].contains(scheme);
    match text.split_once("://").map(|(scheme, _)| scheme).filter(known) {
        Some(scheme) => format!("{scheme}://…"),
        None => "…".to_owned(),
    }
}

fn has_user_info(url: &reqwest::Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A setting of an address's query. Secrets are refused: a command line is everybody's to read.
fn setting(scheme: Scheme, name: &str, value: &str) -> Result<(String, String), Invalid> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.chars().all(is_name) {
        // A key that was written before an `@` may have come to stand here.
        return Err(Invalid::new("artefacts", &format!("{}://…", scheme.as_str()), ALLOWED));
    }
    let field = || format!("artefacts.{name}");
    if reqwest::Url::parse(value).is_ok_and(|url| has_user_info(&url)) {
        return Err(Invalid::new(field(), "(a secret)", NO_KEYS));
    }
    if ["key", "secret", "token", "sas", "password"].iter().any(|word| name.contains(word)) {
        let allowed = "must not stand in an address: secrets belong into the environment";
        return Err(Invalid::new(field(), "(a secret)", allowed));
    }
    if name == "conditional" {
        let is_known = matches!(value, "on" | "off");
        let allowed = "must be on, or off for a store without conditional writes";
        return if is_known {
            Ok((name.to_owned(), value.to_owned()))
        } else {
            Err(Invalid::new(field(), value, allowed))
        };
    }
    if scheme.knows(name) {
        return Ok((name.to_owned(), value.to_owned()));
    }
    let allowed = "must be conditional, or a setting of the client, such as endpoint, region or \
                   allow_http";
    Err(Invalid::new("artefacts", name, allowed))
}

#[cfg(test)]
mod tests;
