//! Forgetting what is old.

use palisade_core::{Refusal, retention};

use crate::{
    command::{Forget, Forgotten},
    fault::Fault,
    tables::{Chunk, Tables},
};

use super::Outcome;

/// How many chunks of the journal one step looks at. A chunk has a hundred entries at most; a step
/// takes a few ms of the writer's time.
const CHUNKS_MAX: usize = 32;
/// How many first answers one step forgets of each kind.
const ANSWERS_MAX: usize = 500;

pub(super) fn forget(tables: &mut dyn Tables, asked: &Forget) -> Outcome<Forgotten> {
    let (entries, next) = entries(tables, asked)?;
    let mut answers = tables.forget_requests(asked.answers_before, ANSWERS_MAX)?;
    let mut more = answers == ANSWERS_MAX;
    let claims = tables.old_claims(asked.answers_before, ANSWERS_MAX)?;
    let all = claims.len();
    let mut went = 0;
    for claim in claims {
        // Asked again, a claim is answered with its grants for as long as one of them is open.
        if claim.grants.iter().all(|(_, token)| tables.held().get(*token).is_none()) {
            tables.drop_claim(&claim.session, &claim.claim)?;
            went += 1;
        }
    }
    answers += went;
    more |= all == ANSWERS_MAX && went > 0;
    let next = next.or(more.then_some(asked.after));
    Ok(Ok::<_, Refusal>(Forgotten { entries, answers: answers as u64, next }))
}

/// Answers how many entries went, and where to go on.
fn entries(tables: &mut dyn Tables, asked: &Forget) -> Result<(u64, Option<u64>), Fault> {
    let chunks = tables.chunks_after(asked.after, CHUNKS_MAX)?;
    let full = chunks.len() == CHUNKS_MAX;
    let (mut went, mut reached) = (0, None);
    for chunk in chunks {
        // Instants rise with positions, so nothing behind a young chunk is old.
        if chunk.newest >= asked.journal_before {
            return Ok((went, None));
        }
        let tells_of_live_job = tells_of_live_job(tables, &chunk)?;
        if retention::may_go(chunk.newest, asked.journal_before, tells_of_live_job) {
            tables.drop_chunk(&chunk)?;
            went += chunk.count;
        }
        reached = Some(chunk.first + chunk.count - 1);
    }
    Ok((went, reached.filter(|_| full)))
}

fn tells_of_live_job(tables: &mut dyn Tables, chunk: &Chunk) -> Result<bool, Fault> {
    for job in &chunk.jobs {
        if tables.is_live(*job)? {
            return Ok(true);
        }
    }
    Ok(false)
}
