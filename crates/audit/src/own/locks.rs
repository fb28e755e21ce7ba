//! Locks, and what their holders write to fenced objects.
//!
//! The journal tells of no renewal of a lock, but of when one that ran out was renewed last. Each
//! write of an object is told by its version: it is its own effect, and no other's again.

use palisade_core::{
    HolderName, LockName, Number, Timestamp,
    history::{Event, Subject, What},
    lock::LockClose,
};

use crate::{Entry, EventKind};

use super::{Ended, Telling, Translator};

/// How a lock is called among all resources.
pub fn lock_resource(name: &LockName) -> String {
    format!("lock {name}")
}

/// Whoever waits is denied when it begins to, and once more when it goes with nothing.
fn say_denied(name: &LockName, holder: &HolderName, telling: &mut Telling<'_>) {
    let (who, what) = (holder.to_string(), lock_resource(name));
    let source = telling.source();
    let entry = Entry::new(telling.at, &who, &what, EventKind::Denied);
    (telling.sink)(&Entry { source, ..entry });
}

impl Translator {
    /// Takes an entry about a lock, or about a write to an object.
    pub(super) fn push_of_lock(&mut self, event: &Event, telling: &mut Telling<'_>) {
        match (&event.subject, &event.what) {
            (Subject::Lock(name), What::LockGranted { token, ticket, holder, ttl_ms, .. }) => {
                self.held.insert(name.clone());
                self.waiting.remove(ticket);
                self.grant(*token, (holder.to_string(), lock_resource(name)), *ttl_ms, telling);
            }
            (Subject::Lock(name), What::LockClosed { token, how, renewed_at, deadline, .. }) => {
                self.held.remove(name);
                self.close_lock(*token, *how, renewed_at.zip(*deadline), telling);
            }
            // Of whom it is denied by, a journal without its beginning may know nothing.
            (Subject::Lock(name), What::LockWaiting { ticket, holder })
                if self.held.contains(name) =>
            {
                self.waiting.insert(*ticket);
                say_denied(name, holder, telling);
            }
            (Subject::Lock(name), What::LockLeft { ticket, holder })
                if self.waiting.remove(ticket) =>
            {
                say_denied(name, holder, telling);
            }
            (_, What::ObjectWritten { token, version, digest, .. }) => {
                if let Some(known) = self.attempts.get(token) {
                    let kind = if digest.is_some() { "put" } else { "delete" };
                    let detail = format!("version {version}");
                    let what = (kind, Some(detail.as_str()));
                    telling.say_effect(known, EventKind::Effect, *token, what);
                }
            }
            _ => {}
        }
    }

    fn close_lock(
        &mut self,
        token: Number,
        how: LockClose,
        lapsed: Option<(Timestamp, Timestamp)>,
        telling: &mut Telling<'_>,
    ) {
        let Some(known) = self.attempts.get_mut(&token) else { return };
        match how {
            LockClose::Superseded => {
                known.closed = Some(Ended::Lost);
                let (renewed_at, deadline) = lapsed.unwrap_or((known.granted_at, telling.at));
                telling.say_renewed_before(known, renewed_at);
                telling.say_at(deadline.min(telling.at), known, EventKind::Expired);
            }
            LockClose::Released | LockClose::Abandoned => {
                known.closed = Some(Ended::Well);
                telling.say(known, EventKind::Released);
            }
        }
        self.remember_closed(token);
    }
}
