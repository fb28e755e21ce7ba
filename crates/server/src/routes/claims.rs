//! Claiming.

use std::{collections::BTreeMap, time::Duration};

use axum::extract::State;
use palisade_api::wire::{
    CapabilityWire, ClaimRequest, ClaimResponse, GrantWire, InputWire, LeaseWire,
};
use palisade_core::{
    Invalid, JobId, LeaseId, Timestamp,
    lease::Pair,
    limits,
    spec::{InputRef, Spec},
};
use palisade_store::command::{Capability, Claim, Grant};

use super::{in_range, ok};
use crate::{app::App, claims, edge::Json, problems::Reply};

/// Most recipes that one claim may name.
const CAPABILITIES_MAX: usize = 1_000;

/// `POST /v1/claims`.
pub(crate) async fn claim(State(app): State<App>, Json(asked): Json<ClaimRequest>) -> Reply {
    let received = app.store.now();
    let wait_ms = in_range("wait_ms", asked.wait_ms, 0..=limits::WAIT_MS_MAX)?;
    let claim = parsed(&app, &asked)?;
    let came = claims::claim(&app, claim, Duration::from_millis(wait_ms)).await?;
    let claimed = came.deliver();
    Ok(ok(&ClaimResponse {
        grants: claimed.grants.iter().map(|grant| shown(grant, received)).collect(),
        lost: claimed.lost.iter().map(|(job, pair)| lease(*job, pair)).collect(),
    }))
}

fn parsed(app: &App, asked: &ClaimRequest) -> Result<Claim, Invalid> {
    let ttl_ms = asked.ttl_ms.unwrap_or(limits::TTL_MS_DEFAULT);
    let max_jobs = u64::from(asked.max_jobs.unwrap_or(1));
    let max_jobs = in_range("max_jobs", max_jobs, 1..=u64::from(limits::CLAIM_JOBS_MAX))?;
    if asked.recipes.is_empty() || asked.recipes.len() > CAPABILITIES_MAX {
        let allowed = format!("must name 1 to {CAPABILITIES_MAX} recipes");
        return Err(Invalid::new("recipes", &asked.recipes.len().to_string(), allowed));
    }
    let capabilities = asked.recipes.iter().enumerate().map(|(index, wire)| {
        capability(wire).map_err(|invalid| invalid.under(&format!("recipes[{index}]")))
    });
    Ok(Claim {
        worker: asked.worker.parse()?,
        session: asked.session.parse()?,
        request_id: asked.request_id.parse()?,
        seq: asked.seq,
        ttl_ms: in_range("ttl_ms", ttl_ms, limits::TTL_MS_MIN..=limits::TTL_MS_MAX)?,
        capabilities: capabilities.collect::<Result<_, _>>()?,
        lease_ids: (0..max_jobs).map(|_| LeaseId(app.entropy.next_u128())).collect(),
    })
}

fn capability(wire: &CapabilityWire) -> Result<Capability, Invalid> {
    let definition = wire.definition.parse();
    let named = |invalid| Invalid { field: "definition".to_owned(), ..invalid };
    Ok(Capability { recipe: wire.recipe.parse()?, definition: definition.map_err(named)? })
}

fn shown(grant: &Grant, received: Timestamp) -> GrantWire {
    let Grant { job, pair, ttl_ms } = grant;
    let attempt = job.attempts.iter().position(|attempt| attempt.token == pair.token);
    let granted_at = job.attempt(pair.token).map_or(received, |attempt| attempt.granted_at);
    let Spec { recipe, definition, inputs, parameters } = &job.spec;
    GrantWire {
        job: job.id.to_string(),
        token: pair.token.get(),
        lease: pair.lease_id.to_string(),
        ttl_ms: *ttl_ms,
        // Never more than passed: the holder adds it to the time for which it trusts its lease.
        // A grant given once more was renewed in this request, at its very beginning: none.
        waited_ms: granted_at.since_ms(received),
        recipe: recipe.to_string(),
        definition: definition.to_string(),
        inputs: inputs.iter().map(|(name, input)| (name.to_string(), input_wire(input))).collect(),
        parameters: parameters
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
        attempt: attempt.map_or(0, |index| index + 1),
    }
}

fn input_wire(input: &InputRef) -> InputWire {
    InputWire {
        digest: input.digest.to_string(),
        size_bytes: input.size_bytes,
        name: input.name.clone(),
    }
}

fn lease(job: JobId, pair: &Pair) -> LeaseWire {
    LeaseWire { job: job.to_string(), token: pair.token.get(), lease: pair.lease_id.to_string() }
}
