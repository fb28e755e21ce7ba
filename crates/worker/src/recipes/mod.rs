//! Recipes as TOML: those that are built in, and a folder of the operator's own.
//!
//! Must not know: how a recipe is run.

use std::{
    io,
    path::{Path, PathBuf},
};

use palisade_core::{
    Invalid,
    recipe::{Recipe, RecipeBook},
};

/// The recipes that come with the program.
const BUILT_IN: [&str; 7] = [
    include_str!("../../recipes/h264-1080p.toml"),
    include_str!("../../recipes/h264-720p.toml"),
    include_str!("../../recipes/hls.toml"),
    include_str!("../../recipes/prores-proxy.toml"),
    include_str!("../../recipes/thumbnail.toml"),
    include_str!("../../recipes/audio-aac.toml"),
    include_str!("../../recipes/gif-preview.toml"),
];

/// A recipe file that is no recipe. The operator can mend it.
#[derive(Debug, thiserror::Error)]
#[error("the recipe file {} cannot be used", file.display())]
pub struct RecipeFileError {
    /// The file (or the folder, if that could not be read).
    pub file: PathBuf,
    /// What is wrong with it.
    #[source]
    pub cause: RecipeFault,
}

/// What is wrong with a recipe file.
#[derive(Debug, thiserror::Error)]
pub enum RecipeFault {
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not the TOML of a recipe; the message names line and field and what is allowed.
    #[error(transparent)]
    Toml(#[from] Box<toml::de::Error>),
    /// A value in it is not allowed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// Another file of the folder has the same recipe.
    #[error("the recipe {name} is also in {}", other.display())]
    Twice {
        /// The recipe.
        name: String,
        /// The other file.
        other: PathBuf,
    },
}

/// The built-in recipes.
pub fn built_in() -> RecipeBook {
    let mut book = RecipeBook::new();
    for text in BUILT_IN {
        let recipe = parse(text).expect("the built-in recipes are valid: a test reads them");
        book.add(recipe).expect("the built-in recipes are valid: a test reads them");
    }
    book
}

/// The built-in recipes and those of the operator's folder (files `*.toml`, one recipe each), of
/// which one with the name of a built-in takes its place. Blocks; call it at start.
pub fn load(folder: Option<&Path>) -> Result<RecipeBook, RecipeFileError> {
    let mut book = built_in();
    let Some(folder) = folder else { return Ok(book) };
    let mut seen: Vec<(Recipe, PathBuf)> = Vec::new();
    for file in toml_files(folder).map_err(|error| fault(folder, error))? {
        let recipe = read(&file).map_err(|cause| RecipeFileError { file: file.clone(), cause })?;
        if let Some((_, other)) = seen.iter().find(|(earlier, _)| earlier.name == recipe.name) {
            let cause = RecipeFault::Twice { name: recipe.name.to_string(), other: other.clone() };
            return Err(RecipeFileError { file, cause });
        }
        seen.push((recipe, file));
    }
    for (recipe, file) in seen {
        book.add(recipe).map_err(|error| fault(&file, error))?;
    }
    Ok(book)
}

/// Reads the TOML of one recipe.
pub fn parse(text: &str) -> Result<Recipe, RecipeFault> {
    let recipe: Recipe = toml::from_str(text).map_err(Box::new)?;
    recipe.validate()?;
    Ok(recipe)
}

fn read(file: &Path) -> Result<Recipe, RecipeFault> {
    parse(&std::fs::read_to_string(file)?)
}

fn toml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    // In a folder's own order, which of two errors is told first would be chance.
    files.sort();
    Ok(files)
}

fn fault(file: &Path, cause: impl Into<RecipeFault>) -> RecipeFileError {
    RecipeFileError { file: file.to_owned(), cause: cause.into() }
}

#[cfg(test)]
mod tests;
