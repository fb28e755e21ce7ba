//! Instants and spans, in a person's words.

/// The time of day (UTC) of an instant in ms: `09:00:12.345`.
pub(crate) fn clock_time(at_ms: u64) -> String {
    let (seconds, ms) = (at_ms / 1_000, at_ms % 1_000);
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{ms:03}", seconds % 60)
}

/// A span in ms, to the two units that tell: `1 h 05 min`, `2 min 03 s`, `1.2 s`, `80 ms`.
pub(crate) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}
