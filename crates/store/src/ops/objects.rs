//! Fenced objects: put, delete, raise. The pair's standing is read in the transaction that writes.

use palisade_core::{
    Digest, ObjectKey, Refusal,
    blob::BlobState,
    history::{Event, Subject, What},
    lease::{Moment, Pair},
    object::{self, Content, Object, Standing, Write, Written},
};

use crate::{
    command::{DeleteObject, PutObject, RaiseObject},
    fault::Fault,
    tables::{Keeper, Tables},
};

use super::Outcome;

pub(super) fn put(tables: &mut dyn Tables, asked: PutObject, now: Moment) -> Outcome<Written> {
    let PutObject { key, pair, op, digest, generation: _, media_type, condition } = asked;
    let present = tables.blob(digest)?.filter(|blob| blob.state == BlobState::Present);
    let Some(blob) = present else {
        let field = "content".to_owned();
        return Ok(Err(Refusal::MissingBlob { field, digests: vec![digest] }));
    };
    let size_bytes = blob.size_bytes.unwrap_or_default();
    let generation = blob.generation;
    let content = Content::Blob { digest, generation, size_bytes, media_type };
    let write = Write { pair, op, content: Some(content), condition };
    swing(tables, "put", &key, write, now)
}

pub(super) fn delete(
    tables: &mut dyn Tables,
    asked: DeleteObject,
    now: Moment,
) -> Outcome<Written> {
    let DeleteObject { key, pair, op, condition } = asked;
    swing(tables, "delete", &key, Write { pair, op, content: None, condition }, now)
}

fn swing(
    tables: &mut dyn Tables,
    verb: &'static str,
    key: &ObjectKey,
    write: Write,
    now: Moment,
) -> Outcome<Written> {
    let before = tables.object(key)?;
    let (pair, op) = (write.pair, write.op);
    let standing = standing(tables, &pair)?;
    let fresh = tables.draw()?;
    match object::write(key, before.as_ref(), write, &standing, (fresh, now.at)) {
        Err(refusal) => refused(tables, (verb, key, pair), refusal, now),
        Ok(written) if written.repeated => Ok(Ok(written)),
        Ok(written) => {
            let after = &written.object;
            keep_content(tables, before.as_ref(), after)?;
            tables.put_object(after)?;
            let (token, version) = (pair.token, after.last.version);
            let what = What::ObjectWritten { token, op, version, digest: digest_of(after) };
            append(tables, key, what, now)?;
            Ok(Ok(written))
        }
    }
}

pub(super) fn raise(tables: &mut dyn Tables, asked: &RaiseObject, now: Moment) -> Outcome<Written> {
    let RaiseObject { key, pair } = asked;
    let before = tables.object(key)?;
    let standing = standing(tables, pair)?;
    let fresh = tables.draw()?;
    match object::raise(key, before, pair, &standing, (fresh, now.at)) {
        Err(refusal) => refused(tables, ("raise", key, *pair), refusal, now),
        Ok(written) => {
            if !written.repeated {
                tables.put_object(&written.object)?;
                append(tables, key, What::ObjectRaised { fence: written.object.fence }, now)?;
            }
            Ok(Ok(written))
        }
    }
}

/// What the pointer names now is kept, what it named before is not kept by it any more.
fn keep_content(
    tables: &mut dyn Tables,
    before: Option<&Object>,
    after: &Object,
) -> Result<(), Fault> {
    if let Some(Content::Blob { digest, generation, .. }) = &after.content {
        tables.keep_blob(*digest, *generation, &Keeper::Object(after.last.version))?;
    }
    match before.filter(|object| object.is_readable()) {
        Some(object) => tables.drop_keeper(&Keeper::Object(object.last.version)),
        None => Ok(()),
    }
}

fn digest_of(object: &Object) -> Option<Digest> {
    match &object.content {
        Some(Content::Blob { digest, .. }) => Some(*digest),
        Some(Content::Manifest { .. }) | None => None,
    }
}

/// How a pair stands, whether an attempt was granted it or a lock's holder.
fn standing(tables: &mut dyn Tables, pair: &Pair) -> Result<Standing, Fault> {
    if let Some(held) = tables.held().get(pair.token) {
        let own = held.lease_id == pair.lease_id;
        return Ok(if own { Standing::Open } else { Standing::Unknown });
    }
    if let Some(grant) = tables.lock_grant(pair.token)? {
        if grant.pair != *pair {
            return Ok(Standing::Unknown);
        }
        let Some((_, how)) = grant.closed else { return Ok(Standing::Open) };
        let fence = tables.lock(&grant.name)?.map_or(pair.token.next(), |lock| lock.fence);
        return Ok(Standing::Closed { fence, reason: how.to_string() });
    }
    let Some(job) = tables.job_of_token(pair.token)? else { return Ok(Standing::Unknown) };
    let Some(job) = tables.job(job)? else { return Ok(Standing::Unknown) };
    let attempt = job.attempt(pair.token).filter(|one| one.lease_id == pair.lease_id);
    Ok(match attempt.map(|attempt| attempt.closed.as_ref()) {
        None => Standing::Unknown,
        Some(None) => Standing::Open,
        Some(Some(closed)) => {
            Standing::Closed { fence: job.fence, reason: closed.reason.as_str().to_owned() }
        }
    })
}

/// A refusal that tells of a late or reordered write goes to the journal; one of a stranger, or of
/// a condition that did not hold, tells nothing of the object.
fn refused<A>(
    tables: &mut dyn Tables,
    (verb, key, pair): (&'static str, &ObjectKey, Pair),
    refusal: Refusal,
    now: Moment,
) -> Outcome<A> {
    if matches!(refusal, Refusal::StaleWrite { .. } | Refusal::StaleOp { .. }) {
        let what = What::Refused {
            verb: verb.to_owned(),
            token: pair.token,
            code: refusal.code().to_owned(),
            message: refusal.to_string(),
        };
        append(tables, key, what, now)?;
    }
    Ok(Err(refusal))
}

fn append(tables: &mut dyn Tables, key: &ObjectKey, what: What, now: Moment) -> Result<(), Fault> {
    let subject = Subject::Object(key.clone());
    tables.append(&[Event { at: now.at, subject, what }])
}
