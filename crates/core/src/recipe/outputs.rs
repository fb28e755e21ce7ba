//! What a recipe writes, and what must be true of it before it is committed.

use serde::{Deserialize, Serialize};

use super::Template;
use crate::{InputName, Invalid, OutputName};

/// An output of a recipe: one file, or the files of a pattern (a folder of segments).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The name below the folder of outputs, or a pattern with one `*` (`segment-*.ts`).
    pub name: OutputPattern,
    /// The media type of the file or files (`video/mp4`).
    pub media_type: String,
    /// Whether the render failed when it is not there. A pattern needs at least one file then.
    #[serde(default = "yes")]
    pub required: bool,
    /// What must be true of it. Without this it must only not be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verification>,
}

const fn yes() -> bool {
    true
}

/// A name of outputs, perhaps with one `*` that stands for one or more characters but no `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OutputPattern(String);

impl OutputPattern {
    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, if it is one and not a pattern.
    pub fn exact(&self) -> Option<OutputName> {
        self.0.parse().ok()
    }

    /// Whether a file of that name is meant.
    pub fn matches(&self, name: &OutputName) -> bool {
        let name = name.as_str();
        match self.0.split_once('*') {
            None => self.0 == name,
            Some((before, after)) => name
                .strip_prefix(before)
                .and_then(|rest| rest.strip_suffix(after))
                .is_some_and(|middle| !middle.is_empty() && !middle.contains('/')),
        }
    }
}

impl std::str::FromStr for OutputPattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // A star is checked as if a letter stood there; a second one is left, and refused.
        text.replacen('*', "x", 1).parse::<OutputName>().map_err(|error| {
            Invalid::new("output", text, format!("{}; one '*' may stand in it", error.allowed))
        })?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for OutputPattern {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<OutputPattern> for String {
    fn from(pattern: OutputPattern) -> Self {
        pattern.0
    }
}

/// The size to which pictures are brought: the shown size of an input (its rotation and the shape
/// of its pixels taken into account), made smaller where its shorter side is above the maximum,
/// never larger, ratio kept, sides even.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// The input whose size counts.
    pub input: InputName,
    /// The most that the shorter shown side may be, in pixels; may be `{param.NAME}`.
    pub shorter_side_max: Template,
}

/// What must be true of an output file that is a media file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// The input whose promise the output must keep.
    pub input: InputName,
    /// Whether there must be a video.
    #[serde(default)]
    pub video: Presence,
    /// Whether there must be sound.
    #[serde(default)]
    pub audio: Presence,
    /// Which span of the input the output must be as long as. Without it the duration is not
    /// looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Whether the video must have the size by the recipe's `fit`, with square pixels.
    #[serde(default)]
    pub fit: bool,
    /// The pixel format of the video (`yuv420p`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pixel_format: Option<String>,
    /// The codec of the video, as ffprobe calls it (`h264`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video_codec: Option<String>,
    /// The codec of the sound (`aac`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_codec: Option<String>,
}

/// Whether an output has a kind of stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It must not.
    #[default]
    Absent,
    /// It must.
    Required,
    /// It must if the input has, and must not if the input has not.
    AsInput,
}

/// The part of the input that an output covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Where it begins, in seconds; may be `{param.NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_s: Option<Template>,
    /// The longest that it can be, in seconds; may be `{param.NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_s: Option<Template>,
    /// How far from it the output may be, in ms.
    #[serde(default = "tolerance_ms_default")]
    pub tolerance_ms: u64,
}

const fn tolerance_ms_default() -> u64 {
    500
}
