//! An error and what caused it, as one text.
//!
//! Must not know: whose error it is.

use std::error::Error;

/// The error and its causes, in the order in which they were met. What a text already says is not
/// said again: many errors of other libraries repeat their causes in their own words.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
