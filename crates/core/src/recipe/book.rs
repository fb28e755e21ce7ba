//! The recipes that a server or a worker knows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Recipe;
use crate::{Invalid, RecipeName};

/// Recipes by name.
///
/// Invariant: every recipe in it is [valid](Recipe::validate).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecipeBook {
    recipes: BTreeMap<RecipeName, Recipe>,
}

impl RecipeBook {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a recipe, in place of one of the same name (an operator's replaces a built-in one).
    pub fn add(&mut self, recipe: Recipe) -> Result<(), Invalid> {
        recipe.validate()?;
        self.recipes.insert(recipe.name.clone(), recipe);
        Ok(())
    }

    /// The recipe of that name, or a refusal that lists those there are.
    pub fn get(&self, name: &RecipeName) -> Result<&Recipe, Invalid> {
        self.recipes.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.recipes.keys().map(RecipeName::as_str).collect();
            Invalid::new("recipe", name.as_str(), format!("must be one of {}", known.join(", ")))
        })
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.values()
    }
}
