//! Clients of the three clouds, from a bucket's name, settings, and the environment.

use std::{str::FromStr, sync::Arc, time::Duration};

use object_store::{
    BackoffConfig, ClientOptions, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    path::Path,
};

use super::{AddressSigner, Bucket, Uploads};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a store may say nothing: a part of 32 MiB fits over a line of 3 Mbit/s.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);
/// The budget of one request: so many repeats, for so long.
const RETRIES_MAX: usize = 8;
const RETRIES_FOR: Duration = Duration::from_mins(1);
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Whose bucket it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Amazon's S3, and what speaks like it.
    S3,
    /// Google Cloud Storage.
    Gs,
    /// Azure's blob storage.
    Az,
}

impl Scheme {
    /// As an address begins.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Az => "az",
        }
    }

    /// Whether this scheme knows a setting by that name.
    pub(crate) fn knows(self, setting: &str) -> bool {
        match self {
            Self::S3 => AmazonS3ConfigKey::from_str(setting).is_ok(),
            Self::Gs => GoogleConfigKey::from_str(setting).is_ok(),
            Self::Az => AzureConfigKey::from_str(setting).is_ok(),
        }
    }

    /// How the environment's variables for it begin.
    const fn variables(self) -> &'static str {
        match self {
            Self::S3 => "AWS_",
            Self::Gs => "GOOGLE_",
            Self::Az => "AZURE_",
        }
    }
}

/// A client could not be made: a setting is missing or wrong.
#[derive(Debug, thiserror::Error)]
#[error("the client of {bucket} cannot be made")]
pub struct BucketError {
    /// The bucket.
    pub bucket: String,
    /// Why.
    pub source: object_store::Error,
}

/// Makes a client of `bucket`. Nothing is sent yet.
///
/// Credentials come by each cloud's usual ways, as far as `object_store` knows them: variables of
/// `environment` (`AWS_…`, `GOOGLE_…`, `AZURE_…`), a web identity, a container's or a machine's
/// metadata. `settings` have the same names as the variables, and precede them.
pub fn open(
    scheme: Scheme,
    bucket: &str,
    prefix: Path,
    settings: &[(String, String)],
    environment: &[(String, String)],
) -> Result<Bucket, BucketError> {
    choose_tls();
    let own = |(name, _): &&(String, String)| name.starts_with(scheme.variables());
    let of_environment =
        environment.iter().filter(own).map(|(name, value)| (name.to_ascii_lowercase(), value));
    let given = of_environment
        .chain(settings.iter().map(|(name, value)| (name.clone(), value)))
        .collect::<Vec<_>>();
    let is_conditional =
        !settings.iter().any(|(name, value)| name == "conditional" && value == "off");
    let mut name = format!("{}://{bucket}", scheme.as_str());
    if !prefix.is_root() {
        name = format!("{name}/{prefix}");
    }
    let failed = |source| BucketError { bucket: name.clone(), source };
    let over = |client: Client| Bucket {
        name: name.clone(),
        store: client.store,
        prefix,
        is_conditional,
        signer: client.signer,
        uploads: client.uploads,
    };
    let client = match scheme {
        Scheme::S3 => s3(bucket, &given, is_conditional),
        Scheme::Gs => gs(bucket, &given),
        Scheme::Az => az(bucket, &given),
    };
    client.map(over).map_err(failed)
}

/// Another part of the process may have chosen a provider already; that one serves as well.
pub(super) fn choose_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

struct Client {
    store: Arc<dyn object_store::ObjectStore>,
    signer: Option<AddressSigner>,
    uploads: Option<Arc<Uploads>>,
}

type Given<'text> = [(String, &'text String)];

fn s3(
    bucket: &str,
    given: &Given<'_>,
    is_conditional: bool,
) -> Result<Client, object_store::Error> {
    let mut builder = AmazonS3Builder::new()
        .with_client_options(options())
        // The signature hashes each body with it anyway, so the store's own checksum is free.
        .with_checksum_algorithm(Checksum::SHA256)
        // One object is deleted at a time, and not every store knows the other request.
        .with_disable_bulk_delete(true);
    for (name, value) in given {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value.as_str());
        }
    }
    if !is_conditional {
        builder = builder.with_conditional_put(S3ConditionalPut::Disabled);
    }
    let built = builder.with_bucket_name(bucket).with_retry(retries()).build()?;
    let s3 = Arc::new(built);
    let unsigned = |(name, value): &(String, &String)| {
        name.ends_with("skip_signature") && value.as_str() == "true"
    };
    if given.iter().any(unsigned) {
        // Nothing to sign with: it would look for keys at the machine's metadata, and wait.
        return Ok(Client { store: s3, signer: None, uploads: None });
    }
    let signer = AddressSigner { signer: Arc::clone(&s3) as _, takes_overrides: true };
    let uploads = Some(Arc::new(Uploads::new(Arc::clone(&s3))));
    Ok(Client { store: s3, signer: Some(signer), uploads })
}

fn gs(bucket: &str, given: &Given<'_>) -> Result<Client, object_store::Error> {
    let mut builder = GoogleCloudStorageBuilder::new().with_client_options(options());
    for (name, value) in given {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value.as_str());
        }
    }
    let gs = Arc::new(builder.with_bucket_name(bucket).with_retry(retries()).build()?);
    let signer = AddressSigner { signer: Arc::clone(&gs) as _, takes_overrides: true };
    Ok(Client { store: gs, signer: Some(signer), uploads: None })
}

fn az(container: &str, given: &Given<'_>) -> Result<Client, object_store::Error> {
    let mut builder = MicrosoftAzureBuilder::new().with_client_options(options());
    for (name, value) in given {
        if let Ok(key) = name.parse() {
            builder = builder.with_config(key, value.as_str());
        }
    }
    let az = Arc::new(builder.with_container_name(container).with_retry(retries()).build()?);
    // Azure signs a fixed set of fields: the address cannot say how the object is shown.
    let signer = AddressSigner { signer: Arc::clone(&az) as _, takes_overrides: false };
    Ok(Client { store: az, signer: Some(signer), uploads: None })
}

fn options() -> ClientOptions {
    // No limit for the whole of an answer: a film may take as long as it takes, if it comes.
    ClientOptions::new()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout_disabled()
        .with_read_timeout(SILENCE_TIMEOUT)
}

fn retries() -> RetryConfig {
    let (init_backoff, max_backoff) = PAUSES;
    let backoff = BackoffConfig { init_backoff, max_backoff, ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRIES_FOR }
}
