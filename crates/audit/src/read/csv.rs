//! CSV: a header, then a record a line. Quotes as in RFC 4180; a record whose quotes are still open
//! at the end of a line goes on in the next.

use super::translation::{Field, Translation};
use super::{Raw, Scratch, Why};

/// What a file's columns are.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    separator: u8,
    fields: Vec<Option<Field>>,
}

impl Columns {
    /// From the header.
    pub(super) fn from_header(line: &str, translation: &Translation) -> Result<Self, Why> {
        let separator = [b',', b';', b'\t']
            .into_iter()
            .max_by_key(|separator| names(line, *separator).len())
            .unwrap_or(b',');
        let fields: Vec<Option<Field>> = names(line, separator)
            .into_iter()
            .map(|name| {
                let name = name.trim();
                let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
                translation.field(&quoted.unwrap_or(name).replace("\"\"", "\""))
            })
            .collect();
        if !fields.contains(&Some(Field::At)) {
            let name = translation.name_of(Field::At);
            return Err(Why::Unreadable(format!("the header has no column `{name}`")));
        }
        Ok(Self { separator, fields })
    }
}

/// The header's names, as they stand between separators that are not within quotes.
fn names(line: &str, separator: u8) -> Vec<&str> {
    let mut quoted = false;
    let outside = |character: char| {
        quoted ^= character == '"';
        !quoted && character == char::from(separator)
    };
    line.split(outside).collect()
}

/// Reads one record.
pub(super) fn parse<'a>(
    line: &'a str,
    columns: &Columns,
    scratch: &'a mut Scratch,
) -> Result<Raw<'a>, Why> {
    let mut raw = Raw::new();
    let mut owned = [false; super::FIELDS];
    let mut rest = Some(line);
    let mut count = 0;
    while let Some(text) = rest {
        let field = columns.fields.get(count).copied().flatten();
        let (value, after) = if let Some(quoted) = text.strip_prefix('"') {
            let close = closing_quote(quoted).ok_or(Why::Open)?;
            let after = &quoted.as_bytes()[close + 1..];
            if !after.is_empty() && after[0] != columns.separator {
                return Err(Why::Unreadable("something stands after a closing quote".to_owned()));
            }
            let next = (!after.is_empty()).then(|| &quoted[close + 2..]);
            (&quoted[..close], next)
        } else {
            match memchr::memchr(columns.separator, text.as_bytes()) {
                Some(end) => (&text[..end], Some(&text[end + 1..])),
                None => (text, None),
            }
        };
        if let Some(field) = field {
            if value.contains("\"\"") {
                scratch[field as usize] = value.replace("\"\"", "\"");
                owned[field as usize] = true;
            } else {
                raw.set(field, value.trim());
            }
        }
        // Commas at the end, after the last column, say nothing.
        if count < columns.fields.len() || !value.trim().is_empty() {
            count += 1;
        }
        rest = after;
    }
    if count < 2 || count > columns.fields.len() {
        return Err(Why::Unreadable(format!(
            "{count} values, where the header names {} columns",
            columns.fields.len()
        )));
    }
    for field in Field::ALL {
        if owned[field as usize] {
            raw.set(field, &scratch[field as usize]);
        }
    }
    Ok(raw)
}

fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut place = 0;
    while place < bytes.len() {
        if bytes[place] == b'"' {
            if bytes.get(place + 1) != Some(&b'"') {
                return Some(place);
            }
            place += 1;
        }
        place += 1;
    }
    None
}
