//! Inputs looked into before anything is spent on them.

use std::collections::BTreeMap;

use palisade_core::{
    InputName, ParameterName,
    recipe::{Fit, Input, InputKind, Recipe, StreamKind, Values},
};

use super::{
    RenderError,
    run::{Listener, Runner, how_ended},
    scratch::{BETWEEN, INPUTS, OUTPUTS, Scratch},
};
use crate::{
    media::{self, MEASURED_BYTES_MAX, Measure, MediaFacts, VideoStream},
    process::Exit,
};

/// What the media inputs are.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// As they say of themselves: the ground for progress, which must not be made up.
    pub(super) promising: BTreeMap<InputName, MediaFacts>,
    /// The same, with what they do not say measured: the ground for verification.
    pub(super) measured: BTreeMap<InputName, MediaFacts>,
}

/// Looks into all media inputs.
pub(super) async fn look_into(
    runner: &mut Runner,
    recipe: &Recipe,
    scratch: &Scratch,
) -> Result<Inputs, RenderError> {
    let mut inputs = Inputs::default();
    for input in recipe.inputs.iter().filter(|input| input.kind == InputKind::Media) {
        let facts = probe(runner, input).await?;
        let is_known = media::promised_us(&facts, true, true).is_some();
        let is_small =
            scratch.input_bytes.get(&input.name).is_some_and(|b| *b <= MEASURED_BYTES_MAX);
        let is_compared = recipe.outputs.iter().any(|output| {
            output.verify.as_ref().is_some_and(|v| v.input == input.name && v.duration.is_some())
        });
        let measured = if !is_known && is_small && is_compared {
            measure(runner, input, &facts).await?
        } else {
            facts.clone()
        };
        inputs.promising.insert(input.name.clone(), facts);
        inputs.measured.insert(input.name.clone(), measured);
    }
    Ok(inputs)
}

fn path_of(name: &InputName) -> String {
    format!("{INPUTS}/{name}")
}

async fn probe(runner: &mut Runner, input: &Input) -> Result<MediaFacts, RenderError> {
    let argv = media::probe_input_argv(&path_of(&input.name));
    let (ran, json) = runner.capture(&argv, &format!("probe-{}", input.name)).await?;
    let bad = |what: String| RenderError::definite("bad_input", format!("{}: {what}", input.name));
    if ran.exit != Exit::Code(0) {
        let failure = media::tool_failure("ffprobe", &how_ended(ran.exit), &ran.log);
        return Err(match (failure.reason, ran.exit) {
            (Some(reason), _) => RenderError::retryable(reason, failure.message),
            (None, Exit::Code(127)) => RenderError::retryable("tool_missing", failure.message),
            (None, Exit::Code(_)) => bad(media::bad_input(&ran.log)),
            (None, _) => RenderError::retryable("tool_failed", failure.message),
        });
    }
    let facts = MediaFacts::parse(json.as_bytes(), &ran.log);
    let facts = facts.ok_or_else(|| bad(media::bad_input(&ran.log)))?;
    for kind in &input.needs {
        let is_there = match kind {
            StreamKind::Video => facts.chosen_video().is_some(),
            StreamKind::Audio => facts.chosen_audio().is_some(),
        };
        if !is_there {
            return Err(bad(media::missing_stream(*kind, &facts)));
        }
    }
    Ok(facts)
}

async fn measure(
    runner: &mut Runner,
    input: &Input,
    facts: &MediaFacts,
) -> Result<MediaFacts, RenderError> {
    let argv = media::measure_argv(&path_of(&input.name));
    let mut packets = Packets(Measure::default());
    let ran = runner.run(&argv, &format!("measure-{}", input.name), &mut packets).await?;
    // A file that cannot be read to its end is ffmpeg's to judge; then nothing is promised.
    Ok(if ran.exit == Exit::Code(0) { packets.0.complete(facts) } else { facts.clone() })
}

struct Packets(Measure);

impl Listener for Packets {
    fn tells_progress(&self) -> bool {
        true
    }

    fn line(&mut self, line: &str) -> bool {
        self.0.line(line);
        true
    }
}

/// What the recipe's placeholders stand for.
pub(super) fn values(
    recipe: &Recipe,
    parameters: &BTreeMap<ParameterName, String>,
    inputs: &Inputs,
) -> Result<Values, RenderError> {
    let mut values = Values {
        inputs: recipe.inputs.iter().map(|i| (i.name.clone(), path_of(&i.name))).collect(),
        output_folder: OUTPUTS.to_owned(),
        only_output: recipe.only_output(),
        parameters: parameters.clone(),
        scratch: BETWEEN.to_owned(),
        ..Values::default()
    };
    for (name, facts) in &inputs.measured {
        // Where there is none, a specifier that matches nothing: `-map 0:a:0?` is then no stream.
        let video = facts.chosen_video().map_or("V:0".to_owned(), |s| s.index.to_string());
        let audio = facts.chosen_audio().map_or("a:0".to_owned(), |s| s.index.to_string());
        if let Some((frames, seconds)) = facts.chosen_video().map(VideoStream::constant_rate) {
            values.rate.insert(name.clone(), format!("{frames}/{seconds}"));
        }
        values.pad.insert(name.clone(), decimal_seconds(media::outlasting_us(facts)));
        values.video.insert(name.clone(), video);
        values.audio.insert(name.clone(), audio);
    }
    if let Some(fit) = &recipe.fit {
        values.fit = fitted(fit, &values, inputs)?;
    }
    Ok(values)
}

/// µs as seconds for a filter: `1.980000`.
fn decimal_seconds(us: i64) -> String {
    let us = us.max(0);
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn fitted(fit: &Fit, values: &Values, inputs: &Inputs) -> Result<Option<(u32, u32)>, RenderError> {
    let bad = |message: String| RenderError::definite("bad_parameters", message);
    let text = fit.shorter_side_max.expand(values).map_err(|error| bad(error.to_string()))?;
    let max: u32 = text.parse().map_err(|_| {
        bad(format!("fit.shorter_side_max: {text:?} is not allowed; must be a whole number"))
    })?;
    let video = inputs.measured.get(&fit.input).and_then(MediaFacts::chosen_video);
    Ok(video.map(|video| video.fit(max)))
}
