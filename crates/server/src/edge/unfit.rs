//! JSON that does not fit, said in the caller's words: the field, what it was given, and what it
//! takes. The reader of JSON speaks of this program's own types, which nobody outside knows.

use palisade_api::Problem;
use palisade_core::Invalid;
use serde_json::error::Category;

use crate::problems::{self, Rejection};

/// How many characters of an offending value are repeated.
const VALUE_SHOWN_CHARS: usize = 80;

/// JSON that is well formed and does not fit.
pub(super) fn unfit(error: &serde_path_to_error::Error<serde_json::Error>) -> Rejection {
    let inner = error.inner();
    match inner.classify() {
        Category::Syntax | Category::Eof | Category::Io => not_json(inner),
        Category::Data => {
            let what = without_place(inner);
            let said = said_of(&what);
            let field = field_of(&error.path().to_string(), said.name);
            let problem = Problem::new(422, "invalid", format!("{field}: {}", said.words()));
            let problem = problem.with("field", field).with("allowed", said.allowed);
            match said.value {
                Some(value) => problem.with("value", value).into(),
                None => problem.into(),
            }
        }
    }
}

/// What is no JSON.
pub(super) fn not_json(error: &serde_json::Error) -> Rejection {
    problems::malformed(&without_place(error), error.line(), error.column())
}

/// Every body is an object; a list of its fields' values in some order is none.
pub(super) fn must_be_object(text: &str) -> Result<(), Rejection> {
    if text.trim_start().starts_with('{') {
        return Ok(());
    }
    Err(Invalid { field: "body".into(), value: "a list".into(), allowed: OBJECT.into() }.into())
}

const OBJECT: &str = "must be an object";

/// `serde_json` ends its messages with the place, which is told apart here.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Said<'a> {
    /// A field that the message names: the path ends before it.
    name: Option<&'a str>,
    /// What was given, if it was a value.
    value: Option<String>,
    /// What is wrong with the field, where it is not its value.
    fault: Option<&'static str>,
    allowed: String,
}

impl Said<'_> {
    fn words(&self) -> String {
        match (&self.value, self.fault) {
            (Some(value), _) => format!("{value} is not allowed; {}", self.allowed),
            (None, Some(fault)) => format!("{fault}; {}", self.allowed),
            (None, None) => self.allowed.clone(),
        }
    }
}

/// Understands a message of the reader.
fn said_of(what: &str) -> Said<'_> {
    let of_field = |name, fault, allowed: &str| Said {
        name,
        value: None,
        fault: Some(fault),
        allowed: allowed.to_owned(),
    };
    let named = |start: &str| what.strip_prefix(start)?.split_once('`');
    if let Some((name, _)) = named("missing field `") {
        return of_field(Some(name), "is missing", "must be given");
    }
    if let Some((name, _)) = named("duplicate field `") {
        return of_field(Some(name), "is given twice", "must be given once");
    }
    if let Some((name, rest)) = named("unknown field `") {
        return of_field(Some(name), "is not known", &one_of(rest));
    }
    if let Some((name, rest)) = named("unknown variant `") {
        let value = Some(shown(&format!("{name:?}")));
        return Said { name: None, value, fault: None, allowed: one_of(rest) };
    }
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let got = kinds.iter().find_map(|kind| what.strip_prefix(kind)?.rsplit_once(", expected "));
    let Some((given, expected)) = got else {
        // A type of our own has said it, and does so in the caller's words.
        return Said { name: None, value: None, fault: None, allowed: what.to_owned() };
    };
    let value = if what.starts_with("invalid length") { "a list".into() } else { kind(given) };
    Said { name: None, value: Some(value), fault: None, allowed: allowed(expected) }
}

/// The reader's list of names, without its marks.
fn one_of(rest: &str) -> String {
    let (_, names) = rest.split_once("expected ").unwrap_or_default();
    let names = names.strip_prefix("one of ").unwrap_or(names).replace('`', "");
    if names.is_empty() {
        "there are no fields".to_owned()
    } else {
        format!("must be one of {names}")
    }
}

/// What was given, in JSON's words.
fn kind(given: &str) -> String {
    let value = |start: &str| given.strip_prefix(start)?.strip_suffix('`').map(str::to_owned);
    match given {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" | "Option value" => "null".to_owned(),
        _ => ["integer `", "floating point `", "boolean `"]
            .into_iter()
            .find_map(value)
            .or_else(|| given.strip_prefix("string ").map(shown))
            .unwrap_or_else(|| shown(given)),
    }
}

/// A value, cut to a readable length.
fn shown(value: &str) -> String {
    match value.char_indices().nth(VALUE_SHOWN_CHARS) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…\"", &value[..end]),
    }
}

/// What is expected, in JSON's words.
fn allowed(expected: &str) -> String {
    let whole = |least: &str, most: &str| format!("must be a whole number from {least} to {most}");
    match expected {
        "a string" | "str" | "string" => "must be a string".to_owned(),
        "a boolean" => "must be true or false".to_owned(),
        "a map" => OBJECT.to_owned(),
        "a sequence" => "must be a list".to_owned(),
        "u8" => whole("0", &u8::MAX.to_string()),
        "u16" => whole("0", &u16::MAX.to_string()),
        "u32" => whole("0", &u32::MAX.to_string()),
        "u64" | "usize" => "must be a whole number, 0 or more".to_owned(),
        "i8" => whole(&i8::MIN.to_string(), &i8::MAX.to_string()),
        "i16" => whole(&i16::MIN.to_string(), &i16::MAX.to_string()),
        "i32" => whole(&i32::MIN.to_string(), &i32::MAX.to_string()),
        "i64" | "isize" => "must be a whole number".to_owned(),
        "f32" | "f64" => "must be a number".to_owned(),
        _ if expected.starts_with("struct ") => OBJECT.to_owned(),
        _ if expected.contains("enum ") || expected.starts_with("variant ") => {
            "must be one of its names".to_owned()
        }
        _ => format!("must be {expected}"),
    }
}

/// The field: a missing or unknown one is named in the message, not in the path.
fn field_of(path: &str, named: Option<&str>) -> String {
    let path = if path == "." { "" } else { path };
    match named {
        None if path.is_empty() => "body".to_owned(),
        None => path.to_owned(),
        Some(name) if path.is_empty() || path == name => name.to_owned(),
        Some(name) if path.ends_with(&format!(".{name}")) => path.to_owned(),
        Some(name) => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests;
