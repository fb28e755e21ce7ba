//! One run, drawn.

use super::{
    judge,
    world::{Setting, World},
};

/// Draws one run as text: who did what when, one line each, and what came of it.
pub fn timeline(setting: Setting) -> String {
    let mut world = World::new(Setting { traced: true, ..setting });
    world.run();
    let verdict = judge::judge(&world);
    let mut text = format!("seed {} of {}\n\n", setting.seed, setting.design);
    for line in &world.trace.lines {
        let (seconds, ms) = (line.at / 1_000, line.at % 1_000);
        text.push_str(&format!("{seconds:>6}.{ms:03} s  {:<10} {}\n", line.actor, line.text));
    }
    text.push_str(&format!("\n{} steps", verdict.steps));
    for violation in &verdict.violations {
        text.push_str(&format!("\nVIOLATION: {violation}"));
    }
    text.push('\n');
    text
}
