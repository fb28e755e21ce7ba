//! Decimal numbers as text. Floats are no good here: the same number must have one text, since
//! the text is part of the job's key.

/// `text` as a whole number of units of 10^-`digits`, or nothing if it is not a plain decimal
/// number (`-12`, `3.50`) with at most that many digits that matter after the point.
pub(super) fn parse(text: &str, digits: u32) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || unsigned.ends_with('.') || !plain(whole) || !plain(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = digits.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let scaled = format!("{whole}{fraction}").parse::<i64>().ok()?;
    let units = scaled.checked_mul(10_i64.checked_pow(missing)?)?;
    Some(if negative { -units } else { units })
}

/// The one text of that many units: no zero that could be left out, no `-0`.
pub(super) fn format(units: i64, digits: u32) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let scale = 10_u64.pow(digits);
    let (whole, rest) = (units.unsigned_abs() / scale, units.unsigned_abs() % scale);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{rest:0width$}", width = digits as usize);
    format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
}
