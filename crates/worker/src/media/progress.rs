//! How far a tool is, from what it writes.

/// What ffmpeg's `-progress` has told so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FfmpegProgress {
    /// How much of the output's time is written, in µs.
    pub(crate) done_us: Option<i64>,
    /// How many times faster than the clip's own pace.
    pub(crate) speed: Option<f64>,
    /// Counts whatever moves: the stall limit asks for this to change, not for blocks to arrive.
    pub(crate) moves: u64,
    seen: [Option<i64>; 3],
}

impl FfmpegProgress {
    /// Takes the next line. Answers whether a block is complete.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let Some((key, value)) = line.split_once('=') else { return false };
        let value = value.trim();
        match key.trim() {
            "frame" => self.saw(0, value),
            "total_size" => self.saw(1, value),
            "out_time_us" => {
                self.saw(2, value);
                // It says so before anything is written, and negative times for priming samples.
                let us = value.parse().ok().filter(|us| *us >= 0);
                self.done_us = self.done_us.max(us);
            }
            "speed" => {
                let speed = value.strip_suffix('x').and_then(|text| text.trim().parse().ok());
                self.speed = speed.filter(|speed: &f64| speed.is_finite());
            }
            "progress" => return true,
            _ => {}
        }
        false
    }

    fn saw(&mut self, which: usize, value: &str) {
        let value = value.parse().ok();
        if value.is_some() && value != self.seen[which] {
            self.seen[which] = value;
            self.moves += 1;
        }
    }
}

/// A line `progress N` of any other tool, in percent.
pub(crate) fn percent_line(line: &str) -> Option<f64> {
    let percent: f64 = line.strip_prefix("progress ")?.trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}
