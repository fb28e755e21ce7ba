//! How times and spans read in sentences. Shared by stories, reports and timelines.

use palisade_core::Timestamp;

/// A span as a person would say it: `40 ms`, `1.5 s`, `2 min 5 s`, `1 h 3 min`, `91 d 2 h`.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms.is_multiple_of(1_000) => format!("{seconds} s"),
        1_000..60_000 => {
            let text = format!("{}.{:03}", seconds, ms % 1_000);
            format!("{} s", text.trim_end_matches('0'))
        }
        60_000..3_600_000 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600_000..86_400_000 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// The time of day, UTC, to the ms: `09:00:48.100`.
pub fn clock(at: Timestamp) -> String {
    let ms = at.0 % 86_400_000;
    format!(
        "{:02}:{:02}:{:02}.{:03}",
        ms / 3_600_000,
        ms / 60_000 % 60,
        ms / 1_000 % 60,
        ms % 1_000
    )
}

/// The date, UTC: `2026-03-14`.
pub fn date(at: Timestamp) -> String {
    let (year, month, day) = civil_from_days(at.0 / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Date and time in RFC 3339, UTC, to the ms.
pub fn rfc3339(at: Timestamp) -> String {
    format!("{}T{}Z", date(at), clock(at))
}

/// Milliseconds as seconds with three places, for JSON.
#[expect(clippy::cast_precision_loss, reason = "spans are far below 2^53 ms")]
pub fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// `one export` or `3 exports`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(number)) }
}

/// A number with its thousands set apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `a`, `a and b`, `a, b and c`.
pub fn list<S: AsRef<str>>(items: &[S]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Year, month and day of a day counted from 1970-01-01 (proleptic Gregorian).
pub(crate) const fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests;
