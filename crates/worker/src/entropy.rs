//! The system's randomness: the one place in this crate that asks for it.

use palisade_core::clock::Entropy;

/// Random bits from the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the room where randomness is made")]
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("Linux has getrandom(2) since 3.17, and it never fails");
        u128::from_ne_bytes(bytes)
    }
}
