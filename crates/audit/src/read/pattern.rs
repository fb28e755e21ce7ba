//! Plain lines, taken apart by regular expressions with groups named as our fields.

use palisade_core::Invalid;
use regex::Regex;

use super::translation::{Field, Translation, TranslationError};
use super::{Raw, Why};
use crate::EventKind;

/// A regular expression, and what its match stands for.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// The groups' numbers and fields.
    groups: Vec<(usize, Field)>,
    event: Option<EventKind>,
}

impl Pattern {
    /// Checks that the groups are fields of ours, and that an event is said somewhere.
    pub(super) fn new(text: &str, event: Option<EventKind>) -> Result<Self, TranslationError> {
        let regex = Regex::new(text).map_err(|error| TranslationError::Pattern(Box::new(error)))?;
        let mut groups = Vec::new();
        for (number, name) in regex.capture_names().enumerate() {
            let Some(name) = name else { continue };
            let field = Field::from_name(name).ok_or_else(|| {
                let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
                Invalid::new("pattern", name, format!("groups are named {}", names.join(", ")))
            })?;
            groups.push((number, field));
        }
        let named = |field| groups.iter().any(|(_, known)| *known == field);
        if !named(Field::At) || !(named(Field::Event) || event.is_some()) {
            let allowed = "needs the groups `at` and `event`, as in (?P<at>\\S+)";
            return Err(Invalid::new("pattern", text, allowed).into());
        }
        Ok(Self { regex, groups, event })
    }
}

/// Takes a line apart by the first pattern that matches it.
pub(super) fn parse<'a>(line: &'a str, translation: &Translation) -> Result<Raw<'a>, Why> {
    for pattern in &translation.patterns {
        let Some(found) = pattern.regex.captures(line) else { continue };
        let mut raw = Raw::new();
        raw.event = pattern.event;
        for (number, field) in &pattern.groups {
            if let Some(group) = found.get(*number) {
                raw.set(*field, group.as_str());
            }
        }
        return Ok(raw);
    }
    if translation.pass_over_others {
        return Err(Why::Other);
    }
    Err(Why::Unreadable("does not match the pattern".to_owned()))
}
