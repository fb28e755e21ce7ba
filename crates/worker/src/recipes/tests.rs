use std::{collections::BTreeMap, error::Error as _};

use palisade_core::recipe::{Progress, Template};
use serde_json::json;

use super::*;

#[test]
fn the_built_in_recipes_are_valid_and_say_what_they_are() {
    let names: Vec<String> = built_in().iter().map(|recipe| recipe.name.to_string()).collect();
    let expected =
        ["audio-aac", "gif-preview", "h264-1080p", "h264-720p", "hls", "prores-proxy", "thumbnail"];
    assert_eq!(names, expected);
    assert!(built_in().iter().all(|recipe| !recipe.description.is_empty()));
}

#[test]
fn every_built_in_recipe_fixes_its_threads_and_writes_nothing_of_the_machine() {
    for recipe in built_in().iter() {
        for step in &recipe.steps {
            let argv: Vec<&str> = step.argv.iter().map(Template::as_str).collect();
            assert!(argv.contains(&"-threads"), "{}", recipe.name);
            assert!(argv.contains(&"+bitexact"), "{}", recipe.name);
        }
    }
}

#[test]
fn a_definition_is_the_same_again_and_another_for_another_recipe() {
    let (once, again) = (built_in(), built_in());
    let digests: Vec<_> = once.iter().map(Recipe::definition).collect();
    assert_eq!(digests, again.iter().map(Recipe::definition).collect::<Vec<_>>());
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn defaults_of_built_in_parameters_resolve() {
    let book = built_in();
    let recipe = book.get(&"h264-720p".parse().expect("a name")).expect("it is there");
    let given = BTreeMap::from([("crf".to_owned(), json!(30))]);
    let resolved = recipe.resolve_parameters(&given).expect("allowed");
    let text: Vec<_> = resolved.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(text, ["crf=30", "preset=medium"]);
    let given = BTreeMap::from([("crf".to_owned(), json!(52))]);
    let error = recipe.resolve_parameters(&given).expect_err("out of range");
    let expected = "parameters.crf: \"52\" is not allowed; must be a whole number from 0 to 51";
    assert_eq!(error.to_string(), expected);
}

const SMALL: &str = r#"
name = "copy"
tool = { name = "cp" }
inputs = [{ name = "source", kind = "bytes" }]
outputs = [{ name = "copy.bin", media_type = "application/octet-stream" }]
steps = [{ argv = ["cp", "{input.source}", "{output}"] }]
"#;

fn load_files(files: &[(&str, &str)]) -> Result<RecipeBook, RecipeFileError> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    load(Some(folder.path()))
}

#[test]
fn an_operators_recipe_stands_beside_the_built_in_ones_or_takes_the_place_of_one() {
    let replaced = SMALL.replace("\"copy\"", "\"hls\"");
    let book = load_files(&[("a.toml", SMALL), ("b.toml", &replaced), ("notes.txt", "no")])
        .expect("both are recipes");
    assert_eq!(book.iter().count(), 8);
    let hls = book.get(&"hls".parse().expect("a name")).expect("there");
    assert_eq!((hls.tool.name.as_str(), hls.steps[0].progress), ("cp", Progress::None));
    assert_eq!((hls.retry.failures_allowed, hls.retry.losses_allowed), (3, 5));
}

#[test]
fn a_bad_file_is_named_with_the_field_and_what_is_allowed() {
    let bad = |change: (&str, &str)| {
        let text = SMALL.replace(change.0, change.1);
        assert_ne!(text, SMALL);
        let error = load_files(&[("mine.toml", &text)]).expect_err("not a recipe");
        assert!(error.to_string().contains("mine.toml"));
        error.source().expect("a cause").to_string()
    };
    let says = |text: String, words: &[&str]| {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    says(bad(("kind = \"bytes\"", "kind = \"blob\"")), &["`media`", "`bytes`", "line 4"]);
    says(bad(("inputs =", "imputs =")), &["imputs", "inputs"]);
    says(bad(("{input.source}", "{input.other}")), &["steps[0].argv", "declares"]);
    says(bad(("{output}", "{outptu}")), &["{outptu}", "{output.NAME}"]);
    says(bad(("copy.bin", "../copy.bin")), &["../copy.bin", "not beginning with '.'"]);
    says(bad(("\"cp\", \"{input", "\"{scratch}/x\", \"{input")), &["without placeholders"]);
    says(bad(("tool = { name = \"cp\" }", "tool = { name = \"/bin/cp\" }")), &["tool.name"]);
}

#[test]
fn two_files_with_the_same_recipe_are_refused() {
    let error = load_files(&[("a.toml", SMALL), ("b.toml", SMALL)]).expect_err("twice");
    assert!(error.source().expect("a cause").to_string().contains("a.toml"));
}
