//! One try: a signed POST to an address that is allowed, and what came of it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use palisade_core::outbox::{Secret, Tried};
use reqwest::{
    Response, StatusCode, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{CONTENT_TYPE, RETRY_AFTER},
    redirect::Policy,
};

use crate::system;

use super::{AllowedAddresses, addresses, sign};

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A receiver's answer is read so far, to use the connection again. Nothing of it is kept.
const ANSWER_BYTES_MAX: u64 = 4_096;
/// How long that may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Longest error kept of a failed try, in bytes.
const ERROR_BYTES_MAX: usize = 500;

/// What is sent.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) url: String,
    /// The stable id.
    pub(super) id: String,
    pub(super) body: String,
    /// What signs, the newest first.
    pub(super) secrets: Vec<Secret>,
}

/// Sends messages. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    http: reqwest::Client,
    allowed: Arc<AllowedAddresses>,
}

impl Sender {
    /// A sender whose tries take no longer than `within`.
    pub(super) fn new(allowed: &AllowedAddresses, within: Duration) -> Self {
        // Another part of the process may have chosen a provider already; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let allowed = Arc::new(allowed.clone());
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .timeout(within)
            // A receiver cannot send us elsewhere, nor can the environment.
            .redirect(Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(Guarded(Arc::clone(&allowed))))
            .pool_max_idle_per_host(2)
            .user_agent(concat!("palisade/", env!("CARGO_PKG_VERSION")))
            .build()
            .expect("these settings make a client");
        Self { http, allowed }
    }

    /// Tries once.
    pub(super) async fn send(&self, message: Message) -> Tried {
        match self.post(message).await {
            Ok(response) => judged(response).await,
            Err(error) => failed(None, &error, None),
        }
    }

    async fn post(&self, message: Message) -> Result<Response, String> {
        let Message { url, id, body, secrets } = message;
        let url = Url::parse(&url).map_err(|error| error.to_string())?;
        // No name is looked up for an address: it goes past the resolver.
        if let Some(address) = addresses::literal(&url)
            && !self.allowed.allows(address)
        {
            return Err(not_allowed(address));
        }
        let sent_at_s = system::wall_seconds();
        let signature = sign::header(&secrets, &id, sent_at_s, &body);
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", sent_at_s)
            .header("webhook-signature", signature)
            .body(body);
        request.send().await.map_err(|error| palisade_core::with_causes(&error.without_url()))
    }
}

/// What an answer means: any 2xx is a yes, and nothing else is.
async fn judged(response: Response) -> Tried {
    let status = response.status();
    let retry_after_s = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after_ms = retry_after_s.and_then(|text| text.trim().parse::<u64>().ok());
    let retry_after_ms = retry_after_ms.map(|seconds| seconds.saturating_mul(1_000));
    if response.content_length().is_some_and(|length| length <= ANSWER_BYTES_MAX) {
        let _ = tokio::time::timeout(ANSWER_WITHIN, response.bytes()).await;
    }
    if status.is_success() {
        return Tried::Taken;
    }
    failed(Some(status), &format!("the receiver answered {status}"), retry_after_ms)
}

fn failed(status: Option<StatusCode>, error: &str, retry_after_ms: Option<u64>) -> Tried {
    let end = error.floor_char_boundary(ERROR_BYTES_MAX);
    Tried::Failed {
        status: status.map(|status| status.as_u16()),
        error: error[..end].to_owned(),
        retry_after_ms,
        gone: status == Some(StatusCode::GONE),
    }
}

fn not_allowed(address: IpAddr) -> String {
    format!("{address} is not a public address, and the server's operator has not allowed it")
}

/// Looks names up, and answers only addresses that are allowed. The address answered is the one
/// connected to, so that a name cannot mean one thing when it is checked and another when used.
struct Guarded(Arc<AllowedAddresses>);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (fine, refused): (Vec<SocketAddr>, Vec<_>) =
                found.partition(|address| allowed.allows(address.ip()));
            if let (true, Some(address)) = (fine.is_empty(), refused.first()) {
                return Err(not_allowed(address.ip()).into());
            }
            Ok(Box::new(fine.into_iter()) as Addrs)
        })
    }
}
