use super::*;

#[test]
fn a_refusal_names_the_field_the_value_and_what_is_allowed() {
    let invalid = Invalid::new("crf", "99", "must be 0 to 51");
    assert_eq!(invalid.to_string(), "crf: \"99\" is not allowed; must be 0 to 51");
}

#[test]
fn a_long_or_hostile_value_is_cut_and_quoted() {
    let invalid = Invalid::new("x", &"é".repeat(100_000), "must be short");
    assert_eq!(invalid.value.chars().count(), 80 + 1 + 2);
    assert!(invalid.value.ends_with("…\""));
    assert_eq!(Invalid::new("x", "\u{1b}[31m\n", "").value, "\"\\u{1b}[31m\\n\"");
}

#[test]
fn a_path_is_put_before_the_field() {
    let invalid = Invalid::new("digest", "x", "").under("source").under("inputs");
    assert_eq!(invalid.field, "inputs.source.digest");
    assert_eq!(Invalid::new("", "x", "").under("inputs").field, "inputs");
}
