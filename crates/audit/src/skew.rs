//! Files whose clocks disagree: how far each must be shifted for their histories to fit.
//!
//! Two leases of one resource do not overlap, a denial falls into another's lease, a higher token
//! is granted later, and work falls into the lease that it is done under. Each such pair of entries in two files rules out some corrections; the
//! smallest correction that contradicts the fewest pairs is the estimate, and the width of what
//! is left says how sure it is. One contradiction alone may as well be a fault of the lock
//! service, so it corrects nothing.

mod bounds;
mod leases;

use bounds::{Bounds, FAR_MS, FILES_MAX};
use leases::{Lease, Leases};

use crate::Entry;

/// How sure a correction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sureness {
    /// The clock that the others are measured by.
    Reference,
    /// Enough pairs agree, and leave little room.
    Sure,
    /// Pairs agree, but few, or they leave room.
    Likely,
    /// Nothing, or too little, connects the file with the others.
    Unknown,
}

impl Sureness {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Sure => "sure",
            Self::Likely => "likely",
            Self::Unknown => "unknown",
        }
    }
}

/// What one file's clock must be corrected by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    /// To be added to the file's times, in ms.
    pub offset_ms: i64,
    /// How far off that may be, either way, in ms; none if nothing bounds it.
    pub uncertainty_ms: Option<u64>,
    /// How many pairs of entries speak for it.
    pub pairs: u64,
    /// How many of them it contradicts.
    pub contradicted: u64,
    /// How sure it is.
    pub sureness: Sureness,
}

impl Skew {
    /// Whether the file's clock contradicts others', and it cannot be said, or only from one side,
    /// by how much it is off.
    pub fn is_doubtful(&self) -> bool {
        let left_as_it_is = self.sureness == Sureness::Unknown && self.contradicted > 0;
        left_as_it_is || (self.offset_ms != 0 && self.uncertainty_ms.is_none())
    }
}

/// Fewer contradictions than this correct nothing.
const CONTRADICTIONS_MIN: i64 = 2;
/// Room up to this, either way, counts as sure, in ms.
const SURE_MS: u64 = 2_000;
/// A correction that is smaller by this much is worth a contradiction, in ms.
const FAR_APART_MS: i64 = 30_000;
/// Where one side is open, a correction stays this close to the other, in ms.
const OPEN_SIDE_MS: i64 = 500;

/// Collects pairs, then estimates.
#[derive(Debug)]
pub struct Estimator {
    leases: Leases,
    files: u32,
}

impl Estimator {
    /// For this many files.
    pub fn new(files: u32) -> Self {
        Self { leases: Leases::default(), files }
    }

    /// Takes an entry; each file's in its own order.
    pub fn push(&mut self, entry: &Entry<'_>) {
        self.leases.push(entry);
    }

    /// The corrections, by index of the file.
    pub fn finish(self) -> Vec<Skew> {
        let count = self.files as usize;
        let mut sizes = vec![0_usize; count];
        for resource in self.leases.resources() {
            for lease in &resource.leases {
                sizes[lease.file as usize] += 1;
            }
        }
        let reference = (0..count).max_by_key(|file| (sizes[*file], count - file)).unwrap_or(0);
        let unknown = Skew {
            offset_ms: 0,
            uncertainty_ms: None,
            pairs: 0,
            contradicted: 0,
            sureness: Sureness::Unknown,
        };
        let mut skews: Vec<Option<Skew>> = vec![None; count];
        if let Some(skew) = skews.get_mut(reference) {
            *skew =
                Some(Skew { sureness: Sureness::Reference, uncertainty_ms: Some(0), ..unknown });
        }
        let bounds = self.bounds(count);
        let within = |file: usize, skews: &[Option<Skew>]| {
            let aligned = skews.iter().enumerate();
            let aligned = aligned.filter_map(|(other, skew)| Some((other, skew.as_ref()?)));
            let known = aligned.filter_map(|(other, skew)| {
                bounds.as_ref().map(|bounds| bounds.from(other, skew.offset_ms, file))
            });
            known.fold((-FAR_MS, FAR_MS), |(low, high), (a, b)| (low.max(a), high.min(b)))
        };
        // The file with the most pairs goes first; once aligned, it helps to align the others.
        loop {
            let next = (0..count)
                .filter(|file| skews[*file].is_none())
                .map(|file| (file, self.penalties(file, &skews)))
                .max_by_key(|(file, penalties)| (penalties.pairs, count - file));
            let Some((file, penalties)) = next else { break };
            let within = within(file, &skews);
            skews[file] = Some(estimate(&penalties, within));
        }
        skews.into_iter().map(|skew| skew.unwrap_or(unknown)).collect()
    }

    /// What every two files say of each other, where they do not contradict themselves much.
    fn bounds(&self, count: usize) -> Option<Bounds> {
        if !(3..=FILES_MAX).contains(&count) {
            return None;
        }
        let mut bounds = Bounds::new(count);
        for first in 0..count {
            let mut alone: Vec<Option<Skew>> = vec![None; count];
            alone[first] = Some(skew_of(0, None, 0, 0));
            for second in first + 1..count {
                if let Some(span) = self.penalties(second, &alone).span() {
                    bounds.narrow(first, second, span);
                }
            }
        }
        bounds.closed()
    }

    /// What the pairs between a file and those that are aligned rule out.
    fn penalties(&self, file: usize, skews: &[Option<Skew>]) -> Penalties {
        let mut penalties = Penalties::default();
        for resource in self.leases.resources() {
            let mut here: Vec<Lease> = Vec::new();
            let mut there: Vec<Lease> = Vec::new();
            // Somebody may have been denied because of one of these.
            let mut elsewhere = false;
            for lease in &resource.leases {
                match skews[lease.file as usize] {
                    _ if lease.file as usize == file => here.push(*lease),
                    Some(skew) => there.push(lease.shifted(skew.offset_ms)),
                    None => elsewhere = true,
                }
            }
            if here.is_empty() && there.is_empty() {
                continue;
            }
            for work in &resource.works {
                if work.file as usize == file {
                    let moves = there.iter().filter_map(|lease| work.moves_into(lease));
                    penalties.inside(moves.map(|(low, high)| (low, high.unwrap_or(FAR_MS))));
                } else if let Some(skew) = skews[work.file as usize] {
                    let work = work.shifted(skew.offset_ms);
                    let moves = here.iter().filter_map(|lease| work.moves_into(lease));
                    // What would move the work one way moves the leases the other.
                    let turned = moves.map(|(low, high)| (high.map_or(-FAR_MS, |at| -at), -low));
                    penalties.inside(turned);
                }
            }
            for (a, b) in there.iter().flat_map(|a| here.iter().map(move |b| (a, b))) {
                penalties.pair(a, b);
            }
            for denial in resource.denials.iter().filter(|_| !elsewhere) {
                if denial.file as usize == file {
                    let inside = |lease: &&Lease| lease.holds(denial.at);
                    if !there.is_empty() && here.iter().find(inside).is_none() {
                        let spans = there.iter().map(|a| (a.from - denial.at, a.to - denial.at));
                        penalties.outside(spans.collect());
                    }
                } else if let Some(skew) = skews[denial.file as usize]
                    && !here.is_empty()
                {
                    let at = denial.at + skew.offset_ms;
                    if !there.iter().any(|lease| lease.holds(at)) {
                        let spans = here.iter().map(|b| (at - b.to, at - b.from));
                        penalties.outside(spans.collect());
                    }
                }
            }
        }
        penalties
    }
}

/// Corrections that are ruled out, as intervals of ms.
#[derive(Debug, Default)]
struct Penalties {
    intervals: Vec<(i64, i64)>,
    pairs: u64,
}

impl Penalties {
    /// Leases of one resource, `a` aligned and `b` to be shifted.
    fn pair(&mut self, a: &Lease, b: &Lease) {
        self.pairs += 1;
        // They must not overlap.
        self.intervals.push((a.from - b.to + 1, a.to - b.from - 1));
        if let (Some(a_token), Some(b_token)) = (a.token, b.token) {
            if a_token < b_token {
                self.intervals.push((-FAR_MS, a.from - b.from - 1));
            } else if b_token < a_token {
                self.intervals.push((a.from - b.from + 1, FAR_MS));
            }
        }
    }

    /// Neighbouring intervals with the number of pairs that each contradicts, and how many no
    /// correction at all contradicts.
    fn regions(&self) -> (Vec<(i64, i64, i64)>, i64) {
        let mut steps: Vec<(i64, i64)> = Vec::with_capacity(self.intervals.len() * 2);
        let mut now = 0;
        for (from, to) in self.intervals.iter().filter(|(from, to)| from <= to) {
            steps.push((*from, 1));
            steps.push((*to + 1, -1));
            now += i64::from(*from <= 0 && 0 <= *to);
        }
        steps.sort_unstable();
        (regions(&steps), now)
    }

    /// The span of corrections that nearly all pairs allow, if there is one, nearest to no correction
    /// at all; which more than one pair must contradict.
    fn span(&self) -> Option<(i64, i64)> {
        let (regions, now) = self.regions();
        let few = |depth: i64| depth.unsigned_abs() * 8 <= self.pairs;
        let fewest = regions.iter().map(|region| region.2).min().filter(|depth| few(*depth))?;
        let best = regions.into_iter().filter(|region| region.2 == fewest);
        let (from, to, _) = best.min_by_key(distance)?;
        let moved = from > 0 || to < 0;
        let enough = self.pairs > 0 && (!moved || now - fewest >= CONTRADICTIONS_MIN);
        enough.then_some((from, to))
    }

    /// The correction must lie in one of the spans, if there are any.
    fn inside(&mut self, spans: impl Iterator<Item = (i64, i64)>) {
        let spans: Vec<_> = spans.collect();
        if !spans.is_empty() {
            self.outside(spans);
        }
    }

    /// The correction must lie in one of the spans.
    fn outside(&mut self, mut spans: Vec<(i64, i64)>) {
        self.pairs += 1;
        spans.sort_unstable();
        let mut from = -FAR_MS;
        for (start, end) in spans {
            if start > from {
                self.intervals.push((from, start - 1));
            }
            from = from.max(end + 1);
        }
        self.intervals.push((from, FAR_MS));
    }
}

/// The smallest correction within bounds that contradicts the fewest pairs.
fn estimate(penalties: &Penalties, (low, high): (i64, i64)) -> Skew {
    let (regions, mut now) = penalties.regions();
    let mut regions: Vec<_> = regions
        .into_iter()
        .map(|(from, to, depth)| (from.max(low), to.min(high), depth))
        .filter(|(from, to, _)| from <= to)
        .collect();
    if low > 0 || high < 0 {
        // What files say of each other over third ones contradicts it as well as any two pairs.
        now += CONTRADICTIONS_MIN;
    }
    if regions.is_empty() {
        regions.push((-FAR_MS, FAR_MS, now));
    }
    let fewest = regions.iter().map(|region| region.2).min().unwrap_or(0);
    let best =
        regions.iter().filter(|region| region.2 == fewest).min_by_key(|region| distance(region));
    let Some((from, to, contradicted)) = best.copied() else {
        return skew_of(0, None, 0, 0);
    };
    let pairs = penalties.pairs;
    if from <= 0 && 0 <= to {
        return skew_of(0, room(0, from, to), pairs, contradicted);
    }
    if now - contradicted < CONTRADICTIONS_MIN {
        return skew_of(0, None, pairs, now);
    }
    // A correction that explains away the last contradiction by moving a clock much further is
    // the worse explanation: one may be the fault that is looked for.
    let nearer = |region: &&(i64, i64, i64)| {
        region.2 < fewest + CONTRADICTIONS_MIN
            && distance(&(from, to, 0)) - distance(region) >= FAR_APART_MS
    };
    let near = regions.iter().filter(nearer).min_by_key(|region| (region.2, distance(region)));
    let (from, to, contradicted) = near.copied().unwrap_or((from, to, contradicted));
    let offset = match (from > -FAR_MS, to < FAR_MS) {
        (true, true) => from + (to - from) / 2,
        (true, false) => from + OPEN_SIDE_MS,
        (false, _) => to - OPEN_SIDE_MS,
    };
    skew_of(offset, room(offset, from, to), pairs, contradicted)
}

/// How far a region is from no correction, in ms.
fn distance(region: &(i64, i64, i64)) -> i64 {
    if region.0 <= 0 && 0 <= region.1 { 0 } else { region.0.abs().min(region.1.abs()) }
}

/// Neighbouring intervals with the number of pairs that each contradicts.
fn regions(steps: &[(i64, i64)]) -> Vec<(i64, i64, i64)> {
    let mut regions = Vec::new();
    let mut from = -FAR_MS;
    let mut depth = 0;
    for (place, change) in steps {
        if *place > from {
            regions.push((from, *place - 1, depth));
            from = *place;
        }
        depth += change;
    }
    if from <= FAR_MS {
        regions.push((from, FAR_MS, depth));
    }
    regions
}

/// How far an estimate may be off within its region; none if a side is open.
fn room(offset: i64, from: i64, to: i64) -> Option<u64> {
    (from > -FAR_MS && to < FAR_MS).then(|| (offset - from).max(to - offset).unsigned_abs())
}

fn skew_of(offset_ms: i64, room: Option<u64>, pairs: u64, contradicted: i64) -> Skew {
    let sureness = match room {
        _ if pairs == 0 => Sureness::Unknown,
        Some(room) if room <= SURE_MS && pairs >= 4 && contradicted == 0 => Sureness::Sure,
        Some(_) => Sureness::Likely,
        None if contradicted == 0 => Sureness::Likely,
        None => Sureness::Unknown,
    };
    let contradicted = contradicted.unsigned_abs();
    Skew { offset_ms, uncertainty_ms: room, pairs, contradicted, sureness }
}

#[cfg(test)]
mod tests;
