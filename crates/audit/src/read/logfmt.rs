//! logfmt: `key=value` pairs, values in quotes where they hold blanks.

use super::translation::Translation;
use super::{Raw, Scratch, Why};

/// Reads one line. Words that are no pair are passed over.
pub(super) fn parse<'a>(
    line: &'a str,
    translation: &Translation,
    scratch: &'a mut Scratch,
) -> Result<Raw<'a>, Why> {
    let mut raw = Raw::new();
    let mut owned = [false; super::FIELDS];
    let mut pairs = 0;
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ', '\t']).unwrap_or(rest.len());
        let name = &rest[..end];
        if !rest[end..].starts_with('=') {
            rest = rest[end..].trim_start();
            continue;
        }
        pairs += 1;
        let field = translation.field(name);
        let value = &rest[end + 1..];
        if let Some(quoted) = value.strip_prefix('"') {
            let close = closing_quote(quoted)
                .ok_or_else(|| Why::Unreadable(format!("{name}: a quote that is not closed")))?;
            let text = &quoted[..close];
            if let Some(field) = field {
                if text.contains('\\') {
                    unescape(text, &mut scratch[field as usize]);
                    owned[field as usize] = true;
                } else {
                    raw.set(field, text);
                }
            }
            rest = quoted[close + 1..].trim_start();
        } else {
            let end = value.find([' ', '\t']).unwrap_or(value.len());
            if let Some(field) = field {
                raw.set(field, &value[..end]);
            }
            rest = value[end..].trim_start();
        }
    }
    if pairs == 0 {
        return Err(Why::Unreadable("no `key=value` in it".to_owned()));
    }
    for field in super::Field::ALL {
        if owned[field as usize] {
            raw.set(field, &scratch[field as usize]);
        }
    }
    Ok(raw)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(place),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str, into: &mut String) {
    into.clear();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            into.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => into.push('\n'),
            Some('t') => into.push('\t'),
            Some(other) => into.push(other),
            None => {}
        }
    }
}
