//! The house's order, as tests: file lengths, banned words, dead files, documents' links.
//!
//! Each rule is a function over a file's text, so that each has a test of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Longest file of production code. What grows past it has two rooms in it.
const LINES_MAX: usize = 400;

/// Words that do not belong in what is committed, each with what to do instead.
/// Split here, so that this file does not hold them.
const BANNED: [(&str, &str, &str); 5] = [
    ("FIX", "ME", "mend it, or open an issue"),
    ("X", "XX", "mend it, or open an issue"),
    ("to", "do!(", "build it, or leave it out"),
    ("unimpl", "emented!(", "build it, or leave it out"),
    ("#[ig", "nore]", "a test that does not run asserts nothing"),
];

/// Words in names of types that say nothing, each with what to do instead.
const EMPTY_NAMES: [&str; 3] = ["Manager", "Helper", "Util"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn files(ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with(".git") {
                folders.push(path);
            } else if name.ends_with(ending) {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no {ending} file below {}", root().display());
    found
}

fn is_test(path: &Path) -> bool {
    let shown = path.to_string_lossy();
    shown.contains("/tests/") || shown.ends_with("tests.rs") || shown.contains("/examples/")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").display().to_string()
}

fn check(name: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{name}:\n{}", complaints.join("\n"));
}

fn too_long(text: &str) -> Option<usize> {
    Some(text.lines().count()).filter(|lines| *lines > LINES_MAX)
}

fn banned_words(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (head, tail, cure) in BANNED {
            if line.contains(&format!("{head}{tail}")) {
                complaints.push(format!("{}: {head}{tail}: {cure}", index + 1));
            }
        }
    }
    complaints
}

fn empty_names(text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))
    });
    declared
        .filter(|name| {
            let name = name.split(|ch: char| !ch.is_alphanumeric()).next().unwrap_or("");
            EMPTY_NAMES.iter().any(|empty| name.ends_with(empty))
        })
        .map(str::to_owned)
        .collect()
}

/// The relative links of a document, without their anchors.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://") && !link.starts_with('#') && !link.contains(' '))
        .map(|link| link.split('#').next().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn files_are_short() {
    let complaints: Vec<_> = files(".rs")
        .iter()
        .filter(|(path, _)| !is_test(path))
        .filter_map(|(path, text)| too_long(text).map(|lines| format!("{} {lines}", shown(path))))
        .collect();
    check(&format!("files of more than {LINES_MAX} lines; divide them"), &complaints);
}

#[test]
fn nothing_unfinished_is_left() {
    let complaints: Vec<_> = files(".rs")
        .iter()
        .filter(|(path, _)| !path.ends_with("cli/tests/tidy.rs"))
        .flat_map(|(path, text)| {
            banned_words(text).into_iter().map(|word| format!("{}:{word}", shown(path)))
        })
        .collect();
    check("banned words", &complaints);
}

#[test]
fn names_say_something() {
    let complaints: Vec<_> = files(".rs")
        .iter()
        .flat_map(|(path, text)| {
            empty_names(text).into_iter().map(|name| format!("{}: {name}", shown(path)))
        })
        .collect();
    check("names that say nothing; name what it is", &complaints);
}

#[test]
fn every_file_is_part_of_the_build() {
    let complaints: Vec<_> = files(".rs")
        .iter()
        .filter(|(path, _)| path.components().any(|part| part.as_os_str() == "src"))
        .filter(|(path, _)| !is_declared(path))
        .map(|(path, _)| shown(path))
        .collect();
    check("files that no `mod` names", &complaints);
}

/// Whether a parent module declares the file.
fn is_declared(path: &Path) -> bool {
    let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let folder = path.parent().expect("a file has a folder");
    if (stem == "lib" || stem == "main") && folder.ends_with("src") || folder.ends_with("src/bin") {
        return true;
    }
    // `a/mod.rs` is declared as `a` by the folder above; `a/b.rs` as `b` by `a.rs` or `a/mod.rs`.
    let (name, folder) = if stem == "mod" {
        let name = folder.file_name().expect("a module's folder has a name");
        (name.to_string_lossy().into_owned(), folder.parent().expect("below src"))
    } else {
        (stem, folder)
    };
    let parents = [
        folder.join("mod.rs"),
        folder.join("lib.rs"),
        folder.join("main.rs"),
        folder.with_extension("rs"),
    ];
    let declaration = format!("mod {name};");
    parents
        .iter()
        .filter_map(|parent| fs::read_to_string(parent).ok())
        .any(|text| text.lines().any(|line| line.trim_end().ends_with(&declaration)))
}

#[test]
fn documents_link_to_what_is_there() {
    let mut complaints = Vec::new();
    for (path, text) in files(".md") {
        let folder = path.parent().expect("a file has a folder");
        for link in links(&text) {
            if !folder.join(&link).exists() {
                complaints.push(format!("{}: {link}", shown(&path)));
            }
        }
    }
    check("links that lead nowhere", &complaints);
}

#[test]
fn documents_begin_with_a_title() {
    let complaints: Vec<_> = files(".md")
        .iter()
        .filter(|(_, text)| !text.starts_with("# "))
        .map(|(path, _)| shown(path))
        .collect();
    check("documents without a title in their first line", &complaints);
}

#[test]
fn the_rules_see_what_they_look_for() {
    assert_eq!(too_long(&"line\n".repeat(LINES_MAX)), None);
    assert_eq!(too_long(&"line\n".repeat(LINES_MAX + 1)), Some(LINES_MAX + 1));
    let unfinished = format!("fine\n// {}{}: later\n", "FIX", "ME");
    assert_eq!(banned_words(&unfinished).len(), 1);
    assert_eq!(banned_words("a todo list\n"), Vec::<String>::new());
    assert_eq!(empty_names("pub struct JobManager;\nstruct Job;\n"), ["JobManager;"]);
    assert_eq!(links("[a](b.md#c) [d](https://e) [f](#g)"), ["b.md"]);
}
