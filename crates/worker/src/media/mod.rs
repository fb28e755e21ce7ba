//! Media files: what an input is and promises, how far a render is, and whether an output is what
//! was asked for. Pure, but for what the callers run: this module says *what* to run and reads
//! what comes back.
//!
//! Inputs are hostile until shown otherwise. Their formats are on an allow-list (a playlist under
//! an innocent name makes ffmpeg read other files and hosts), no protocol is open but our own
//! files, and files go by names of our own.
//!
//! Must not know: processes, leases, recipes' TOML.

mod facts;
mod guard;
mod measure;
mod picture;
mod progress;
mod promise;
mod toolchain;
mod trouble;
mod verify;

pub use facts::{AudioStream, MediaFacts, VideoStream};
pub(crate) use guard::{guarded, probe_input_argv, probe_output_argv};
pub(crate) use measure::{MEASURED_BYTES_MAX, Measure, measure_argv};
pub(crate) use progress::{FfmpegProgress, percent_line};
pub(crate) use promise::{outlasting_us, promised_us};
pub use toolchain::ToolIdentity;
pub(crate) use toolchain::version_argv;
pub(crate) use trouble::{bad_input, missing_stream, tool_failure};
pub(crate) use verify::{Expected, verify};

/// Reads seconds as ffprobe writes them (`-0.007000`) into µs. Floats would do, but then equal
/// times might not be equal.
pub(crate) fn parse_us(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let whole = whole.parse::<i64>().ok().filter(|whole| *whole >= 0)?;
    let us = whole.checked_mul(1_000_000)?.checked_add(digits.parse::<i64>().ok()?)?;
    Some(if negative { -us } else { us })
}

/// µs as seconds for people: `4.02 s`.
pub(crate) fn seconds(us: i64) -> String {
    let hundredths = (us.abs() + 5_000) / 10_000;
    let sign = if us < 0 { "-" } else { "" };
    format!("{sign}{}.{:02} s", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests;
