//! Where artefacts live, how they are had from there, and how long they are kept.

use std::{path::Path, time::Duration};

use palisade_artefacts::{Location, Opened};
use palisade_core::{Invalid, clock::Entropy as _};
use palisade_server::{Collection, ServerConfig};
use palisade_store::artefacts::Moved;
use palisade_worker::entropy::OsEntropy;

use crate::{exit::Usage, span::Span};

/// Flags of a server about artefacts.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ArtefactArgs {
    /// Where blobs live: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
    /// `file:///FOLDER`; in the data directory if not given. Credentials come from the environment
    /// (AWS_…, GOOGLE_…, AZURE_…) or the machine; settings may follow: ?endpoint=URL&region=NAME.
    #[arg(long, value_name = "URL", env = "PALISADE_ARTEFACTS")]
    artefacts: Option<String>,
    /// All artefacts have been moved, to the place that is given now: it is this store's from now on.
    #[arg(long)]
    artefacts_moved: bool,
    /// Send downloads on to where the blobs live, by addresses that are good for a while.
    #[arg(long, value_enum, default_value = "on", value_name = "WHEN")]
    presign: Switch,
    /// How long such an address is good.
    #[arg(long, default_value = "5m", value_name = "SPAN")]
    presign_for: Span,
    /// How long jobs keep their inputs and outputs after they are over, such as 30d; for ever if
    /// not given.
    #[arg(long, value_name = "SPAN")]
    keep_jobs: Option<Span>,
    /// How long nothing must have kept a blob before it is deleted.
    #[arg(long, default_value = "1h", value_name = "SPAN")]
    collect_after: Span,
    /// How often it is looked for what nothing keeps.
    #[arg(long, default_value = "1m", value_name = "SPAN")]
    collect_every: Span,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Default for ArtefactArgs {
    fn default() -> Self {
        Self {
            artefacts: None,
            artefacts_moved: false,
            presign: Switch::On,
            presign_for: Span::seconds(300),
            keep_jobs: None,
            collect_after: Span::seconds(3_600),
            collect_every: Span::seconds(60),
        }
    }
}

impl ArtefactArgs {
    /// The place that was named. Not parsed with the flags: what is refused there is repeated,
    /// and it may hold a secret that does not belong there.
    pub(crate) fn location(&self) -> anyhow::Result<Option<Location>> {
        self.artefacts.as_deref().map(parse_location).transpose()
    }

    /// Opens the place for blobs; a bucket is tried out first, and refused if it lies.
    pub(crate) async fn open(&self, data: &Path) -> anyhow::Result<Opened> {
        let location = self.location()?.unwrap_or_else(|| Location::Folder(data.join("blobs")));
        let opened = location.open_proven(&environment(), OsEntropy.next_u128()).await?;
        if location == Location::Memory {
            tracing::warn!("blobs live in memory: all of them are lost when this process ends");
        }
        Ok(opened)
    }

    /// Whether the place may be another than before.
    pub(crate) fn moved(&self) -> Moved {
        if self.artefacts_moved { Moved::Yes } else { Moved::No }
    }

    /// The place as workers may find it themselves, if they may.
    pub(crate) fn shared(&self) -> anyhow::Result<Option<String>> {
        let named = self.location()?.filter(|location| *location != Location::Memory);
        Ok(named.map(|location| location.to_string()))
    }

    /// The settings of a server that these flags make.
    pub(crate) fn configure(&self, config: ServerConfig) -> anyhow::Result<ServerConfig> {
        let is_on = self.presign == Switch::On;
        let collection = Collection {
            every: Duration::from_millis(self.collect_every.ms()),
            grace_ms: self.collect_after.ms(),
            keep_jobs_ms: self.keep_jobs.map(Span::ms),
            ..config.collection
        };
        let presign = is_on.then(|| Duration::from_millis(self.presign_for.ms()));
        Ok(ServerConfig { presign, artefacts: self.shared()?, collection, ..config })
    }
}

/// Reads the address of a place for blobs.
pub(crate) fn parse_location(text: &str) -> anyhow::Result<Location> {
    Ok(text.parse().map_err(|error: Invalid| Usage(error.to_string()))?)
}

/// The environment, as far as it is text.
pub(crate) fn environment() -> Vec<(String, String)> {
    let texts = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(texts).collect()
}
