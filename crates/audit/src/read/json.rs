//! JSON lines. Flat objects without escapes, which is what logs are made of, are read in one pass
//! that borrows from the line; everything else goes through `serde_json`.

use memchr::memchr2;
use serde_json::Value;

use super::translation::{Field, Translation};
use super::{Raw, Scratch, Why};

/// Reads one object. A list of objects, one a line, is as good: its brackets and commas are passed
/// over.
pub(super) fn parse<'a>(
    line: &'a str,
    translation: &Translation,
    scratch: &'a mut Scratch,
) -> Result<Raw<'a>, Why> {
    if matches!(line.trim(), "[" | "]" | "],") {
        return Err(Why::Frame);
    }
    let line = match line.trim_end().strip_suffix("},") {
        Some(_) => line.trim_end().trim_end_matches(','),
        None => line,
    };
    if !translation.nested
        && let Some(raw) = flat(line, translation)
    {
        return Ok(raw);
    }
    let value: Value = serde_json::from_str(line)
        .map_err(|error| Why::Unreadable(format!("not a JSON object: {error}")))?;
    let Value::Object(object) = &value else {
        return Err(Why::Unreadable("not a JSON object".to_owned()));
    };
    for text in scratch.iter_mut() {
        text.clear();
    }
    for field in Field::ALL {
        let mut names = translation.names.iter().filter(|(_, known)| *known == field);
        let found = names.find_map(|(name, _)| look_up(object, name));
        match found {
            Some(Value::String(text)) => scratch[field as usize].push_str(text),
            Some(Value::Null) | None => {}
            Some(other) => scratch[field as usize] = other.to_string(),
        }
    }
    let mut raw = Raw::new();
    for field in Field::ALL {
        raw.set(field, &scratch[field as usize]);
    }
    Ok(raw)
}

/// A member by its name, or by the dotted path of objects within objects.
fn look_up<'v>(object: &'v serde_json::Map<String, Value>, name: &str) -> Option<&'v Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    let (outer, rest) = name.split_once('.')?;
    look_up(object.get(outer)?.as_object()?, rest)
}

/// Reads a flat object, borrowing; none if it is not one, or is not valid.
fn flat<'a>(line: &'a str, translation: &Translation) -> Option<Raw<'a>> {
    let bytes = line.as_bytes();
    let mut raw = Raw::new();
    let mut place = blank(bytes, 0);
    if *bytes.get(place)? != b'{' {
        return None;
    }
    place = blank(bytes, place + 1);
    if *bytes.get(place)? == b'}' {
        return (blank(bytes, place + 1) == bytes.len()).then_some(raw);
    }
    loop {
        let (name, after) = string(line, place)?;
        place = blank(bytes, after);
        if *bytes.get(place)? != b':' {
            return None;
        }
        place = blank(bytes, place + 1);
        let (value, after) = match *bytes.get(place)? {
            b'"' => string(line, place)?,
            b'{' | b'[' => return None,
            _ => bare(line, place)?,
        };
        if let Some(field) = translation.field(name)
            && raw.get(field).is_empty()
        {
            raw.set(field, value);
        }
        place = blank(bytes, after);
        match *bytes.get(place)? {
            b',' => place = blank(bytes, place + 1),
            b'}' => return (blank(bytes, place + 1) == bytes.len()).then_some(raw),
            _ => return None,
        }
    }
}

fn blank(bytes: &[u8], mut place: usize) -> usize {
    while place < bytes.len() && matches!(bytes[place], b' ' | b'\t') {
        place += 1;
    }
    place
}

/// A string without escapes that begins at `place`, and the place after it.
fn string(line: &str, place: usize) -> Option<(&str, usize)> {
    let bytes = line.as_bytes();
    if *bytes.get(place)? != b'"' {
        return None;
    }
    let start = place + 1;
    let end = start + memchr2(b'"', b'\\', &bytes[start..])?;
    (bytes[end] == b'"').then(|| (&line[start..end], end + 1))
}

/// A number, true, false or null; null is as good as absent.
fn bare(line: &str, place: usize) -> Option<(&str, usize)> {
    let bytes = line.as_bytes();
    let mut end = place;
    while end < bytes.len() && !matches!(bytes[end], b',' | b'}' | b' ' | b'\t') {
        end += 1;
    }
    let text = &line[place..end];
    let number = matches!(bytes.get(place)?, b'0'..=b'9' | b'-')
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    match text {
        "null" => Some(("", end)),
        "true" | "false" => Some((text, end)),
        _ if number => Some((text, end)),
        _ => None,
    }
}
