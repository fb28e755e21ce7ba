//! What an object store said, in one line, told apart by what an operator can do about it.

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};
use palisade_core::with_causes;

/// The longest text that is repeated, in characters.
const SAID_CHARS_MAX: usize = 600;
/// Where machines and containers are asked for keys, when none were given.
const KEYS_OF_MACHINES: [&str; 4] =
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "metadata.google.internal"];

/// What an operator can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// No connection, no answer in time, or an answer that says so: look whether it runs.
    Unreachable,
    /// It knows the keys not, or they may not do this.
    Refused,
    /// There are no keys, and the machine has none to give.
    NoKeys,
    /// There is no such bucket or container.
    NoBucket,
    /// The endpoint is plain http, which has to be allowed.
    PlainHttp,
    /// The store does not know what was asked of it.
    Unsupported,
    /// All else.
    Other,
}

impl TroubleKind {
    /// What it is, and what to do about it; goes on after the store's name.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Unreachable => {
                "cannot be reached; look whether its endpoint is right and answers"
            }
            Self::Refused => {
                "refused the keys; they must be its own, and may read, write, list and delete there"
            }
            Self::NoKeys => {
                "needs keys, and none were found; put them into the environment (AWS_…, GOOGLE_…, \
                 AZURE_…)"
            }
            Self::NoBucket => "does not exist; make it, or name another in the address",
            Self::PlainHttp => {
                "has a plain http endpoint; use https, or say allow_http=true in the address"
            }
            Self::Unsupported => "does not know what has to be asked of it",
            Self::Other => "could not be written to, read and deleted from",
        }
    }
}

/// What an object store said. In one line, and with its causes in it: it has none besides.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{said}")]
pub struct Trouble {
    /// What can be done about it.
    pub kind: TroubleKind,
    /// The store's words.
    pub said: String,
}

impl From<object_store::Error> for Trouble {
    fn from(error: object_store::Error) -> Self {
        let whole = with_causes(&error);
        Self { kind: kind(&error, &whole), said: one_line(&whole) }
    }
}

fn kind(error: &object_store::Error, text: &str) -> TroubleKind {
    use object_store::Error as Told;
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match error {
        Told::PermissionDenied { .. } | Told::Unauthenticated { .. } => TroubleKind::Refused,
        Told::NotFound { .. } => TroubleKind::NoBucket,
        Told::NotSupported { .. } | Told::NotImplemented { .. } => TroubleKind::Unsupported,
        _ if says(&["scheme is not allowed"]) => TroubleKind::PlainHttp,
        _ if says(&KEYS_OF_MACHINES) => TroubleKind::NoKeys,
        _ if says(&["status code: 501", "NotImplemented"]) => TroubleKind::Unsupported,
        // Keys that have expired or are malformed come as bad requests.
        _ if says(&["InvalidToken", "ExpiredToken", "AuthorizationHeaderMalformed"]) => {
            TroubleKind::Refused
        }
        _ if is_away(error) || says(&["status code: 5"]) => TroubleKind::Unreachable,
        _ => TroubleKind::Other,
    }
}

/// Whether no answer came.
fn is_away(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return !matches!(http.kind(), HttpErrorKind::Decode | HttpErrorKind::Unknown);
        }
        cause = error.source();
    }
    false
}

/// The text in one line; of a document in XML, its code and message alone.
fn one_line(text: &str) -> String {
    let (before, document) = match text.find("<?xml").or_else(|| text.find("<Error")) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let told: Vec<_> =
        ["Code", "Message"].into_iter().filter_map(|name| element(document, name)).collect();
    let whole = format!("{before}{}", told.join(": "));
    let mut line = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(SAID_CHARS_MAX) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// What stands in the first element of that name.
fn element<'text>(document: &'text str, name: &str) -> Option<&'text str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
}
