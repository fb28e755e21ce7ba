//! One shape for "that value is not allowed", so that every edge says it alike.

/// A value from outside that a field does not take. The caller can mend the value and ask again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value} is not allowed; {allowed}")]
pub struct Invalid {
    /// The field as the caller names it, with its path (`inputs.source.digest`).
    pub field: String,
    /// The offending value as given, quoted and cut to a length fit for a message.
    pub value: String,
    /// What is allowed, as a phrase ("must be 1 to 64 letters, digits, …").
    pub allowed: String,
}

/// How many characters of an offending value a message repeats.
const VALUE_SHOWN_CHARS: usize = 80;

impl Invalid {
    /// An error for `field`, showing `value` quoted and cut to a readable length.
    pub fn new(field: impl Into<String>, value: &str, allowed: impl Into<String>) -> Self {
        let mut shown: String = value.chars().take(VALUE_SHOWN_CHARS).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Self { field: field.into(), value: format!("{shown:?}"), allowed: allowed.into() }
    }

    /// The same error under a longer path: `digest` becomes `inputs.source.digest`.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        self.field =
            if self.field.is_empty() { path.to_owned() } else { format!("{path}.{}", self.field) };
        self
    }
}

#[cfg(test)]
mod tests;
