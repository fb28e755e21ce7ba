//! The length of a file that does not say it, from the times of its packets. Reads the whole
//! file, but decodes nothing.

use std::collections::BTreeMap;

use super::{MediaFacts, guard, parse_us};

/// Files larger than this are not measured, in bytes: reading them twice is not cheap.
pub(crate) const MEASURED_BYTES_MAX: u64 = 2 << 30;

/// Lists the packets of a file.
pub(crate) fn measure_argv(path: &str) -> Vec<String> {
    guard::packets_argv(path)
}

/// Takes in the list, line by line.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    /// First and last time of each stream, in µs.
    spans: BTreeMap<u32, (i64, i64)>,
}

impl Measure {
    /// One line: `stream_index=0|pts_time=0.007000|duration_time=0.033000`.
    pub(crate) fn line(&mut self, line: &str) {
        let field = |name: &str| {
            line.split('|').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        };
        let index = field("stream_index").and_then(|text| text.parse().ok());
        let (Some(index), Some(start)) = (index, field("pts_time").and_then(parse_us)) else {
            return;
        };
        let end = start + field("duration_time").and_then(parse_us).unwrap_or(0);
        let span = self.spans.entry(index).or_insert((start, end));
        *span = (span.0.min(start), span.1.max(end));
    }

    /// The facts with what was measured in place of what was not said.
    pub(crate) fn complete(&self, facts: &MediaFacts) -> MediaFacts {
        let mut complete = facts.clone();
        let length = |index: u32| self.spans.get(&index).map(|(start, end)| end - start);
        for video in &mut complete.video {
            video.duration_us = video.duration_us.or_else(|| length(video.index));
        }
        for audio in &mut complete.audio {
            audio.duration_us = audio.duration_us.or_else(|| length(audio.index));
        }
        complete
    }
}
