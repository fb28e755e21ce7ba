//! How the fields and words of somebody's log become ours.

use palisade_core::Invalid;

use super::pattern::Pattern;
use super::profile::Profile;
use crate::{EventKind, Settings};

/// Our fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// When: RFC 3339, epoch seconds or milliseconds.
    At,
    /// Who.
    Worker,
    /// Of what.
    Resource,
    /// What happened: one of our words, or one that is translated.
    Event,
    /// The lease's length: milliseconds, or with a unit (`30s`).
    TtlMs,
    /// The same, where a log counts it in seconds.
    TtlS,
    /// The fencing token, a whole number.
    Token,
    /// Which sort of effect.
    Kind,
    /// Anything more.
    Detail,
    /// Whether an effect landed or was refused, where a log has a field for it.
    Outcome,
    /// How long a reported pause was: milliseconds, or with a unit.
    DurationMs,
}

/// How many fields there are.
pub(super) const FIELDS: usize = 11;

impl Field {
    /// Every field.
    pub const ALL: [Self; FIELDS] = [
        Self::At,
        Self::Worker,
        Self::Resource,
        Self::Event,
        Self::TtlMs,
        Self::TtlS,
        Self::Token,
        Self::Kind,
        Self::Detail,
        Self::Outcome,
        Self::DurationMs,
    ];

    /// Our name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::At => "at",
            Self::Worker => "worker",
            Self::Resource => "resource",
            Self::Event => "event",
            Self::TtlMs => "ttl_ms",
            Self::TtlS => "ttl_s",
            Self::Token => "token",
            Self::Kind => "kind",
            Self::Detail => "detail",
            Self::Outcome => "outcome",
            Self::DurationMs => "duration_ms",
        }
    }

    /// The field that we call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// How the lines of a log are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// A header with the names of the columns, then a record a line; `,`, `;` or tab between.
    Csv,
    /// `key=value` pairs.
    Logfmt,
    /// Plain lines that regular expressions take apart.
    Pattern,
}

impl Format {
    /// The format called `name`: `json`, `csv`, `logfmt` or `pattern`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" | "jsonl" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "logfmt" => Some(Self::Logfmt),
            "pattern" => Some(Self::Pattern),
            _ => None,
        }
    }

    pub(super) fn from_file_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1;
        match extension.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(Self::Json),
            "csv" | "tsv" => Some(Self::Csv),
            "logfmt" => Some(Self::Logfmt),
            _ => None,
        }
    }

    /// From a file's first line.
    pub(super) fn guess(line: &str, translation: &Translation) -> Self {
        let line = line.trim_start();
        let at = translation.name_of(Field::At);
        if !translation.patterns.is_empty() {
            Self::Pattern
        } else if line.starts_with('{') || line.trim_end() == "[" {
            Self::Json
        } else if line.contains(&format!("{at}=")) || !line.contains([',', ';', '\t']) {
            Self::Logfmt
        } else {
            Self::Csv
        }
    }
}

/// What is known of a system beyond the wording of its log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Customs {
    /// A completion is recorded somewhere: it is an effect too.
    pub(super) completions_are_effects: bool,
    /// Nothing is logged between beginning and end.
    pub(super) silence_says_nothing: bool,
    /// Only a holder's own release does anything.
    pub(super) releases_are_guarded: bool,
}

/// How somebody's log becomes ours.
#[derive(Debug, Clone, Default)]
pub struct Translation {
    /// The format; found out from each file if it is not said.
    pub(super) format: Option<Format>,
    /// Their name of each field, the names that were asked for first.
    pub(super) names: Vec<(Box<str>, Field)>,
    pub(super) words: Vec<(Box<str>, EventKind)>,
    pub(super) patterns: Vec<Pattern>,
    /// Whether a name holds a dot, so that objects within objects must be looked into.
    pub(super) nested: bool,
    /// Lines of other matters are passed over rather than called unreadable.
    pub(super) pass_over_others: bool,
    pub(super) worker_is_file: bool,
    pub(super) ttl_ms: Option<u64>,
    pub(super) customs: Customs,
    /// The year of times that leave it out.
    pub(super) year: u64,
}

/// A translation that cannot be used. The caller can mend it.
#[derive(Debug, thiserror::Error)]
pub enum TranslationError {
    /// A name or word that is not allowed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A pattern that is not a regular expression.
    #[error("pattern: not a regular expression")]
    Pattern(#[source] Box<regex::Error>),
    /// A profile that is not TOML of the right shape.
    #[error("profile: not a profile")]
    Profile(#[source] Box<toml::de::Error>),
}

/// Other names of the time, which are understood without being told.
const TIME_NAMES: [&str; 4] = ["ts", "time", "timestamp", "@timestamp"];

impl Translation {
    /// Our own words and names.
    pub fn new() -> Self {
        let own = Field::ALL.into_iter().map(|field| (field.name().into(), field));
        let times = TIME_NAMES.iter().map(|name| ((*name).into(), Field::At));
        Self { names: own.chain(times).collect(), year: 1970, ..Self::default() }
    }

    /// What the analysis may take for granted of logs that are read so.
    pub fn settings(&self) -> Settings {
        Settings {
            silence_says_nothing: self.customs.silence_says_nothing,
            releases_are_guarded: self.customs.releases_are_guarded,
            ..Settings::default()
        }
    }

    /// Fixes the format.
    pub const fn set_format(&mut self, format: Format) {
        self.format = Some(format);
    }

    /// The ttl of grants and renewals that do not say theirs, in ms.
    pub const fn set_ttl_ms(&mut self, ttl_ms: u64) {
        self.ttl_ms = Some(ttl_ms);
    }

    /// The year of times that leave it out.
    pub const fn set_year(&mut self, year: u64) {
        self.year = year;
    }

    /// Takes `field=name`: our field, their name of it. Replaces the names it had.
    pub fn map(&mut self, text: &str) -> Result<(), TranslationError> {
        let shape = || Invalid::new("map", text, "must be `field=name`");
        let (field, name) = text.split_once('=').ok_or_else(shape)?;
        let field = Field::from_name(field.trim()).ok_or_else(|| {
            let names: Vec<&str> = Field::ALL.iter().map(|field| field.name()).collect();
            Invalid::new("map", field, format!("the field must be one of {}", names.join(", ")))
        })?;
        if name.trim().is_empty() {
            return Err(shape().into());
        }
        self.rename(field, name.trim());
        Ok(())
    }

    pub(super) fn rename(&mut self, field: Field, name: &str) {
        self.names.retain(|(_, known)| *known != field);
        self.names.insert(0, (name.into(), field));
        self.nested = self.names.iter().any(|(name, _)| name.contains('.'));
    }

    /// Takes `their_word=our_word`.
    pub fn word(&mut self, text: &str) -> Result<(), TranslationError> {
        let shape = || Invalid::new("event", text, "must be `their_word=our_word`");
        let (theirs, ours) = text.rsplit_once('=').ok_or_else(shape)?;
        let kind = EventKind::from_word(ours.trim()).ok_or_else(|| {
            let words: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.word()).collect();
            Invalid::new("event", ours, format!("our word must be one of {}", words.join(", ")))
        })?;
        self.words.insert(0, (theirs.trim().into(), kind));
        Ok(())
    }

    /// Takes a regular expression with groups named as our fields.
    pub fn pattern(&mut self, text: &str) -> Result<(), TranslationError> {
        self.patterns.push(Pattern::new(text, None)?);
        self.format = Some(Format::Pattern);
        Ok(())
    }

    /// Takes all that a profile says; what is said afterwards overrides it.
    pub fn profile(&mut self, profile: &Profile) -> Result<(), TranslationError> {
        profile.apply(self)
    }

    pub(super) fn event(&self, word: &str) -> Option<EventKind> {
        let translated = self.words.iter().find(|(theirs, _)| **theirs == *word);
        translated
            .map(|(_, kind)| *kind)
            .or_else(|| EventKind::from_word(word))
            .or_else(|| EventKind::from_loose_word(word))
    }

    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.names.iter().find(|(known, _)| **known == *name).map(|(_, field)| *field)
    }

    /// What this log calls a field.
    pub(super) fn name_of(&self, field: Field) -> &str {
        let named = self.names.iter().find(|(_, known)| *known == field);
        named.map_or(field.name(), |(name, _)| name)
    }
}
