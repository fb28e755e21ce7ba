//! What the steps have left in the folder of outputs, held against what the recipe promises.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use palisade_core::{
    InputName, OutputName,
    manifest::Check,
    recipe::{Output, Presence, Recipe, Span, Template, Values, Verification},
};

use super::{
    RenderError, RenderedOutput,
    run::{Runner, how_ended},
    scratch::{OUTPUTS, Scratch},
};
use crate::{
    media::{self, Expected, MediaFacts},
    process::Exit,
};

/// How long the output will be, in µs, where the inputs say so: of the first output that is held
/// to a duration.
pub(super) fn expected_us(
    recipe: &Recipe,
    values: &Values,
    inputs: &BTreeMap<InputName, MediaFacts>,
) -> Option<i64> {
    recipe.outputs.iter().find_map(|output| {
        let verify = output.verify.as_ref()?;
        expected(verify, values, inputs)?.duration_us.map(|(promised, _)| promised)
    })
}

/// Finds, looks into and verifies all outputs.
pub(super) async fn collect(
    runner: &mut Runner,
    recipe: &Recipe,
    values: &Values,
    inputs: &BTreeMap<InputName, MediaFacts>,
    scratch: &Scratch,
) -> Result<(Vec<RenderedOutput>, Vec<Check>), RenderError> {
    let folder = scratch.outputs.clone();
    let listed = tokio::task::spawn_blocking(move || list(&folder)).await;
    let files = listed
        .map_err(|_stopped| RenderError::Killed)?
        .map_err(|error| RenderError::of_io("the outputs cannot be listed", &error))?;
    let (mut outputs, mut checks) = (Vec::new(), Vec::new());
    for output in &recipe.outputs {
        let matching: Vec<_> =
            files.iter().filter(|file| output.name.matches(&file.name)).collect();
        if matching.is_empty() && output.required {
            return Err(bad_output(format!("there is no output {}", output.name.as_str())));
        }
        for file in matching {
            let rendered = take(output, file)?;
            let name = format!("{}: size", file.name);
            let found = format!("{} bytes", file.size_bytes);
            checks.push(Check { name, expected: "not empty".to_owned(), found });
            outputs.push(rendered);
        }
        if let (Some(verify), Some(rendered)) = (&output.verify, outputs.last_mut()) {
            let mut found = probe(runner, &rendered.name).await?;
            let expected = expected(verify, values, inputs).unwrap_or_default();
            if !expected.has_duration {
                // What ffprobe says of a picture's duration means nothing.
                found.duration_us = None;
            }
            let looked = media::verify(rendered.name.as_str(), &expected, &found);
            checks.extend(looked.map_err(|fault| bad_output(fault.0))?);
            rendered.facts = found.for_manifest();
        }
    }
    outputs.sort_by(|one, two| one.name.cmp(&two.name));
    Ok((outputs, checks))
}

fn bad_output(message: String) -> RenderError {
    RenderError::definite("bad_output", message)
}

/// A file in the folder of outputs.
#[derive(Debug)]
struct Found {
    name: OutputName,
    path: PathBuf,
    size_bytes: u64,
}

fn take(output: &Output, file: &Found) -> Result<RenderedOutput, RenderError> {
    if file.size_bytes == 0 {
        return Err(bad_output(format!("the output {} is empty", file.name)));
    }
    Ok(RenderedOutput {
        name: file.name.clone(),
        path: file.path.clone(),
        media_type: output.media_type.clone(),
        size_bytes: file.size_bytes,
        facts: BTreeMap::new(),
    })
}

/// All plain files below the folder whose path makes a name. Links are left out: a tool that is
/// made to write one must not make us upload what it points to.
fn list(folder: &Path) -> io::Result<Vec<Found>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let path = entry.path();
            let below = path.strip_prefix(folder).ok().and_then(Path::to_str);
            if metadata.is_dir() {
                open.push(path);
            } else if let (true, Some(Ok(name))) = (metadata.is_file(), below.map(str::parse)) {
                found.push(Found { name, path, size_bytes: metadata.len() });
            }
        }
    }
    found.sort_by(|one: &Found, two| one.name.cmp(&two.name));
    Ok(found)
}

async fn probe(runner: &mut Runner, name: &OutputName) -> Result<MediaFacts, RenderError> {
    let argv = media::probe_output_argv(&format!("{OUTPUTS}/{name}"));
    let (ran, json) = runner.capture(&argv, "probe-output").await?;
    let facts = MediaFacts::parse(json.as_bytes(), &ran.log);
    let bad = || {
        let failure = media::tool_failure("ffprobe", &how_ended(ran.exit), &ran.log);
        match failure.reason {
            Some(reason) => RenderError::retryable(reason, failure.message),
            None => bad_output(format!("the output {name} cannot be read: {}", failure.message)),
        }
    };
    if ran.exit == Exit::Code(0) { facts.ok_or_else(bad) } else { Err(bad()) }
}

/// What an output must be, by its input. Nothing where the input was not looked into.
fn expected(
    verify: &Verification,
    values: &Values,
    inputs: &BTreeMap<InputName, MediaFacts>,
) -> Option<Expected> {
    let input = inputs.get(&verify.input)?;
    let is_wanted = |presence: Presence, has: bool| match presence {
        Presence::Absent => false,
        Presence::Required => true,
        Presence::AsInput => has,
    };
    let video = is_wanted(verify.video, input.chosen_video().is_some());
    let audio = is_wanted(verify.audio, input.chosen_audio().is_some());
    let span = verify.duration.as_ref();
    let promised_us = span.and_then(|span| {
        let whole_us = media::promised_us(input, video, audio)?;
        covered_us(span, whole_us, values)
    });
    let tolerance_us = span.map_or(0, |span| {
        i64::try_from(span.tolerance_ms).unwrap_or(i64::MAX).saturating_mul(1_000)
    });
    Some(Expected {
        video,
        audio,
        has_duration: span.is_some(),
        duration_us: promised_us.map(|promised| (promised, tolerance_us)),
        size: values.fit.filter(|_| verify.fit),
        pixel_format: verify.pixel_format.clone(),
        video_codec: verify.video_codec.clone(),
        audio_codec: verify.audio_codec.clone(),
    })
}

/// How much of the input a span covers.
fn covered_us(span: &Span, whole_us: i64, values: &Values) -> Option<i64> {
    let number = |template: &Template| media::parse_us(&template.expand(values).ok()?);
    let start_us = span.start_s.as_ref().map_or(Some(0), number)?;
    let at_most_us = span.at_most_s.as_ref().map_or(Some(i64::MAX), number)?;
    Some(whole_us.saturating_sub(start_us).max(0).min(at_most_us))
}
