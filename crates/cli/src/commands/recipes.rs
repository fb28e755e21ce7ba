//! `recipes`: what can be made, and what may be set.

use std::{path::PathBuf, process::ExitCode};

use palisade_core::{RecipeName, recipe::Recipe};
use palisade_worker::recipes;
use serde_json::json;

use crate::output;

/// Flags of `recipes`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecipesArgs {
    /// One recipe alone, with all of it.
    name: Option<RecipeName>,
    /// A folder of TOML files with an operator's own recipes, beside the built-in ones.
    #[arg(long, value_name = "DIR")]
    recipes: Option<PathBuf>,
}

pub(crate) fn run(args: &RecipesArgs, json: bool) -> anyhow::Result<ExitCode> {
    let book = recipes::load(args.recipes.as_deref())?;
    let shown: Vec<&Recipe> = match &args.name {
        Some(name) => vec![book.get(name)?],
        None => book.iter().collect(),
    };
    if json {
        let list: Vec<_> = shown
            .iter()
            .map(|recipe| json!({ "definition": recipe.definition(), "recipe": recipe }))
            .collect();
        output::json(&json!({ "recipes": list }));
        return Ok(ExitCode::SUCCESS);
    }
    for recipe in shown {
        output::line(&format!("{}\n  {}", recipe.name, recipe.description));
        for input in &recipe.inputs {
            output::line(&format!("  input {}: {}", input.name, input.description));
        }
        for parameter in &recipe.parameters {
            let default = match &parameter.default {
                Some(text) => format!("{text:?} if not given"),
                None => "must be given".to_owned(),
            };
            let allowed = parameter.kind.allowed();
            output::line(&format!(
                "  param {}: {} It {allowed}; {default}.",
                parameter.name, parameter.description,
            ));
        }
        let outputs: Vec<_> = recipe.outputs.iter().map(|made| made.name.as_str()).collect();
        output::line(&format!("  makes {}", outputs.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}
