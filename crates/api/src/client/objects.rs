//! Fenced objects: put, get, head, delete, raise, list.

use bytes::Bytes;
use futures_util::Stream;
use palisade_core::{ObjectKey, lease::Pair};
use reqwest::{
    Body, Method, RequestBuilder,
    header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH, RANGE},
};

use crate::{
    Problem,
    wire::{ObjectList, ObjectView, PairWire},
};

use super::{CALL_TIMEOUT, Client, ClientError, Download};

/// Who writes a fenced object, and on which further conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectWrite {
    /// The pair of the lock or the attempt.
    pub pair: Pair,
    /// Which of this holder's writes to this key it is, rising; none counts as 1.
    pub op: Option<u64>,
    /// Only over this version (an `ETag` with its quotes), or over any (`*`).
    pub if_match: Option<String>,
    /// Only where there is nothing to read.
    pub if_absent: bool,
}

impl ObjectWrite {
    /// A holder's first write, without conditions.
    pub const fn of(pair: Pair) -> Self {
        Self { pair, op: None, if_match: None, if_absent: false }
    }

    fn on(&self, request: RequestBuilder) -> RequestBuilder {
        let mut request = request
            .header("fencing-token", self.pair.token.get())
            .header("fencing-lease", self.pair.lease_id.to_string());
        if let Some(op) = self.op {
            request = request.header("fencing-op", op);
        }
        if let Some(etag) = &self.if_match {
            request = request.header(IF_MATCH, etag);
        }
        if self.if_absent {
            request = request.header(IF_NONE_MATCH, "*");
        }
        request
    }
}

/// What is told of an object that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    /// The number that wrote it.
    pub token: Option<u64>,
    /// The lowest token still accepted.
    pub fence: Option<u64>,
    /// Its version, with quotes.
    pub etag: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// The length of what is sent: of the part, if a part was asked for.
    pub size_bytes: Option<u64>,
}

impl ObjectHead {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let number = |name: &str| text(name)?.parse().ok();
        Self {
            token: number("fencing-token"),
            fence: number("fencing-fence"),
            etag: text(ETAG.as_str()),
            media_type: text(CONTENT_TYPE.as_str()),
            size_bytes: number(CONTENT_LENGTH.as_str()),
        }
    }
}

/// A part of an object, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// From the first to the last, both included.
    Between(u64, u64),
    /// From this one to the end.
    From(u64),
    /// So many at the end.
    Last(u64),
}

impl std::fmt::Display for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Between(first, last) => write!(formatter, "bytes={first}-{last}"),
            Self::From(first) => write!(formatter, "bytes={first}-"),
            Self::Last(count) => write!(formatter, "bytes=-{count}"),
        }
    }
}

/// An object on its way down.
#[derive(Debug)]
pub struct ObjectDownload {
    /// What is told of it.
    pub head: ObjectHead,
    /// Its bytes.
    pub bytes: Download,
}

impl Client {
    /// Writes an object, streaming its bytes ([`file_pieces`](super::file_pieces) of a file). If the answer is lost, the same bytes may be put
    /// again under the same op: what was done is answered again.
    pub async fn put_object(
        &self,
        key: &ObjectKey,
        media_type: &str,
        pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
        write: &ObjectWrite,
    ) -> Result<ObjectView, ClientError> {
        let body = Body::wrap_stream(pieces);
        let request = self.http.request(Method::PUT, self.object_url(key));
        self.json(write.on(request).header(CONTENT_TYPE, media_type).body(body)).await
    }

    /// Streams an object, or a part of it.
    pub async fn object(
        &self,
        key: &ObjectKey,
        part: Option<Part>,
    ) -> Result<ObjectDownload, ClientError> {
        let mut request = self.http.get(self.object_url(key));
        if let Some(part) = part {
            request = request.header(RANGE, part.to_string());
        }
        let response = self.send(request).await?;
        let head = ObjectHead::of(response.headers());
        Ok(ObjectDownload { head, bytes: Download::of(self.clone(), response) })
    }

    /// What is told of an object, without its bytes.
    pub async fn object_head(&self, key: &ObjectKey) -> Result<ObjectHead, ClientError> {
        let request = self.http.head(self.object_url(key)).timeout(CALL_TIMEOUT);
        match self.send(request).await {
            Ok(response) => Ok(ObjectHead::of(response.headers())),
            // An answer to HEAD has no body that could tell the code.
            Err(ClientError::Foreign { status: 404, .. }) => {
                let detail = format!("object {key} does not exist");
                Err(ClientError::Refused(Problem::new(404, "not_found", detail)))
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an object. Its fence stays.
    pub async fn delete_object(
        &self,
        key: &ObjectKey,
        write: &ObjectWrite,
    ) -> Result<ObjectView, ClientError> {
        let request = self.http.delete(self.object_url(key)).timeout(CALL_TIMEOUT);
        self.json(write.on(request)).await
    }

    /// Raises an object's fence to the pair's token without writing: holders of lower tokens are
    /// refused from now on.
    pub async fn raise_object(
        &self,
        key: &ObjectKey,
        pair: &Pair,
    ) -> Result<ObjectView, ClientError> {
        let pair = PairWire { token: pair.token.get(), lease: pair.lease_id.to_string() };
        self.post(&format!("/objects/{key}/fence"), &pair).await
    }

    /// Objects by key, those alone that can be read: a page that begins after `cursor`.
    pub async fn objects(
        &self,
        prefix: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<ObjectList, ClientError> {
        self.get(&format!("/objects?{}", page(prefix, cursor, limit))).await
    }

    fn object_url(&self, key: &ObjectKey) -> String {
        // Its characters all stand for themselves in a path.
        format!("{}/v1/objects/{key}", self.url())
    }
}

/// A page's query string.
pub(super) fn page(prefix: &str, cursor: Option<&str>, limit: u32) -> String {
    let mut query = format!("limit={limit}&prefix={}", escaped(prefix));
    if let Some(cursor) = cursor {
        query += &format!("&cursor={}", escaped(cursor));
    }
    query
}

/// A value in a query string: a plus sign would be read as a space there, and a prefix may be
/// anything that somebody typed.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_something_else_in_a_query_is_escaped() {
        assert_eq!(page("a+b/c d&é", None, 5), "limit=5&prefix=a%2Bb/c%20d%26%C3%A9");
        assert_eq!(page("", Some("x=1"), 5), "limit=5&prefix=&cursor=x%3D1");
    }

    #[test]
    fn parts_are_said_as_the_header_has_them() {
        let said = [Part::Between(0, 9), Part::From(10), Part::Last(5)].map(|p| p.to_string());
        assert_eq!(said, ["bytes=0-9", "bytes=10-", "bytes=-5"]);
    }
}
