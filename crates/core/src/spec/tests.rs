//! The known answers here were computed by another implementation (Python, its own BLAKE3 and a
//! JSON writer of twenty lines), from the description of the canonical form alone.

use super::*;

fn spec(recipe: &str, inputs: &[(&str, &str)], parameters: &[(&str, &str)]) -> Spec {
    let input = |bytes: &str| InputRef {
        digest: Digest::of(bytes.as_bytes()),
        size_bytes: bytes.len() as u64,
        name: None,
    };
    Spec {
        recipe: recipe.parse().unwrap(),
        definition: Digest::of(b"definition"),
        inputs: inputs.iter().map(|(name, bytes)| (name.parse().unwrap(), input(bytes))).collect(),
        parameters: parameters
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), (*value).to_owned()))
            .collect(),
    }
}

#[track_caller]
fn check(spec: &Spec, canonical: &str, key: &str) {
    assert_eq!(String::from_utf8(spec.canonical()).unwrap(), canonical);
    assert_eq!(spec.key().to_string(), key);
}

#[test]
fn the_key_of_a_plain_spec_is_the_known_one() {
    check(
        &spec("h264-720p", &[("source", "source")], &[("crf", "23")]),
        concat!(
            r#"{"definition":"49d3ecbd17b96441c4c59744a84629a1911ab223c833b02359a26e21d1dc3390","#,
            r#""inputs":{"source":"#,
            r#""7d1aa223722b2aaa89b92fc6b2ef0baa709c01eab9f8494b1de5c335f2750707"},"#,
            r#""parameters":{"crf":"23"},"recipe":"h264-720p","version":"1"}"#,
        ),
        "97cc5ca09e910fd2ed0cd05dcd3d34c12e98be81cab6a11da3400d84eec64622",
    );
}

#[test]
fn the_key_of_a_spec_with_nothing_in_it_is_the_known_one() {
    check(
        &spec("r", &[], &[]),
        concat!(
            r#"{"definition":"49d3ecbd17b96441c4c59744a84629a1911ab223c833b02359a26e21d1dc3390","#,
            r#""inputs":{},"parameters":{},"recipe":"r","version":"1"}"#,
        ),
        "51eb429a22323b4085fda8fb8c30943a13be0139cf36c995d06d1e6d012d6563",
    );
}

#[test]
fn members_are_sorted_by_bytes_and_strings_escape_what_must_be_and_nothing_else() {
    let hard = "a\"b\\c/d\u{8}\t\n\u{c}\r\0\u{1f}\u{7f}é\u{2028}🎬";
    let inputs = [("source", "source"), ("a.b", "y"), ("Logo", "logo"), ("a-b", "x")];
    let escaped = concat!(r#"a\"b\\c/d\b\t\n\f\r\u0000\u001f"#, "\u{7f}é\u{2028}🎬");
    let canonical = [
        r#"{"definition":"49d3ecbd17b96441c4c59744a84629a1911ab223c833b02359a26e21d1dc3390","#,
        r#""inputs":{"Logo":"00c5e20e274eac909aaf810cabf8156f49926ef88b755582d0096d5a2746186a","#,
        r#""a-b":"3ae7d805f6789a6402acb70ad4096a85a56bf6804eaf25c0493ac697548d30b5","#,
        r#""a.b":"08112a9e334ce73042b531c25668cf5cb12a1ee040a4326afeac065461079a06","#,
        r#""source":"7d1aa223722b2aaa89b92fc6b2ef0baa709c01eab9f8494b1de5c335f2750707"},"#,
        r#""parameters":{"Z":"","crf":"23","title":""#,
        escaped,
        r#""},"recipe":"h264-720p","version":"1"}"#,
    ];
    check(
        &spec("h264-720p", &inputs, &[("title", hard), ("crf", "23"), ("Z", "")]),
        &canonical.concat(),
        "0738d1b532049e24db6e325b63fc6bb9056321c333122841bf6bd44ea838079b",
    );
}

#[test]
fn what_a_customer_calls_a_file_is_no_part_of_the_key() {
    let one = spec("r", &[("source", "bytes")], &[]);
    let mut other = one.clone();
    other.inputs.values_mut().for_each(|input| input.name = Some("holiday.mov".to_owned()));
    assert_eq!(one.key(), other.key());
}

#[test]
fn whatever_changes_the_rendering_changes_the_key() {
    let base = spec("r", &[("source", "bytes")], &[("crf", "23")]);
    let mut definition = base.clone();
    definition.definition = Digest::of(b"another definition");
    let others = [
        spec("q", &[("source", "bytes")], &[("crf", "23")]),
        spec("r", &[("source", "other")], &[("crf", "23")]),
        spec("r", &[("second", "bytes")], &[("crf", "23")]),
        spec("r", &[("source", "bytes")], &[("crf", "24")]),
        spec("r", &[("source", "bytes")], &[("crf2", "3")]),
        spec("r", &[("source", "bytes")], &[]),
        definition,
    ];
    for (index, other) in others.iter().enumerate() {
        assert_ne!(base.key(), other.key(), "{index}");
    }
}
