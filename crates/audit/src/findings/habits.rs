//! What is usual in this history: how long workers are silent while they work, where each worker
//! was silent, and how long things took.

use palisade_core::Timestamp;

/// How many samples are kept exactly; beyond, quantiles are within a sixteenth.
const EXACT_MAX: usize = 65_536;

/// Spans in ms, with their quantiles, in bounded memory.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    exact: Vec<u64>,
    buckets: Vec<u64>,
    count: u64,
    sum_ms: u64,
    max_ms: u64,
}

impl Samples {
    /// Takes a span.
    pub fn add(&mut self, ms: u64) {
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.max_ms = self.max_ms.max(ms);
        if self.exact.len() < EXACT_MAX {
            self.exact.push(ms);
        }
        let bucket = bucket_of(ms);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    /// How many spans there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in ms.
    pub const fn sum_ms(&self) -> u64 {
        self.sum_ms
    }

    /// The longest, in ms.
    pub const fn max_ms(&self) -> u64 {
        self.max_ms
    }

    /// Their mean, in ms; zero if there are none.
    pub fn mean_ms(&self) -> u64 {
        self.sum_ms.checked_div(self.count).unwrap_or(0)
    }

    /// The span that `percent` of them do not exceed, in ms; none if there are none.
    pub fn quantile_ms(&self, percent: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (self.count * percent).div_ceil(100).max(1);
        if self.count <= EXACT_MAX as u64 {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return sorted.get(usize::try_from(rank - 1).unwrap_or(usize::MAX)).copied();
        }
        Some(self.bucket_quantile(rank))
    }

    /// The same from the buckets alone, for use while the history is still running.
    pub(crate) fn rough_quantile_ms(&self, percent: u64) -> u64 {
        if self.count == 0 { 0 } else { self.bucket_quantile((self.count * percent).div_ceil(100)) }
    }

    fn bucket_quantile(&self, rank: u64) -> u64 {
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return bucket_end(bucket).min(self.max_ms);
            }
        }
        self.max_ms
    }

    /// How many lie at or above `from_ms` and below `to_ms`; edges are rounded to a sixteenth.
    pub fn between(&self, from_ms: u64, to_ms: u64) -> u64 {
        if self.count <= EXACT_MAX as u64 {
            return self.exact.iter().filter(|ms| (from_ms..to_ms).contains(*ms)).count() as u64;
        }
        let inside = |(bucket, _): &(usize, &u64)| {
            *bucket >= bucket_of(from_ms) && *bucket < bucket_of(to_ms)
        };
        self.buckets.iter().enumerate().filter(inside).map(|(_, count)| count).sum()
    }
}

/// Sixteen buckets to every doubling.
fn bucket_of(ms: u64) -> usize {
    if ms < 16 {
        return usize::try_from(ms).expect("below 16");
    }
    let octave = ms.ilog2() - 4;
    let step = (ms >> octave) - 16;
    usize::try_from(u64::from(octave + 1) * 16 + step).expect("at most 61 × 16")
}

/// The largest span of a bucket, in ms.
fn bucket_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 16 {
        return bucket;
    }
    let octave = bucket / 16 - 1;
    ((bucket % 16 + 17) << octave) - 1
}

/// How many silences a worker's track remembers.
const SILENCES: usize = 4;
/// Silences shorter than this are not worth remembering, in ms.
const SILENCE_MIN_MS: u64 = 500;

/// When a worker was heard of last, over all resources, and its longest recent silences.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    last_seen: Option<Timestamp>,
    silences: [(Timestamp, Timestamp); SILENCES],
}

/// The workers' tracks, by their number.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    tracks: Vec<Track>,
}

impl Tracks {
    /// Notes that `worker` gave a sign of life.
    pub(crate) fn seen(&mut self, worker: u32, at: Timestamp) {
        let index = worker as usize;
        if self.tracks.len() <= index {
            self.tracks.resize(index + 1, Track::default());
        }
        let track = &mut self.tracks[index];
        if let Some(last) = track.last_seen
            && at.since_ms(last) >= SILENCE_MIN_MS
        {
            track.remember(last, at);
        }
        track.last_seen = Some(track.last_seen.map_or(at, |last| last.max(at)));
    }

    /// When `worker` was heard of last.
    pub(crate) fn last_seen(&self, worker: u32) -> Option<Timestamp> {
        self.tracks.get(worker as usize).and_then(|track| track.last_seen)
    }

    /// The longest that `worker` was silent everywhere between two instants, in ms.
    pub(crate) fn silence_ms(&self, worker: u32, from: Timestamp, to: Timestamp) -> u64 {
        let Some(track) = self.tracks.get(worker as usize) else {
            return to.since_ms(from);
        };
        let now = track.last_seen.map_or(from, |last| last.max(from));
        let within =
            |(start, end): &(Timestamp, Timestamp)| (*end).min(to).since_ms((*start).max(from));
        track.silences.iter().map(within).max().unwrap_or(0).max(to.since_ms(now))
    }
}

impl Track {
    /// Keeps the longest silences, but lets go of those that are long over.
    fn remember(&mut self, from: Timestamp, to: Timestamp) {
        let worth = |silence: &(Timestamp, Timestamp)| {
            let length = silence.1.since_ms(silence.0);
            if to.since_ms(silence.1) > length.saturating_mul(20) { 0 } else { length }
        };
        let weakest = self.silences.iter_mut().min_by_key(|silence| worth(silence));
        if let Some(weakest) = weakest
            && worth(weakest) < to.since_ms(from)
        {
            *weakest = (from, to);
        }
    }
}

/// What is usual while somebody holds a resource.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// Silences between two signs of one attempt.
    pub(crate) gaps: Samples,
    /// Silences between two pieces of work of one attempt.
    pub(crate) work_gaps: Samples,
}

#[cfg(test)]
mod tests;
