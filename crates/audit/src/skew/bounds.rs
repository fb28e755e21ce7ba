//! How far the clocks of files can be apart when what every two of them say is taken together: if
//! one is at most so far before a second, and that at most so far before a third, the third is
//! bounded by the first.

/// Far beyond any correction, and safe to add to.
pub(super) const FAR_MS: i64 = i64::MAX / 4;
/// More files than this are only compared one after another.
pub(super) const FILES_MAX: usize = 32;

/// For every two files, by how much the second's correction can be above the first's, in ms.
#[derive(Debug)]
pub(super) struct Bounds {
    count: usize,
    most: Vec<i64>,
}

impl Bounds {
    /// Nothing is known yet.
    pub(super) fn new(count: usize) -> Self {
        let mut bounds = Self { count, most: vec![FAR_MS; count * count] };
        for file in 0..count {
            bounds.most[file * count + file] = 0;
        }
        bounds
    }

    /// The second's correction is above the first's by `low` to `high`.
    pub(super) fn narrow(&mut self, first: usize, second: usize, (low, high): (i64, i64)) {
        let (there, back) = (first * self.count + second, second * self.count + first);
        self.most[there] = self.most[there].min(high);
        self.most[back] = self.most[back].min(-low);
    }

    /// Draws what follows over third files. None: the bounds contradict each other.
    pub(super) fn closed(mut self) -> Option<Self> {
        let count = self.count;
        for over in 0..count {
            for first in 0..count {
                for second in 0..count {
                    let by_it = self.most[first * count + over] + self.most[over * count + second];
                    let place = first * count + second;
                    self.most[place] = self.most[place].min(by_it.min(FAR_MS));
                }
            }
        }
        (0..count).all(|file| self.most[file * count + file] >= 0).then_some(self)
    }

    /// Where a file's correction must lie, the first's being `offset_ms`.
    pub(super) fn from(&self, first: usize, offset_ms: i64, second: usize) -> (i64, i64) {
        let high = self.most[first * self.count + second];
        let low = -self.most[second * self.count + first];
        let open = |bound: i64| bound.abs() >= FAR_MS;
        (
            if open(low) { -FAR_MS } else { offset_ms + low },
            if open(high) { FAR_MS } else { offset_ms + high },
        )
    }
}
