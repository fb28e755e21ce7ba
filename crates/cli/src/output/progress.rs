//! The progress of an export: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{note, span};

/// Shows how far a job is.
pub(crate) struct ProgressLine {
    bar: Option<ProgressBar>,
    quiet: bool,
    told: String,
    told_tenths: Option<u64>,
}

/// The bar counts in thousandths.
const BAR_LENGTH: u64 = 1_000;

impl ProgressLine {
    /// A bar if standard error is a terminal; plain lines if not; nothing if `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let on_terminal = !quiet && std::io::stderr().is_terminal();
        let bar = on_terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}");
            bar.set_style(style.expect("the template is well formed"));
            bar
        });
        Self { bar, quiet, told: String::new(), told_tenths: None }
    }

    /// Tells what is being done (`rendering`, `waiting for a worker`).
    pub(crate) fn say(&mut self, text: &str) {
        if self.told == text {
            return;
        }
        text.clone_into(&mut self.told);
        match &self.bar {
            Some(bar) => {
                bar.set_message(text.to_owned());
                bar.tick();
            }
            None if !self.quiet => note(text),
            None => {}
        }
    }

    /// Tells how far the render is: the share done, where it is known, and its speed.
    ///
    /// Without a known length there is no percentage and no time left: made-up figures are worse.
    pub(crate) fn advance(&mut self, share: Option<f64>, speed: Option<f64>, left_ms: Option<u64>) {
        let mut words = vec!["rendering".to_owned()];
        words.extend(share.map(|share| format!("{:.0} %", share * 100.0)));
        words.extend(speed.map(|speed| format!("{speed:.1}x")));
        words.extend(left_ms.map(|left_ms| format!("{} left", span(left_ms))));
        let text = words.join(", ");
        if let Some(bar) = &self.bar {
            draw(bar, share, &text);
            return;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10")]
        let tenths = share.map(|share| (share.clamp(0.0, 1.0) * 10.0) as u64);
        if !self.quiet && (tenths != self.told_tenths || self.told.is_empty()) {
            self.told_tenths = tenths;
            self.told.clone_from(&text);
            note(&text);
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn draw(bar: &ProgressBar, share: Option<f64>, text: &str) {
    if let Some(share) = share {
        let template = "{elapsed_precise} [{bar:30}] {msg}";
        bar.set_style(
            ProgressStyle::with_template(template)
                .expect("the template is well formed")
                .progress_chars("=> "),
        );
        bar.set_length(BAR_LENGTH);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
        bar.set_position((share.clamp(0.0, 1.0) * 1_000.0) as u64);
    }
    bar.set_message(text.to_owned());
    bar.tick();
}
