//! Signatures, as Standard Webhooks describes them: `v1,` and the base64 of HMAC-SHA256 over
//! `id.timestamp.body`.

use base64::{Engine, engine::general_purpose::STANDARD};
use palisade_core::outbox::Secret;
use ring::hmac;

/// A secret as its receiver is given it.
pub(crate) fn shown(secret: &Secret) -> String {
    format!("whsec_{}", STANDARD.encode(secret.as_bytes()))
}

/// One signature.
pub(super) fn signature(key: &[u8], id: &str, sent_at_s: u64, body: &str) -> String {
    let mut signed = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    signed.update(format!("{id}.{sent_at_s}.").as_bytes());
    signed.update(body.as_bytes());
    format!("v1,{}", STANDARD.encode(signed.sign()))
}

/// The header: a signature by each secret, so that a receiver may know either of two.
pub(super) fn header(secrets: &[Secret], id: &str, sent_at_s: u64, body: &str) -> String {
    let signed = secrets.iter().map(|secret| signature(secret.as_bytes(), id, sent_at_s, body));
    signed.collect::<Vec<_>>().join(" ")
}
