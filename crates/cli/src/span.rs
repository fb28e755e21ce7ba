//! Spans on the command line: `30s`, `500ms`, `5m`, `2h`, `90d`.

use palisade_core::Invalid;

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(u64);

impl Span {
    /// So many seconds.
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self(seconds * 1_000)
    }

    /// In ms.
    pub(crate) const fn ms(self) -> u64 {
        self.0
    }
}

impl std::str::FromStr for Span {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let bad =
            || Invalid::new("span", text, "must be a number and ms, s, m, h or d, such as 30s");
        let digits = text.len() - text.trim_start_matches(|ch: char| ch.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| bad())?;
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        number.checked_mul(unit_ms).map(Self).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn spans_have_a_number_and_a_unit() {
        let ms = |text: &str| text.parse::<Span>().map(Span::ms).ok();
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("30s"), Some(30_000));
        assert_eq!(ms("5m"), Some(300_000));
        assert_eq!(ms("2h"), Some(7_200_000));
        assert_eq!(ms("30d"), Some(2_592_000_000));
        assert_eq!(ms("90d"), Some(7_776_000_000));
        for bad in ["", "30", "s", "-1s", "1.5s", "1w", "99999999999999999999h", "1 s"] {
            assert_eq!(ms(bad), None, "{bad:?}");
        }
    }
}
