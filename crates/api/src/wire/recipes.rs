//! The recipe book, as submitters see it: what may be given, and what comes of it. Never a
//! command line.

use palisade_core::recipe::{Input, Parameter, ParameterKind, Recipe, RecipeBook};
use serde::{Deserialize, Serialize};

/// `GET /v1/recipes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeList {
    /// In the order of their names.
    pub recipes: Vec<RecipeView>,
}

/// One recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeView {
    /// Its name in submissions.
    pub name: String,
    /// For people.
    pub description: String,
    /// Its definition's digest: what a worker's claim must show.
    pub definition: String,
    /// The tool that makes the output, and the version that it is pinned to.
    pub tool: ToolView,
    /// What must be given.
    pub inputs: Vec<RecipeInputView>,
    /// What may be given.
    pub parameters: Vec<ParameterView>,
    /// What comes of it.
    pub outputs: Vec<RecipeOutputView>,
}

/// A recipe's tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolView {
    /// The program's name.
    pub name: String,
    /// The version that alone may run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// An input that a recipe declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeInputView {
    /// Its name in submissions.
    pub name: String,
    /// For people.
    pub description: String,
}

/// A parameter that a recipe declares: `type` and what belongs to it (`min` and `max`,
/// `choices`, …) stand beside the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterView {
    /// Its name in submissions.
    pub name: String,
    /// For people.
    pub description: String,
    /// Its type and range.
    #[serde(flatten)]
    pub kind: ParameterKind,
    /// The same in words.
    pub allowed: String,
    /// The value when none is given; without one it must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// An output of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeOutputView {
    /// Its name, or a pattern with one `*`.
    pub name: String,
    /// The media type of the file or files.
    pub media_type: String,
    /// Whether a render without it has failed.
    pub required: bool,
}

impl RecipeList {
    /// All recipes of a book.
    pub fn of(book: &RecipeBook) -> Self {
        Self { recipes: book.iter().map(RecipeView::of).collect() }
    }
}

impl RecipeView {
    /// What is shown of a recipe.
    pub fn of(recipe: &Recipe) -> Self {
        let outputs = recipe.outputs.iter().map(|output| RecipeOutputView {
            name: output.name.as_str().to_owned(),
            media_type: output.media_type.clone(),
            required: output.required,
        });
        Self {
            name: recipe.name.to_string(),
            description: recipe.description.clone(),
            definition: recipe.definition().to_string(),
            tool: ToolView { name: recipe.tool.name.clone(), version: recipe.tool.version.clone() },
            inputs: recipe.inputs.iter().map(RecipeInputView::of).collect(),
            parameters: recipe.parameters.iter().map(ParameterView::of).collect(),
            outputs: outputs.collect(),
        }
    }
}

impl RecipeInputView {
    fn of(input: &Input) -> Self {
        Self { name: input.name.to_string(), description: input.description.clone() }
    }
}

impl ParameterView {
    fn of(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.to_string(),
            description: parameter.description.clone(),
            allowed: parameter.kind.allowed(),
            kind: parameter.kind.clone(),
            default: parameter.default.clone(),
        }
    }
}
