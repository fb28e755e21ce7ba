//! The HTTP client: one method a route, typed.

mod blobs;
mod events;
mod jobs;
mod locks;
mod objects;
mod servers;
mod webhooks;
mod workers;

pub use blobs::{Download, Upload, file_pieces};
pub use events::{EventStream, EventsFrom};
pub use objects::{ObjectDownload, ObjectHead, ObjectWrite, Part};
pub use workers::SessionStream;

use std::{sync::Arc, time::Duration};

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{self, HeaderMap, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::Problem;

use servers::Servers;

/// Why a call came to nothing, told apart by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused it, with a stable code.
    #[error("{0}")]
    Refused(Problem),
    /// The server was not reached: nothing was done.
    #[error("the server at {url} cannot be reached")]
    Unreachable {
        /// Its address.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The request may have been done, but its answer was lost. Ask again with the same ids.
    #[error("the answer of {url} was lost; the outcome is unknown")]
    Unknown {
        /// The address of the server that is asked now.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// What answers there does not speak this protocol.
    #[error("{url} answered {status} with something that is not Palisade's: {body}")]
    Foreign {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of the answer.
        body: String,
    },
    /// The server's address cannot be used.
    #[error("server: {url:?} is not allowed; must be an http:// or https:// address")]
    Address {
        /// As given.
        url: String,
    },
    /// The token cannot be sent in a header.
    #[error("token: is not allowed; must be printable ASCII characters")]
    Token,
    /// This machine could not do its part.
    #[error("cannot {doing}")]
    Local {
        /// What, after "cannot".
        doing: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Reading a local file for an upload failed.
    #[error("cannot read {path}")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl ClientError {
    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Whether the same request may be asked again and come to something: the server was not
    /// reached, its answer was lost, or it said that it is unavailable.
    pub fn is_unconfirmed(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Unknown { .. } | Self::Foreign { .. } => true,
            Self::Refused(problem) => {
                problem.status >= 500 || matches!(problem.status, 401 | 403 | 429)
            }
            Self::Address { .. } | Self::Token | Self::Local { .. } | Self::File { .. } => false,
        }
    }
}

/// A client of one store, through one server or any of several. Cheap to clone; clones go from
/// server to server together.
///
/// A server that cannot be reached is left for the next, within the same call: nothing was done
/// there. One whose answer is lost, or that says that it cannot serve now, is left too. What
/// changes nothing, or carries the ids by which it is known again, is asked of the next within the
/// same call as well; of anything else the caller is told, who alone knows whether it may be.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    servers: Arc<Servers>,
    /// Sent with every request.
    headers: HeaderMap,
}

/// What a server, or what stands before it, answers when another one had better be asked next.
const AWAY: [StatusCode; 3] =
    [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may take that neither waits nor carries a file.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be silent before the kernel asks whether the other end is there: a
/// wait may take an hour, and a server that lost its power says nothing.
const KEEPALIVE: Duration = Duration::from_secs(20);

impl Client {
    /// A client of the server at `url` (`http://127.0.0.1:7070`), or of several that serve one
    /// store, their addresses separated by commas.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::build(Arc::new(Servers::parse(url)?), HeaderMap::new())
    }

    /// The same, showing a bearer token with every request.
    pub fn with_token(url: &str, token: &str) -> Result<Self, ClientError> {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClientError::Token)?;
        value.set_sensitive(true);
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
        Self::build(Arc::new(Servers::parse(url)?), headers)
    }

    fn build(servers: Arc<Servers>, headers: HeaderMap) -> Result<Self, ClientError> {
        // Another part of the process may have chosen a provider already; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .tcp_keepalive(KEEPALIVE)
            .default_headers(headers.clone())
            .build()
            .map_err(|_| ClientError::Address { url: servers.now().to_owned() })?;
        Ok(Self { http, servers, headers })
    }

    /// A client of the same servers with connections of its own: for another runtime, since a
    /// connection lives and starves with the runtime that made it.
    pub fn with_own_connections(&self) -> Result<Self, ClientError> {
        Self::build(Arc::clone(&self.servers), self.headers.clone())
    }

    /// The address of the server that is asked now.
    pub fn url(&self) -> &str {
        self.servers.now()
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/v1{path}", self.url())).timeout(CALL_TIMEOUT)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        self.send_as(request, Twice::AsMethod).await
    }

    async fn send_as(
        &self,
        request: RequestBuilder,
        twice: Twice,
    ) -> Result<Response, ClientError> {
        let response = self.execute(request, twice).await?;
        if response.status().is_success() || response.status() == StatusCode::PARTIAL_CONTENT {
            return Ok(response);
        }
        let (status, url) = (response.status().as_u16(), origin(response.url()));
        let body = response.bytes().await.map_err(|error| self.broken(error))?;
        Err(match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::Refused(problem),
            Err(_) => foreign(url, status, &body),
        })
    }

    /// Asks the servers in turn until one answers that can. What might be done twice goes on to the
    /// next server only when the one before was not reached.
    async fn execute(
        &self,
        request: RequestBuilder,
        twice: Twice,
    ) -> Result<Response, ClientError> {
        let mut request = request.build().map_err(|error| self.lost(error))?;
        let safe = twice == Twice::Same || request.method().is_safe();
        for others in (0..self.servers.count()).rev() {
            let turn = self.servers.turn();
            // A body that streams cannot be sent twice: its caller asks again, of the next server.
            let again = if others > 0 { request.try_clone() } else { None };
            let answer = self.http.execute(request).await;
            let next = match &answer {
                Ok(response) if AWAY.contains(&response.status()) => safe,
                Ok(_) => return answer.map_err(|error| self.lost(error)),
                Err(error) => safe || error.is_connect(),
            };
            self.servers.leave(turn);
            request = match again.filter(|_| next) {
                Some(again) => again,
                None => return answer.map_err(|error| self.lost(error)),
            };
            self.servers.point(&mut request);
        }
        unreachable!("the last server's answer, or its silence, was returned")
    }

    async fn json<A: DeserializeOwned>(&self, request: RequestBuilder) -> Result<A, ClientError> {
        self.json_as(request, Twice::AsMethod).await
    }

    async fn json_as<A: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        twice: Twice,
    ) -> Result<A, ClientError> {
        let response = self.send_as(request, twice).await?;
        let (status, url) = (response.status().as_u16(), origin(response.url()));
        let body = response.bytes().await.map_err(|error| self.broken(error))?;
        serde_json::from_slice(&body).map_err(|_| foreign(url, status, &body))
    }

    /// A request that may be asked twice: it comes to the same.
    async fn post_again<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, ClientError> {
        self.post_as(path, body, Twice::Same).await
    }

    async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, ClientError> {
        self.post_as(path, body, Twice::AsMethod).await
    }

    async fn post_as<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        twice: Twice,
    ) -> Result<A, ClientError> {
        self.json_as(self.request(Method::POST, path).json(body), twice).await
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ClientError> {
        self.json(self.request(Method::GET, path)).await
    }

    /// What it means that an answer broke off: its server is left.
    fn broken(&self, source: reqwest::Error) -> ClientError {
        self.servers.leave(self.servers.turn());
        self.lost(source)
    }

    /// What an error means, of the server that it came from.
    fn lost(&self, source: reqwest::Error) -> ClientError {
        let asked = source.url().map(origin);
        let url = asked.unwrap_or_else(|| self.url().to_owned());
        if source.is_connect() {
            return ClientError::Unreachable { url, source };
        }
        ClientError::Unknown { url, source }
    }
}

/// What comes of a request that reached its server twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twice {
    /// What its method promises: a read changes nothing, anything else may.
    AsMethod,
    /// The same as once: it carries ids by which it is known again, or only keeps what is there.
    Same,
}

impl Twice {
    /// Of a request that is known again by its id, if it has one.
    fn by(request_id: Option<&String>) -> Self {
        if request_id.is_some() { Self::Same } else { Self::AsMethod }
    }
}

/// Who was asked, as people know it.
fn origin(url: &reqwest::Url) -> String {
    url.origin().ascii_serialization()
}

/// An answer that is not Palisade's, of the server that gave it.
fn foreign(url: String, status: u16, body: &[u8]) -> ClientError {
    let body = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    ClientError::Foreign { url, status, body }
}
