//! Parameters: what a submission may set, checked and brought into one canonical text.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Recipe, decimal};
use crate::{Invalid, ParameterName, limits};

/// One parameter of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name in submissions and in placeholders (`{param.crf}`).
    pub name: ParameterName,
    /// What it does, for people.
    #[serde(default)]
    pub description: String,
    /// What it may be. In TOML: `type = "integer"`, and the members of that type beside it.
    #[serde(flatten)]
    pub kind: ParameterKind,
    /// The value when none is given; without one, the parameter must be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a parameter may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ParameterKind {
    /// A whole number.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A number with a fraction, as text. `2.50` and `2.5` are the same value.
    Decimal {
        /// The smallest, as text.
        min: String,
        /// The largest, as text.
        max: String,
        /// Most digits after the point, 1 to 9.
        digits: u32,
    },
    /// One of a list.
    Choice {
        /// The list.
        choices: Vec<String>,
    },
    /// `true` or `false`.
    Boolean,
    /// Text of one line, not beginning with `-` (it must never become an option).
    Text {
        /// A regular expression that the whole text must match.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// Longest, in bytes.
        #[serde(default = "bytes_max_default")]
        bytes_max: usize,
    },
}

const fn bytes_max_default() -> usize {
    limits::PARAMETER_BYTES_MAX
}

impl Parameter {
    /// The canonical text of a value, or a refusal that says what is allowed.
    pub fn canonical(&self, given: &str) -> Result<String, Invalid> {
        self.kind
            .canonical(given)
            .ok_or_else(|| Invalid::new(self.field(), given, self.kind.allowed()))
    }

    fn field(&self) -> String {
        format!("parameters.{}", self.name)
    }
}

impl ParameterKind {
    fn canonical(&self, given: &str) -> Option<String> {
        match self {
            Self::Integer { min, max } => {
                let value = decimal::parse(given, 0)?;
                (*min..=*max).contains(&value).then(|| value.to_string())
            }
            Self::Decimal { min, max, digits } => {
                let value = decimal::parse(given, *digits)?;
                let range = decimal::parse(min, *digits)?..=decimal::parse(max, *digits)?;
                range.contains(&value).then(|| decimal::format(value, *digits))
            }
            Self::Choice { choices } => choices.iter().find(|choice| *choice == given).cloned(),
            Self::Boolean => matches!(given, "true" | "false").then(|| given.to_owned()),
            Self::Text { pattern, bytes_max } => {
                let plain = given.len() <= *bytes_max
                    && !given.starts_with('-')
                    && !given.chars().any(char::is_control);
                let matches = pattern.as_deref().is_none_or(|pattern| {
                    whole_match(pattern).is_some_and(|regex| regex.is_match(given))
                });
                (plain && matches).then(|| given.to_owned())
            }
        }
    }

    /// What is allowed, as a phrase.
    pub fn allowed(&self) -> String {
        match self {
            Self::Integer { min, max } => format!("must be a whole number from {min} to {max}"),
            Self::Decimal { min, max, digits } => format!(
                "must be a number from {min} to {max} with at most {digits} digits after the point"
            ),
            Self::Choice { choices } => format!("must be one of {}", choices.join(", ")),
            Self::Boolean => "must be true or false".to_owned(),
            Self::Text { pattern, bytes_max } => {
                let matching = match pattern {
                    Some(pattern) => format!(", matching {pattern}"),
                    None => String::new(),
                };
                format!(
                    "must be one line of at most {bytes_max} bytes, not beginning with '-'{matching}"
                )
            }
        }
    }

    /// Checks the declaration itself; `field` is where it stands.
    pub(super) fn validate(&self, field: &str) -> Result<(), Invalid> {
        let bad = |member: &str, value: &str, allowed: &str| {
            Err(Invalid::new(format!("{field}.{member}"), value, allowed))
        };
        match self {
            Self::Integer { min, max } if min > max => {
                bad("min", &min.to_string(), "must not be above max")
            }
            Self::Decimal { digits, .. } if !(1..=9).contains(digits) => {
                bad("digits", &digits.to_string(), "must be 1 to 9")
            }
            Self::Decimal { min, max, digits } => {
                match (decimal::parse(min, *digits), decimal::parse(max, *digits)) {
                    (None, _) => bad("min", min, "must be a number with at most that many digits"),
                    (_, None) => bad("max", max, "must be a number with at most that many digits"),
                    (Some(low), Some(high)) if low > high => {
                        bad("min", min, "must not be above max")
                    }
                    _ => Ok(()),
                }
            }
            Self::Choice { choices } if choices.is_empty() => {
                bad("choices", "[]", "must not be empty")
            }
            Self::Text { pattern: Some(pattern), .. } if whole_match(pattern).is_none() => {
                bad("pattern", pattern, "must be a regular expression")
            }
            Self::Text { bytes_max, .. } if *bytes_max > limits::PARAMETER_BYTES_MAX => {
                let allowed = format!("must be at most {}", limits::PARAMETER_BYTES_MAX);
                bad("bytes_max", &bytes_max.to_string(), &allowed)
            }
            Self::Integer { .. } | Self::Choice { .. } | Self::Boolean | Self::Text { .. } => {
                Ok(())
            }
        }
    }
}

/// A match of a part would let anything stand around it.
fn whole_match(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

impl Recipe {
    /// Checks what a submission gives, fills in defaults, and answers every parameter in its
    /// canonical text: the form that the job's key is made of. Values may be JSON numbers,
    /// booleans or text; `23` and `"23"` are the same.
    pub fn resolve_parameters(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<ParameterName, String>, Invalid> {
        if let Some(unknown) = given.keys().find(|name| self.parameter(name).is_none()) {
            let names: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
            let allowed = if names.is_empty() {
                "the recipe has no parameters".to_owned()
            } else {
                format!("the recipe's parameters are {}", names.join(", "))
            };
            return Err(Invalid::new("parameters", unknown, allowed));
        }
        let resolve = |parameter: &Parameter| {
            let text = match given.get(parameter.name.as_str()) {
                Some(value) => as_text(value).ok_or_else(|| {
                    let shown = value.to_string();
                    Invalid::new(parameter.field(), &shown, parameter.kind.allowed())
                })?,
                None => parameter.default.clone().ok_or_else(|| {
                    let allowed = format!("must be given; {}", parameter.kind.allowed());
                    Invalid::new(parameter.field(), "", allowed)
                })?,
            };
            Ok((parameter.name.clone(), parameter.canonical(&text)?))
        };
        self.parameters.iter().map(resolve).collect()
    }

    /// The parameter of that name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name.as_str() == name)
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
