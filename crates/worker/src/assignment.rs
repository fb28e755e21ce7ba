//! A grant, checked: what came over the wire, as types that cannot hold a bad value.

use std::{collections::BTreeMap, sync::Arc};

use palisade_api::wire::GrantWire;
use palisade_core::{
    Digest, InputName, Invalid, JobId, Number, ParameterName, RecipeName, lease::Pair,
    recipe::Recipe,
};

use crate::offer::Offer;

/// A job to be rendered under a lease.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) job: JobId,
    pub(crate) pair: Pair,
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) parameters: BTreeMap<ParameterName, String>,
    pub(crate) inputs: BTreeMap<InputName, Input>,
    pub(crate) attempt: usize,
}

/// One input: its bytes' name and their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) digest: Digest,
    pub(crate) size_bytes: u64,
}

/// Which job under which lease; enough to hand it back.
pub(crate) fn named(grant: &GrantWire) -> Result<(JobId, Pair), Invalid> {
    let pair = Pair { token: Number::new(grant.token)?, lease_id: grant.lease.parse()? };
    Ok((grant.job.parse()?, pair))
}

impl Assignment {
    /// Checks a grant against what this worker offered.
    pub(crate) fn of(grant: &GrantWire, offer: &Offer) -> Result<Self, Invalid> {
        let (job, pair) = named(grant)?;
        let name: RecipeName = grant.recipe.parse()?;
        let definition: Digest = grant.definition.parse()?;
        let recipe = offer.get(&name, definition).ok_or_else(|| {
            let allowed = "must be a recipe that this worker offered, in that definition";
            Invalid::new("recipe", name.as_str(), allowed)
        })?;
        let parameters = grant.parameters.iter();
        let parameters = parameters.map(|(name, value)| Ok((name.parse()?, value.clone())));
        let inputs = grant.inputs.iter().map(|(name, input)| {
            let (digest, size_bytes) = (input.digest.parse()?, input.size_bytes);
            Ok((name.parse()?, Input { digest, size_bytes }))
        });
        Ok(Self {
            job,
            pair,
            recipe: Arc::clone(recipe),
            parameters: parameters.collect::<Result<_, Invalid>>()?,
            inputs: inputs.collect::<Result<_, Invalid>>()?,
            attempt: grant.attempt,
        })
    }

    /// The room that it is expected to take: the inputs, and what the recipe says, in bytes.
    pub(crate) fn expected_bytes(&self) -> u64 {
        let sizes = self.inputs.values().map(|input| input.size_bytes);
        let input_bytes = sizes.fold(0, u64::saturating_add);
        input_bytes.saturating_add(self.recipe.scratch.expected_bytes(input_bytes))
    }
}
