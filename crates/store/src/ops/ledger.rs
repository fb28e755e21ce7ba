//! The record of requests: asked again under the same id, the first answer is given again.

use palisade_core::{Digest, Invalid, Refusal, RequestId};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    fault::Fault,
    tables::{Recorded, Scope, Tables},
};

use super::Outcome;

/// A request's place in the record, if its author named it.
pub(super) struct Request {
    scope: Scope,
    id: Option<RequestId>,
    fingerprint: Digest,
}

impl Request {
    /// `asked` is what makes two requests the same: under one id, another request is refused.
    pub(super) fn new(scope: Scope, id: Option<RequestId>, asked: Digest) -> Self {
        Self { scope, id, fingerprint: asked }
    }

    /// The first answer, if there was one.
    pub(super) fn answered<A: DeserializeOwned>(
        &self,
        tables: &mut dyn Tables,
    ) -> Outcome<Option<A>> {
        let Some(id) = &self.id else { return Ok(Ok(None)) };
        let Some(recorded) = tables.recorded(&self.scope, id)? else { return Ok(Ok(None)) };
        if recorded.fingerprint != self.fingerprint {
            let allowed = "was used for another request already; a new request needs a new id";
            let invalid = Invalid::new("request_id", id.as_str(), allowed);
            return Ok(Err(Refusal::Invalid(invalid)));
        }
        serde_json::from_str(&recorded.answer).map(|answer| Ok(Some(answer))).map_err(|error| {
            Fault::Corrupt { record: format!("request {id}"), what: error.to_string() }
        })
    }

    /// Keeps the first answer.
    pub(super) fn keep<A: Serialize>(
        &self,
        tables: &mut dyn Tables,
        answer: &A,
    ) -> Result<(), Fault> {
        let Some(id) = &self.id else { return Ok(()) };
        let answer = serde_json::to_string(answer).expect("answers always serialise");
        tables.record(&self.scope, id, &Recorded { fingerprint: self.fingerprint, answer })
    }
}
