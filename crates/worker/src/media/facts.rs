//! What ffprobe says of a file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::parse_us;

/// A media file as it says it is. Times are in µs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaFacts {
    /// The container, as ffprobe calls it (`mov,mp4,m4a,3gp,3g2,mj2`).
    pub format: String,
    /// Where its times begin.
    pub start_us: Option<i64>,
    /// How long it says it is; absent where it does not say, or where ffprobe had to guess.
    pub duration_us: Option<i64>,
    /// Its moving pictures; covers and thumbnails are not among them.
    pub video: Vec<VideoStream>,
    /// Its sound, as far as there is a decoder for it.
    pub audio: Vec<AudioStream>,
}

/// A video stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VideoStream {
    /// Its number in the file.
    pub index: u32,
    /// The codec (`h264`).
    pub codec: String,
    /// Stored width in pixels.
    pub width: u32,
    /// Stored height in pixels.
    pub height: u32,
    /// The shape of a pixel, width to height; `(1, 1)` where nothing is said.
    pub pixel_shape: (u32, u32),
    /// By how many degrees it is to be turned when shown.
    pub rotation: i32,
    /// The pixel format (`yuv420p`).
    pub pixel_format: String,
    /// The frame rate that all its times fit on, as a fraction; `(0, 0)` where nothing is said.
    pub base_rate: (u32, u32),
    /// The frame rate on average.
    pub average_rate: (u32, u32),
    /// Whether the file calls it the one to show.
    pub is_default: bool,
    /// Where its times begin.
    pub start_us: Option<i64>,
    /// How long it says it is.
    pub duration_us: Option<i64>,
}

/// An audio stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AudioStream {
    /// Its number in the file.
    pub index: u32,
    /// The codec (`aac`).
    pub codec: String,
    /// How many channels.
    pub channels: u32,
    /// Samples a second.
    pub sample_rate: u32,
    /// Whether the file calls it the one to play.
    pub is_default: bool,
    /// Where its times begin.
    pub start_us: Option<i64>,
    /// How long it says it is.
    pub duration_us: Option<i64>,
}

impl MediaFacts {
    /// Reads ffprobe's JSON (`-show_format -show_streams`). `log` is what it wrote beside it.
    pub(crate) fn parse(json: &[u8], log: &str) -> Option<Self> {
        let probed: Probed = serde_json::from_slice(json).ok()?;
        let format = probed.format?;
        // A guess from size and bit rate is no promise that an output could be held to.
        let is_guess = log.contains("Estimating duration from bitrate");
        let time = |text: &Option<String>| text.as_deref().and_then(parse_us);
        let duration = |text: &Option<String>| time(text).filter(|us| *us > 0 && !is_guess);
        let mut facts = Self {
            format: format.format_name,
            start_us: time(&format.start_time),
            duration_us: duration(&format.duration),
            ..Self::default()
        };
        for stream in probed.streams {
            let start_us = time(&stream.start_time);
            let tagged_us = tagged_end_us(&stream.tags).map(|end| end - start_us.unwrap_or(0));
            let duration_us = duration(&stream.duration).or(tagged_us);
            let is_default = stream.disposition.get("default") == Some(&1);
            let is_picture = ["attached_pic", "timed_thumbnails"]
                .iter()
                .any(|kind| stream.disposition.get(*kind) == Some(&1));
            match stream.codec_type.as_str() {
                "video" if !is_picture => facts.video.push(VideoStream {
                    index: stream.index,
                    width: stream.width,
                    height: stream.height,
                    pixel_shape: ratio(&stream.sample_aspect_ratio),
                    rotation: stream.rotation(),
                    codec: stream.codec_name,
                    pixel_format: stream.pix_fmt,
                    base_rate: fraction(&stream.r_frame_rate, '/').unwrap_or((0, 0)),
                    average_rate: fraction(&stream.avg_frame_rate, '/').unwrap_or((0, 0)),
                    is_default,
                    start_us,
                    duration_us,
                }),
                "audio" if stream.is_playable() => facts.audio.push(AudioStream {
                    index: stream.index,
                    channels: stream.channels,
                    sample_rate: stream.sample_rate.parse().unwrap_or(0),
                    codec: stream.codec_name,
                    is_default,
                    start_us,
                    duration_us,
                }),
                _ => {}
            }
        }
        Some(facts)
    }

    /// The video to be used: the one that the file calls so, else the first.
    pub fn chosen_video(&self) -> Option<&VideoStream> {
        let sized = || self.video.iter().filter(|stream| stream.width > 0 && stream.height > 0);
        sized().find(|stream| stream.is_default).or_else(|| sized().next())
    }

    /// The sound to be used: the one that the file calls so, else the first.
    pub fn chosen_audio(&self) -> Option<&AudioStream> {
        self.audio.iter().find(|stream| stream.is_default).or_else(|| self.audio.first())
    }

    /// What goes into a manifest.
    pub(crate) fn for_manifest(&self) -> BTreeMap<String, Value> {
        let mut facts = BTreeMap::new();
        let mut put = |name: &str, value: Value| {
            facts.insert(name.to_owned(), value);
        };
        if let Some(us) = self.duration_us {
            // Whole ms: exact in JSON, and all that containers keep.
            put("duration_ms", json!((us + 500) / 1_000));
        }
        if let Some(video) = self.chosen_video() {
            put("width", json!(video.width));
            put("height", json!(video.height));
            put("video_codec", json!(video.codec));
            put("pixel_format", json!(video.pixel_format));
        }
        if let Some(audio) = self.chosen_audio() {
            put("audio_codec", json!(audio.codec));
            put("channels", json!(audio.channels));
            put("sample_rate", json!(audio.sample_rate));
        }
        facts
    }
}

#[derive(Deserialize)]
struct Probed {
    format: Option<ProbedFormat>,
    #[serde(default)]
    streams: Vec<ProbedStream>,
}

#[derive(Deserialize)]
struct ProbedFormat {
    #[serde(default)]
    format_name: String,
    start_time: Option<String>,
    duration: Option<String>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ProbedStream {
    index: u32,
    codec_type: String,
    codec_name: String,
    width: u32,
    height: u32,
    sample_aspect_ratio: String,
    pix_fmt: String,
    r_frame_rate: String,
    avg_frame_rate: String,
    channels: u32,
    sample_rate: String,
    start_time: Option<String>,
    duration: Option<String>,
    disposition: BTreeMap<String, i64>,
    tags: BTreeMap<String, Value>,
    side_data_list: Vec<BTreeMap<String, Value>>,
}

impl ProbedStream {
    fn rotation(&self) -> i32 {
        let from_matrix =
            self.side_data_list.iter().find_map(|data| data.get("rotation")?.as_f64());
        #[expect(clippy::cast_possible_truncation, reason = "degrees, and clamped")]
        let degrees = from_matrix.map(|degrees| degrees.clamp(-360.0, 360.0).round() as i32);
        degrees.unwrap_or(0)
    }

    /// Telephones record sound for which there is no decoder beside one for which there is.
    fn is_playable(&self) -> bool {
        let is_known = !matches!(self.codec_name.as_str(), "" | "none" | "unknown");
        is_known && self.channels > 0 && self.sample_rate.parse::<u32>().is_ok_and(|rate| rate > 0)
    }
}

/// `64:45`. Anything else, and a shape that no camera or film has ever had, is taken as square:
/// it would blow up the picture beyond what any player takes.
fn ratio(text: &str) -> (u32, u32) {
    let is_sane = |(horizontal, vertical): &(u32, u32)| {
        let (horizontal, vertical) = (u64::from(*horizontal), u64::from(*vertical));
        horizontal <= vertical * 8 && vertical <= horizontal * 8
    };
    fraction(text, ':').filter(is_sane).unwrap_or((1, 1))
}

/// Two numbers, neither of them 0.
fn fraction(text: &str, separator: char) -> Option<(u32, u32)> {
    let (one, two) = text.split_once(separator)?;
    let (one, two) = (one.parse().ok()?, two.parse().ok()?);
    (one > 0 && two > 0).then_some((one, two))
}

/// Matroska keeps in a tag when a stream ends: `00:00:04.000000000`.
fn tagged_end_us(tags: &BTreeMap<String, Value>) -> Option<i64> {
    let text = tags.get("DURATION")?.as_str()?;
    let mut parts = text.splitn(3, ':');
    let mut whole =
        || parts.next()?.parse::<i64>().ok().filter(|part| (0..1_000_000).contains(part));
    let minutes = whole()? * 60 + whole()?;
    Some(minutes * 60_000_000 + parse_us(parts.next()?)?).filter(|us| *us > 0)
}
