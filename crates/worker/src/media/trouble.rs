//! What is wrong, in a person's words. A tool's own words follow, since they are what one looks
//! up; but "Invalid argument" tells nobody that their upload was cut off.

use palisade_core::recipe::StreamKind;

use super::MediaFacts;

/// Formats that are lists of other files.
const PLAYLISTS: [&str; 7] = ["hls", "concat", "dash", "imf", "sdp", "rtsp", "webm_dash_manifest"];

/// Why ffprobe could not read an input, from what it wrote.
pub(crate) fn bad_input(log: &str) -> String {
    let said = last_words(log);
    let lower = log.to_ascii_lowercase();
    let what = if let Some(format) = refused_format(log) {
        return if PLAYLISTS.contains(&format) {
            format!(
                "the file is a playlist ({format}), which is not allowed: it would make us read \
                 other files"
            )
        } else {
            format!("the file's format ({format}) is not allowed")
        };
    } else if lower.contains("misdetection possible") {
        "the file is not a video or sound file of a known format (invalid data)"
    } else if lower.contains("moov atom not found") {
        "the file is damaged: its index (moov) is missing, as when an upload was cut off"
    } else if lower.contains("invalid data found") {
        "the file is not a video or sound file of a known format, or is damaged (invalid data)"
    } else {
        "the file could not be read: it is damaged or not a video or sound file of a known format"
    };
    format!("{what}; ffprobe says: {said}")
}

/// The format in `[hls @ 0x55] Format not on whitelist '…'`.
fn refused_format(log: &str) -> Option<&str> {
    let line = log.lines().find(|line| line.contains("Format not on whitelist"))?;
    line.strip_prefix('[')?.split(' ').next()
}

/// An input that lacks what the recipe works on.
pub(crate) fn missing_stream(kind: StreamKind, facts: &MediaFacts) -> String {
    match kind {
        // It has one, but nothing could be made out of it.
        StreamKind::Video if !facts.video.is_empty() => {
            "the file's video is damaged, or of a kind that cannot be decoded".to_owned()
        }
        StreamKind::Video => "the file has no video stream (a cover picture is not one)".to_owned(),
        StreamKind::Audio => "the file has no audio stream that can be decoded".to_owned(),
    }
}

/// What became of a tool that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolFailure {
    /// A stable word, where its messages tell the cause.
    pub(crate) reason: Option<&'static str>,
    /// In a person's words, with the tool's last ones.
    pub(crate) message: String,
}

/// Why a tool failed, from how it ended (`exit code 1`) and what it wrote.
pub(crate) fn tool_failure(program: &str, how: &str, log: &str) -> ToolFailure {
    let lower = log.to_ascii_lowercase();
    let causes = [
        ("no space left on device", "disk_full", "the worker's disk is full"),
        ("disk quota exceeded", "disk_full", "the worker's disk quota is used up"),
        ("cannot allocate memory", "out_of_memory", "the worker had not enough memory"),
        ("input/output error", "worker_io", "the worker could not read or write a file"),
    ];
    let cause = causes.into_iter().find(|(phrase, ..)| lower.contains(phrase));
    let said = last_words(log);
    let said =
        if said.is_empty() { "it said nothing".to_owned() } else { format!("it says: {said}") };
    match cause {
        Some((_, reason, words)) => ToolFailure {
            reason: Some(reason),
            message: format!("{words}: {program} ended with {how}; {said}"),
        },
        None => {
            ToolFailure { reason: None, message: format!("{program} ended with {how}; {said}") }
        }
    }
}

/// The last lines that a tool wrote, without repeats, as one.
fn last_words(log: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in log.lines().rev().map(str::trim).filter(|line| !line.is_empty()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() == LAST_LINES {
            break;
        }
    }
    lines.reverse();
    lines.join("; ")
}

/// How many of a tool's last lines a message repeats.
const LAST_LINES: usize = 6;
