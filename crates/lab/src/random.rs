//! Chance, all of it from one seed. Whole numbers alone: no float rounds differently elsewhere.

/// A stream of random numbers (`SplitMix64`). The same seed gives the same stream, everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A stream of its own for one part of the world, so that a draw more in one part does not
    /// change what the others see.
    #[must_use]
    pub fn fork(&self, part: &str) -> Self {
        let label = part.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut forked = Self { state: self.state ^ label };
        forked.state = forked.draw();
        forked
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next 128 bits.
    pub fn next_u128(&mut self) -> u128 {
        u128::from(self.draw()) << 64 | u128::from(self.draw())
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias of a remainder is below 2^-40 for every range used here.
        if end == 0 { 0 } else { self.draw() % end }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Whether something happens that happens `rate` times in a thousand.
    pub fn per_mille(&mut self, rate: u64) -> bool {
        rate > 0 && self.below(1_000) < rate
    }

    /// One of them. None when there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).expect("below a length");
        from.get(index)
    }
}
