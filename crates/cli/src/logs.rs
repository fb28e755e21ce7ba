//! The log, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts the log. `PALISADE_LOG` chooses what is in it (`debug`, `palisade_worker=trace`, …);
/// `usual` is what is in it otherwise.
pub(crate) fn start(usual: &str) {
    let chosen = std::env::var("PALISADE_LOG").unwrap_or_default();
    let filter = if chosen.is_empty() { EnvFilter::new(usual) } else { EnvFilter::new(chosen) };
    // A log that was started already serves as well.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
}
