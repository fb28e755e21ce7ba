//! Whether an output is what was asked for. ffmpeg ends with status 0 on an input that was cut
//! off in the middle; only a look at what came out tells.

use palisade_core::manifest::Check;

use super::{MediaFacts, seconds};

/// What an output must be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    pub(crate) video: bool,
    pub(crate) audio: bool,
    /// Whether its duration is looked at: a picture has none.
    pub(crate) has_duration: bool,
    /// The promised length and how far from it the output may be, in µs; absent where the input
    /// promises none.
    pub(crate) duration_us: Option<(i64, i64)>,
    /// Width and height, with square pixels.
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) pixel_format: Option<String>,
    pub(crate) video_codec: Option<String>,
    pub(crate) audio_codec: Option<String>,
}

/// What is wrong with an output, in a person's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) String);

/// Compares an output with what it must be. Answers what was looked at and found, or the first
/// thing that is not so. `name` is the output's.
pub(crate) fn verify(
    name: &str,
    expected: &Expected,
    found: &MediaFacts,
) -> Result<Vec<Check>, Fault> {
    let mut looked = Looked { name, checks: Vec::new() };
    looked.streams(expected, found)?;
    looked.duration(expected, found)?;
    looked.picture(expected, found)?;
    if let Some(codec) = &expected.audio_codec
        && let Some(audio) = found.chosen_audio()
    {
        looked.same("audio codec", codec, &audio.codec)?;
    }
    Ok(looked.checks)
}

struct Looked<'a> {
    name: &'a str,
    checks: Vec<Check>,
}

impl Looked<'_> {
    fn note(&mut self, what: &str, expected: impl Into<String>, found: impl Into<String>) {
        let name = format!("{}: {what}", self.name);
        self.checks.push(Check { name, expected: expected.into(), found: found.into() });
    }

    fn same(&mut self, what: &str, expected: &str, found: &str) -> Result<(), Fault> {
        self.note(what, expected, found);
        if expected == found {
            return Ok(());
        }
        Err(self.fault(&format!("its {what} is {found}, and should be {expected}")))
    }

    fn fault(&self, what: &str) -> Fault {
        Fault(format!("the output {} is not what was asked for: {what}", self.name))
    }

    fn streams(&mut self, expected: &Expected, found: &MediaFacts) -> Result<(), Fault> {
        let words = |video: usize, audio: usize| format!("{video} video, {audio} audio");
        let wanted = words(usize::from(expected.video), usize::from(expected.audio));
        self.same("streams", &wanted, &words(found.video.len(), found.audio.len()))
    }

    fn duration(&mut self, expected: &Expected, found: &MediaFacts) -> Result<(), Fault> {
        if !expected.has_duration {
            return Ok(());
        }
        let said = |us: Option<i64>| us.map_or_else(|| "not said".to_owned(), seconds);
        let Some((promised, tolerance)) = expected.duration_us else {
            self.note("duration", "unknown: the input does not say", said(found.duration_us));
            return Ok(());
        };
        let within = format!("{} within {}", seconds(promised), seconds(tolerance));
        self.note("duration", within, said(found.duration_us));
        let Some(actual) = found.duration_us else {
            return Err(self.fault("it does not say how long it is"));
        };
        if actual < promised - tolerance {
            return Err(Fault(format!(
                "the output {} is too short: {}, where the input promises {}; the input is \
                 probably damaged or was cut off",
                self.name,
                seconds(actual),
                seconds(promised)
            )));
        }
        if actual > promised + tolerance {
            let (actual, promised) = (seconds(actual), seconds(promised));
            return Err(self.fault(&format!(
                "its duration is {actual}, longer than the {promised} that the input promises"
            )));
        }
        Ok(())
    }

    fn picture(&mut self, expected: &Expected, found: &MediaFacts) -> Result<(), Fault> {
        let Some(video) = found.chosen_video() else { return Ok(()) };
        if let Some((width, height)) = expected.size {
            let (shown_width, shown_height, denominator) = video.shown();
            let shown = format!("{}x{}", shown_width / denominator, shown_height / denominator);
            self.same("shown size", &format!("{width}x{height}"), &shown)?;
            let (horizontal, vertical) = video.pixel_shape;
            self.same("pixel shape", "1:1", &format!("{horizontal}:{vertical}"))?;
        }
        if let Some(format) = &expected.pixel_format {
            self.same("pixel format", format, &video.pixel_format)?;
        }
        if let Some(codec) = &expected.video_codec {
            self.same("video codec", codec, &video.codec)?;
        }
        Ok(())
    }
}
