//! The one room where the server takes randomness from the system.

use palisade_core::clock::Entropy;

/// The system's own source.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        #[expect(clippy::disallowed_methods, reason = "this is the room for it")]
        getrandom::fill(&mut bytes).expect("Linux has randomness once it has booted");
        u128::from_ne_bytes(bytes)
    }
}
