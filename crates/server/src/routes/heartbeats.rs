//! Renewing all leases of a session.

use axum::extract::State;
use palisade_api::wire::{
    HeartbeatRequest, HeartbeatResponse, LeaseAnswer, LeaseStatus, LeaseWire, PauseWire,
    ReleasedWire,
};
use palisade_core::{Invalid, JobId, RequestId, lease::Pair, transition::Beat};
use palisade_store::{
    StoreExt,
    command::{Beats, Heartbeat},
};

use super::{in_batch, in_range, ok, pair};
use crate::{app::App, edge::Json, problems::Reply};

/// The highest `seq`: what every JSON reader keeps exact.
const SEQ_MAX: u64 = (1 << 53) - 1;
/// The longest pause, in ms, likewise.
const PAUSE_MS_MAX: u64 = (1 << 53) - 1;

/// `POST /v1/heartbeats`.
pub(crate) async fn heartbeat(
    State(app): State<App>,
    Json(asked): Json<HeartbeatRequest>,
) -> Reply {
    let heartbeat = parsed(&asked)?;
    let asked = heartbeat.leases.clone();
    let Beats { leases, released } = app.store.run(heartbeat).await?;
    let leases = asked.iter().zip(leases).map(|(lease, beat)| answer(lease, beat)).collect();
    let released = released
        .into_iter()
        .map(|(job, token)| ReleasedWire { job: job.to_string(), token: token.get() })
        .collect();
    Ok(ok(&HeartbeatResponse { leases, released }))
}

fn parsed(asked: &HeartbeatRequest) -> Result<Heartbeat, Invalid> {
    in_batch("leases", asked.leases.len())?;
    in_batch("pending", asked.pending.len())?;
    in_batch("pauses", asked.pauses.len())?;
    let pending = asked.pending.iter().enumerate().map(|(index, id)| {
        let named = |invalid| Invalid { field: format!("pending[{index}]"), ..invalid };
        id.parse::<RequestId>().map_err(named)
    });
    Ok(Heartbeat {
        session: asked.session.parse()?,
        seq: in_range("seq", asked.seq, 1..=SEQ_MAX)?,
        pending: pending.collect::<Result<_, _>>()?,
        leases: numbered("leases", &asked.leases, lease)?,
        pauses: numbered("pauses", &asked.pauses, pause)?,
    })
}

/// Each of a list, its errors under its place in it.
fn numbered<W, T>(
    list: &str,
    wires: &[W],
    parse: impl Fn(&W) -> Result<T, Invalid>,
) -> Result<Vec<T>, Invalid> {
    let parsed = wires.iter().enumerate().map(|(index, wire)| {
        parse(wire).map_err(|invalid| invalid.under(&format!("{list}[{index}]")))
    });
    parsed.collect()
}

fn lease(wire: &LeaseWire) -> Result<(JobId, Pair), Invalid> {
    Ok((wire.job.parse()?, pair("", wire.token, &wire.lease)?))
}

fn pause(wire: &PauseWire) -> Result<(JobId, Pair, u64), Invalid> {
    let pause_ms = in_range("pause_ms", wire.pause_ms, 0..=PAUSE_MS_MAX)?;
    Ok((wire.job.parse()?, pair("", wire.token, &wire.lease)?, pause_ms))
}

fn answer((job, pair): &(JobId, Pair), beat: Option<Beat>) -> LeaseAnswer {
    let (status, lost) = match beat {
        Some(Beat::Held) => (LeaseStatus::Held, None),
        Some(Beat::Lost(lost)) => (LeaseStatus::Lost, Some(lost)),
        Some(Beat::Cancelled) => (LeaseStatus::Cancelled, None),
        None => (LeaseStatus::UnknownToken, None),
    };
    LeaseAnswer {
        job: job.to_string(),
        token: pair.token.get(),
        status,
        reason: lost.as_ref().map(|lost| lost.reason.to_string()),
        fence: lost.as_ref().map(|lost| lost.fence.get()),
        completed_by: lost.and_then(|lost| lost.completed_by).map(palisade_core::Number::get),
    }
}
