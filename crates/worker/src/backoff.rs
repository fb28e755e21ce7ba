//! How long to wait before the same thing is asked again.

use palisade_core::clock::Entropy;

/// Waits that double up to a limit; the upper half of each is random, so that workers which lost
/// their server together do not return together.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first_ms: u64,
    last_ms: u64,
    tries: u32,
}

impl Backoff {
    pub(crate) const fn new(first_ms: u64, last_ms: u64) -> Self {
        Self { first_ms, last_ms, tries: 0 }
    }

    /// For calls to a server that is away.
    pub(crate) const fn of_calls() -> Self {
        Self::new(200, 10_000)
    }

    /// The next wait, in ms.
    pub(crate) fn next_ms(&mut self, entropy: &dyn Entropy) -> u64 {
        let whole = self.first_ms.saturating_mul(1 << self.tries.min(20)).min(self.last_ms);
        self.tries = self.tries.saturating_add(1);
        let half = whole / 2;
        half + chance(entropy) % (whole - half + 1)
    }

    /// It went well: the next wait is the first again.
    pub(crate) const fn reset(&mut self) {
        self.tries = 0;
    }
}

/// 64 random bits.
pub(crate) fn chance(entropy: &dyn Entropy) -> u64 {
    let [high, low] = [entropy.next_u128() >> 64, entropy.next_u128()]
        .map(|bits| u64::try_from(bits & u128::from(u64::MAX)).expect("masked to 64 bits"));
    high ^ low
}
