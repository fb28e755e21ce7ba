//! What happened to a lock: a walk through the journal, which is kept by its jobs and not by its
//! locks. It reads in small steps, so that other questions get their turn.

use std::collections::VecDeque;

use palisade_api::wire::{EventView, HistoryView};
use palisade_core::{LockName, history::OfLock};
use palisade_store::query::{Query, View};

use super::ok;
use crate::{app::App, problems::Reply};

/// How many entries of the journal are read at once.
const READ_AT_ONCE: usize = 500;
/// Most entries of one answer.
pub(super) const ENTRIES_MAX: u64 = 100_000;
/// How many when no number is asked for.
const ENTRIES_DEFAULT: u64 = 10_000;

/// The newest entries of a lock's history, at most `limit`, oldest first.
pub(super) async fn reply(app: &App, name: LockName, limit: Option<u64>) -> Reply {
    let limit = usize::try_from(limit.unwrap_or(ENTRIES_DEFAULT)).expect("a small number");
    let mut story = OfLock::new(name);
    let mut newest: VecDeque<EventView> = VecDeque::new();
    // What is written while it reads is for the next one who asks: it must come to an end.
    let View::JournalSpan(span) = app.store.query(Query::JournalSpan).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let mut after = span.pruned;
    while after + 1 < span.next {
        let query = Query::Events { after, limit: READ_AT_ONCE };
        let View::Events(entries) = app.store.query(query).await? else {
            unreachable!("each query is answered by its own kind");
        };
        let Some((last, _)) = entries.last() else { break };
        after = *last;
        for (position, event) in entries {
            if story.takes(&event) {
                newest.push_back(EventView { position, event });
                if newest.len() > limit {
                    newest.pop_front();
                }
            }
        }
    }
    Ok(ok(&HistoryView { events: newest.into() }))
}
