//! Profiles: what is known of the wording of a system's logs, as TOML.

use std::collections::BTreeMap;

use palisade_core::Invalid;
use serde::Deserialize;

use super::pattern::Pattern;
use super::translation::{Format, Translation, TranslationError};
use crate::EventKind;

/// What a profile says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the keys of a file, each on its own")]
pub struct Profile {
    /// What it is for, in a sentence.
    pub about: String,
    format: Option<String>,
    /// Lines that yield no entry are of other matters, not unreadable.
    #[serde(default)]
    pass_over_others: bool,
    /// Each file is one worker's log, and its name (to the first point) names the worker.
    #[serde(default)]
    worker_is_file: bool,
    ttl_ms: Option<u64>,
    /// What is called complete is recorded by the queue itself, for all to see.
    #[serde(default)]
    completions_are_effects: bool,
    /// Who works says nothing between its beginning and its end.
    #[serde(default)]
    silence_says_nothing: bool,
    /// Only a holder's own release does anything.
    #[serde(default)]
    releases_are_guarded: bool,
    #[serde(default)]
    fields: BTreeMap<String, String>,
    #[serde(default)]
    events: BTreeMap<String, String>,
    #[serde(default)]
    patterns: Vec<ProfilePattern>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfilePattern {
    pattern: String,
    event: Option<String>,
}

const BUILT_IN: [(&str, &str); 5] = [
    ("bullmq", include_str!("profiles/bullmq.toml")),
    ("celery", include_str!("profiles/celery.toml")),
    ("kubernetes", include_str!("profiles/kubernetes.toml")),
    ("redisson", include_str!("profiles/redisson.toml")),
    ("sidekiq", include_str!("profiles/sidekiq.toml")),
];

/// The names of the profiles that are built in.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// The built-in profile of that name.
pub fn built_in(name: &str) -> Option<Profile> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Profile::parse(text).expect("built-in profiles are tested to be valid"))
}

impl Profile {
    /// Reads a profile's TOML.
    pub fn parse(text: &str) -> Result<Self, TranslationError> {
        toml::from_str(text).map_err(|error| TranslationError::Profile(Box::new(error)))
    }

    pub(super) fn apply(&self, translation: &mut Translation) -> Result<(), TranslationError> {
        if let Some(name) = &self.format {
            let format = Format::from_name(name).ok_or_else(|| {
                Invalid::new("format", name, "must be json, csv, logfmt or pattern")
            })?;
            translation.set_format(format);
        }
        translation.pass_over_others |= self.pass_over_others;
        translation.worker_is_file |= self.worker_is_file;
        let customs = &mut translation.customs;
        customs.silence_says_nothing |= self.silence_says_nothing;
        customs.releases_are_guarded |= self.releases_are_guarded;
        customs.completions_are_effects |= self.completions_are_effects;
        translation.ttl_ms = self.ttl_ms.or(translation.ttl_ms);
        for (field, name) in &self.fields {
            translation.map(&format!("{field}={name}"))?;
        }
        for (theirs, ours) in &self.events {
            translation.word(&format!("{theirs}={ours}"))?;
        }
        for pattern in &self.patterns {
            let event = pattern.event.as_deref().map(event_of).transpose()?;
            translation.patterns.push(Pattern::new(&pattern.pattern, event)?);
            translation.set_format(Format::Pattern);
        }
        Ok(())
    }
}

fn event_of(word: &str) -> Result<EventKind, Invalid> {
    EventKind::from_word(word).ok_or_else(|| {
        let words: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.word()).collect();
        Invalid::new("patterns.event", word, format!("must be one of {}", words.join(", ")))
    })
}
