//! What a claim offers: the recipes that this worker has in their present definition, has the
//! tool for, and has room for.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use palisade_api::wire::CapabilityWire;
use palisade_core::{
    Digest, RecipeName, Timestamp,
    recipe::{Recipe, RecipeBook},
};

use crate::{room::NoRoom, runner::Runner};

/// How long a recipe is not offered after one of its jobs had found no room, in ms, unless there
/// is room for it earlier: another worker may take that job, and the next may be smaller.
const SET_ASIDE_MS: u64 = 60_000;

/// A recipe that this worker can run.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) definition: Digest,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Offer {
    recipes: BTreeMap<RecipeName, Offered>,
    /// Recipes whose last job found no room, with what it needed and when.
    set_aside: Mutex<BTreeMap<RecipeName, (u64, Timestamp)>>,
}

impl Offer {
    /// Those of the book for which the runner has the tool that they pin. Also answers, for
    /// people, what the others lack.
    pub(crate) fn new(book: &RecipeBook, runner: &dyn Runner) -> (Self, Vec<String>) {
        let mut recipes = BTreeMap::new();
        let mut lacking = Vec::new();
        for recipe in book.iter() {
            let tool = &recipe.tool;
            match runner.tool_version(&tool.name) {
                Some(version) if tool.accepts(&version) => {
                    let definition = recipe.definition();
                    let offered = Offered { recipe: Arc::new(recipe.clone()), definition };
                    recipes.insert(recipe.name.clone(), offered);
                }
                Some(version) => {
                    let pinned = tool.version.as_deref().unwrap_or_default();
                    let (recipe, tool) = (&recipe.name, &tool.name);
                    lacking.push(format!("{recipe} wants {tool} {pinned}, there is {version}"));
                }
                None => {
                    lacking.push(format!("{} wants {}, there is none", recipe.name, tool.name));
                }
            }
        }
        (Self { recipes, set_aside: Mutex::new(BTreeMap::new()) }, lacking)
    }

    /// Whether there is nothing to offer, whatever the room.
    pub(crate) fn is_empty(&self) -> bool {
        self.recipes.is_empty()
    }

    /// The recipe of that name in that definition.
    pub(crate) fn get(&self, recipe: &RecipeName, definition: Digest) -> Option<&Arc<Recipe>> {
        let offered = self.recipes.get(recipe)?;
        (offered.definition == definition).then_some(&offered.recipe)
    }

    /// What may be claimed with so much room, or how much would be needed at least.
    pub(crate) fn within(
        &self,
        free_bytes: u64,
        now: Timestamp,
    ) -> Result<Vec<CapabilityWire>, NoRoom> {
        let mut fitting = Vec::new();
        let mut needed_bytes = u64::MAX;
        for (name, offered) in &self.recipes {
            let least = offered.recipe.scratch.expected_bytes(0).max(self.wanted(name, now));
            if least <= free_bytes {
                fitting.push(CapabilityWire {
                    recipe: name.to_string(),
                    definition: offered.definition.to_string(),
                });
            }
            needed_bytes = needed_bytes.min(least);
        }
        if fitting.is_empty() { Err(NoRoom { needed_bytes, free_bytes }) } else { Ok(fitting) }
    }

    /// A job of this recipe found no room.
    pub(crate) fn set_aside(&self, recipe: &RecipeName, needed_bytes: u64, now: Timestamp) {
        let mut aside = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        aside.insert(recipe.clone(), (needed_bytes, now));
    }

    fn wanted(&self, recipe: &RecipeName, now: Timestamp) -> u64 {
        let aside = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
        match aside.get(recipe) {
            Some((needed_bytes, at)) if now.since_ms(*at) < SET_ASIDE_MS => *needed_bytes,
            _ => 0,
        }
    }
}
