//! Recipes: what a render is, as data. An operator writes one as TOML; this module is its shape
//! and the pure rules about it.
//!
//! A recipe is a list of steps (each a program and its arguments, never a shell), what it reads,
//! what it writes, the parameters a submission may set, and what must be true of an output before
//! it may be committed.
//!
//! Must not know: TOML, files, processes. Reading recipes and running them is the worker's.

mod book;
mod check;
mod decimal;
mod definition;
mod outputs;
mod parameter;
mod template;

pub use book::RecipeBook;
pub use outputs::{Fit, Output, OutputPattern, Presence, Span, Verification};
pub use parameter::{Parameter, ParameterKind};
pub use template::{Placeholder, Template, Values};

use serde::{Deserialize, Serialize};

use crate::{InputName, RecipeName, retry::RetryPolicy};

/// How one rendering is made. Two submissions with the same recipe name and
/// [definition](Recipe::definition), parameters and inputs are one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name in the book.
    pub name: RecipeName,
    /// One or two sentences for people.
    #[serde(default)]
    pub description: String,
    /// The tool that makes the output, recorded with each completion.
    pub tool: Tool,
    /// What is read. At least one.
    pub inputs: Vec<Input>,
    /// What is written, below the output folder. At least one.
    pub outputs: Vec<Output>,
    /// What a submission may set.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// The programs, run one after the other. At least one.
    pub steps: Vec<Step>,
    /// The size that `{fit.width}` and `{fit.height}` stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// When to give up, in seconds of running time: time in which the render was frozen does not
    /// count.
    #[serde(default = "defaults::time_limit_s")]
    pub time_limit_s: u64,
    /// How long a render may go without any progress, in seconds of running time.
    #[serde(default = "defaults::stall_limit_s")]
    pub stall_limit_s: u64,
    /// What the exit codes of the steps mean.
    #[serde(default)]
    pub exit_codes: ExitCodes,
    /// How much room a render needs.
    #[serde(default)]
    pub scratch: Scratch,
    /// How often it is tried.
    #[serde(default)]
    pub retry: Retry,
}

/// One program run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The program and its arguments. One element is one argument, whatever a placeholder in it
    /// stands for; there is no shell. Placeholders are described at [`Template`].
    pub argv: Vec<Template>,
    /// How its progress is read.
    #[serde(default)]
    pub progress: Progress,
    /// The share of the whole render that this step is, in percent. Shares of all steps make 100;
    /// 0 for all of them means equal shares.
    #[serde(default)]
    pub share_percent: u32,
}

/// How the progress of a step is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// No progress is read, so the stall limit does not apply.
    #[default]
    None,
    /// The step is ffmpeg: the worker adds `-progress` and compares the time written with the
    /// duration that is to be expected.
    Ffmpeg,
    /// Lines `progress N` on standard output, N in percent, 0 to 100, with or without a fraction.
    Lines,
}

/// The tool of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The program's name (`ffmpeg`), looked up in the worker's path.
    pub name: String,
    /// Only this version may run the recipe. `5.1` accepts `5.1`, `5.1.9` and `5.1-3`, not `5.10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Tool {
    /// Whether a worker whose tool says `version` of itself may run the recipe.
    pub fn accepts(&self, version: &str) -> bool {
        let Some(pinned) = &self.version else { return true };
        version
            .strip_prefix(pinned.as_str())
            .is_some_and(|rest| !rest.starts_with(|ch: char| ch.is_ascii_alphanumeric()))
    }
}

/// Something that is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name in submissions (`source`) and in placeholders (`{input.source}`).
    pub name: InputName,
    /// What it is for, for people.
    #[serde(default)]
    pub description: String,
    /// Whether it is a media file, which is looked into before the first step.
    #[serde(default)]
    pub kind: InputKind,
    /// The kinds of streams without which the recipe can do nothing.
    #[serde(default)]
    pub needs: Vec<StreamKind>,
}

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// A video or sound file of an allowed format.
    #[default]
    Media,
    /// Any bytes: the recipe's program knows.
    Bytes,
}

/// A kind of stream in a media file. A cover picture is not a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKind {
    /// Moving pictures.
    Video,
    /// Sound.
    Audio,
}

impl std::fmt::Display for StreamKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Video => "video",
            Self::Audio => "audio",
        })
    }
}

/// What exit codes other than 0 mean. Some messages of media tools (no space, no memory) mean
/// "later" whatever the code.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitCodes {
    /// Codes after which another try may succeed.
    #[serde(default)]
    pub retry: Vec<i32>,
    /// Codes after which no other try can.
    #[serde(default)]
    pub give_up: Vec<i32>,
    /// What all others mean.
    #[serde(default)]
    pub otherwise: Verdict,
}

/// Whether another try may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It may.
    #[default]
    Retry,
    /// It cannot: the job fails at once.
    GiveUp,
}

impl ExitCodes {
    /// What `code` means.
    pub fn verdict(&self, code: i32) -> Verdict {
        if self.give_up.contains(&code) {
            Verdict::GiveUp
        } else if self.retry.contains(&code) {
            Verdict::Retry
        } else {
            self.otherwise
        }
    }
}

/// The room that a render needs in its scratch folder, beside the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scratch {
    /// In percent of the inputs' size.
    pub input_percent: u64,
    /// And this many bytes.
    pub constant_bytes: u64,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { input_percent: 200, constant_bytes: 64 << 20 }
    }
}

impl Scratch {
    /// The room expected for inputs of this size together, in bytes.
    pub const fn expected_bytes(self, input_bytes: u64) -> u64 {
        (input_bytes / 100)
            .saturating_mul(self.input_percent)
            .saturating_add(input_bytes % 100 * self.input_percent / 100)
            .saturating_add(self.constant_bytes)
    }
}

/// How often a job of this recipe is tried; the numbers of its [`RetryPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The failure that makes the job `failed`: 3 means the third one does.
    #[serde(default = "defaults::failures_allowed")]
    pub failures_allowed: u32,
    /// How many losses are put up with.
    #[serde(default = "defaults::losses_allowed")]
    pub losses_allowed: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            failures_allowed: defaults::failures_allowed(),
            losses_allowed: defaults::losses_allowed(),
        }
    }
}

impl Retry {
    /// The policy of a job of this recipe, with the usual waits.
    pub fn policy(self) -> RetryPolicy {
        RetryPolicy {
            failures_allowed: self.failures_allowed,
            losses_allowed: self.losses_allowed,
            ..RetryPolicy::default()
        }
    }
}

/// What a recipe says when it says nothing.
mod defaults {
    use crate::retry::RetryPolicy;

    pub(super) const fn time_limit_s() -> u64 {
        6 * 60 * 60
    }

    pub(super) const fn stall_limit_s() -> u64 {
        5 * 60
    }

    pub(super) fn failures_allowed() -> u32 {
        RetryPolicy::default().failures_allowed
    }

    pub(super) fn losses_allowed() -> u32 {
        RetryPolicy::default().losses_allowed
    }
}

#[cfg(test)]
mod tests;
