//! Times and spans as logs write them.

use palisade_core::Timestamp;

/// Below this, a number of an epoch is of seconds; above, of milliseconds (and so on).
const SECONDS_BELOW: u64 = 100_000_000_000;
const DAY_MS: i64 = 86_400_000;

/// Remembers the last date it read: most lines of a log are of the same day.
#[derive(Debug, Clone, Default)]
pub(super) struct DayCache {
    date: [u8; 10],
    day_ms: i64,
}

impl DayCache {
    /// [`parse_time`], faster over many lines.
    pub(super) fn parse(&mut self, text: &str, year: u64) -> Option<Timestamp> {
        let bytes = text.as_bytes();
        if bytes.len() >= 19 && bytes[4] == b'-' {
            if bytes[..10] != self.date {
                self.day_ms = date_ms(bytes)?;
                self.date.copy_from_slice(&bytes[..10]);
            }
            return of_day(bytes, self.day_ms);
        }
        parse_time(text, year)
    }
}

/// Reads RFC 3339 (a blank for the `T`, a comma for the point and a missing zone, which is taken
/// for UTC, are forgiven), epoch seconds with or without a fraction, epoch milliseconds, micro- or
/// nanoseconds, or `MMDD hh:mm:ss.frac` in the given year. To the ms.
pub fn parse_time(text: &str, year: u64) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    if bytes.len() >= 19 && bytes[4] == b'-' {
        return of_day(bytes, date_ms(bytes)?);
    }
    if bytes.len() >= 13 && bytes[4] == b' ' && bytes[7] == b':' {
        let day_ms = days_ms(year, two(bytes, 0)?, two(bytes, 2)?)?;
        return of_day_from(bytes, 5, day_ms);
    }
    epoch(text)
}

/// Reads a span: milliseconds, or with a unit (`250ms`, `30s`, `5m`, `1h`).
pub fn parse_span_ms(text: &str) -> Option<u64> {
    span_ms(text, 1)
}

/// Reads a span: seconds, or with a unit.
pub(super) fn parse_span_s(text: &str) -> Option<u64> {
    span_ms(text, 1_000)
}

/// Reads a span whose unit, if it has none, is so many milliseconds.
fn span_ms(text: &str, plain_ms: u64) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "" => plain_ms,
        "ms" => 1,
        "s" | "sec" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    thousandths(number).map(|value| value.saturating_mul(scale) / 1_000)
}

/// A decimal number, times 1,000; further places are cut off.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut value = 0;
    for place in 0..3 {
        let digit = match fraction.as_bytes().get(place) {
            None => 0,
            Some(digit) if digit.is_ascii_digit() => u64::from(digit - b'0'),
            Some(_) => return None,
        };
        value = value * 10 + digit;
    }
    whole.checked_mul(1_000)?.checked_add(value)
}

fn epoch(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let number: u64 = whole.parse().ok()?;
    if number < SECONDS_BELOW {
        return thousandths(text).map(Timestamp);
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let divisor = match number {
        0..100_000_000_000_000 => 1,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1_000_000,
    };
    Some(Timestamp(number / divisor))
}

fn two(bytes: &[u8], place: usize) -> Option<u64> {
    let (tens, ones) = (bytes.get(place)?, bytes.get(place + 1)?);
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| u64::from(tens - b'0') * 10 + u64::from(ones - b'0'))
}

fn date_ms(bytes: &[u8]) -> Option<i64> {
    let year = two(bytes, 0)? * 100 + two(bytes, 2)?;
    (bytes[7] == b'-').then_some(())?;
    days_ms(year, two(bytes, 5)?, two(bytes, 8)?)
}

/// The start of a day, in ms since the epoch.
fn days_ms(year: u64, month: u64, day: u64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year / 400;
    let of_era = shifted_year % 400;
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    i64::try_from(days).ok()?.checked_sub(719_468)?.checked_mul(DAY_MS)
}

fn of_day(bytes: &[u8], day_ms: i64) -> Option<Timestamp> {
    matches!(bytes[10], b'T' | b't' | b' ' | b'_').then_some(())?;
    of_day_from(bytes, 11, day_ms)
}

/// Reads `hh:mm:ss`, a fraction and a zone.
fn of_day_from(bytes: &[u8], start: usize, day_ms: i64) -> Option<Timestamp> {
    let (hours, minutes, seconds) =
        (two(bytes, start)?, two(bytes, start + 3)?, two(bytes, start + 6)?);
    if bytes[start + 2] != b':' || bytes[start + 5] != b':' {
        return None;
    }
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let mut place = start + 8;
    let mut ms = 0;
    if matches!(bytes.get(place), Some(b'.' | b',')) {
        place += 1;
        let mut scale = 100;
        while let Some(digit) = bytes.get(place).filter(|byte| byte.is_ascii_digit()) {
            ms += u64::from(digit - b'0') * scale;
            scale /= 10;
            place += 1;
        }
    }
    let of_day = i64::try_from((hours * 60 + minutes) * 60_000 + seconds * 1_000 + ms).ok()?;
    let at = day_ms + of_day - zone_ms(bytes, place)?;
    u64::try_from(at).ok().map(Timestamp)
}

/// A zone's offset from UTC, in ms; none given is UTC.
fn zone_ms(bytes: &[u8], place: usize) -> Option<i64> {
    let place = if bytes.get(place) == Some(&b' ') { place + 1 } else { place };
    let sign = match bytes.get(place) {
        None => return Some(0),
        Some(b'Z' | b'z') => return (bytes.len() == place + 1).then_some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let hours = i64::try_from(two(bytes, place + 1)?).ok()?;
    let colon = usize::from(bytes.get(place + 3) == Some(&b':'));
    let minutes = match bytes.get(place + 3) {
        None => 0,
        Some(_) => i64::try_from(two(bytes, place + 3 + colon)?).ok()?,
    };
    Some(sign * (hours * 60 + minutes) * 60_000)
}
