//! The store-wide counter's numbers: fencing tokens and submission numbers.

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// A number drawn from the one store-wide counter, which only grows.
///
/// Grants (a grant's number is its *fencing token*) and submissions draw from it, inside the
/// transaction that records them. Below 2^53, so that every JSON reader keeps it exact.
///
/// Invariant: a number that was answered is never drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Number(u64);

impl Number {
    /// The counter before its first draw; also the fence of what nobody has guarded yet.
    pub const ZERO: Self = Self(0);
    /// The largest number there can be: 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// Checks the range.
    pub fn new(value: u64) -> Result<Self, Invalid> {
        if value <= Self::MAX.0 {
            return Ok(Self(value));
        }
        Err(Invalid::new("token", &value.to_string(), "must be a whole number below 2^53"))
    }

    /// The bare value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number that is higher by `by`, for a counter that an operator raises by hand.
    ///
    /// One raise takes at most half of the numbers that are left: whatever is given, and however
    /// often, the counter goes on. By nothing is refused too: it would change nothing.
    pub fn raised_by(self, by: u64) -> Result<Self, Invalid> {
        let most = (Self::MAX.0 - self.0) / 2;
        if (1..=most).contains(&by) {
            return Ok(Self(self.0 + by));
        }
        let allowed = format!(
            "must be 1 to {most}: the counter stands at {self}, and one raise takes at most half \
             of the numbers that are left"
        );
        Err(Invalid::new("by", &by.to_string(), allowed))
    }

    /// The number after this one.
    ///
    /// # Panics
    /// When the counter is used up: 2^53 draws, at a million a second, are 285 years.
    #[must_use]
    pub fn next(self) -> Self {
        assert!(self < Self::MAX, "the counter is used up");
        Self(self.0 + 1)
    }
}

impl TryFrom<u64> for Number {
    type Error = Invalid;

    fn try_from(value: u64) -> Result<Self, Invalid> {
        Self::new(value)
    }
}

impl From<Number> for u64 {
    fn from(number: Number) -> Self {
        number.0
    }
}

impl std::str::FromStr for Number {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // One spelling per number: no sign, no leading zeros.
        let spelled = !text.starts_with('+') && (text == "0" || !text.starts_with('0'));
        let value = spelled.then(|| text.parse::<u64>().ok()).flatten();
        value
            .and_then(|value| Self::new(value).ok())
            .ok_or_else(|| Invalid::new("token", text, "must be a whole number below 2^53"))
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests;
