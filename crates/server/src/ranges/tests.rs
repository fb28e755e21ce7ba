use axum::http::{HeaderMap, HeaderName, HeaderValue};
use palisade_artefacts::ByteRange;

use super::Wanted;

const TAG: &str = "\"abc\"";

fn wanted(size: u64, given: &[(&'static str, &str)]) -> Wanted {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
    }
    Wanted::of(&headers, TAG, size)
}

fn range(size: u64, range: &str) -> Wanted {
    wanted(size, &[("range", range)])
}

#[test]
fn parts_are_cut_to_the_file() {
    assert_eq!(range(100, "bytes=0-9"), Wanted::Part(0, 10));
    assert_eq!(range(100, "bytes=90-"), Wanted::Part(90, 100));
    assert_eq!(range(100, "bytes=90-500"), Wanted::Part(90, 100));
    assert_eq!(range(100, "bytes=99-99"), Wanted::Part(99, 100));
    assert_eq!(range(100, "bytes=-10"), Wanted::Part(90, 100));
    assert_eq!(range(100, "bytes=-500"), Wanted::Part(0, 100));
    assert_eq!(range(100, "BYTES = 0-9"), Wanted::Part(0, 10));
    assert_eq!(range(100, "bytes=0-99999999999999999999999"), Wanted::Part(0, 100));
}

#[test]
fn what_begins_beyond_the_end_is_nothing() {
    assert_eq!(range(100, "bytes=100-"), Wanted::Nothing);
    assert_eq!(range(100, "bytes=99999999999999999999999-"), Wanted::Nothing);
    assert_eq!(range(100, "bytes=-0"), Wanted::Nothing);
    assert_eq!(range(0, "bytes=0-"), Wanted::Nothing);
    assert_eq!(range(0, "bytes=-5"), Wanted::Nothing);
}

#[test]
fn what_is_no_single_range_is_ignored() {
    for given in ["bytes=9-0", "bytes=a-b", "bytes=-", "bytes", "lines=0-9", "bytes=0-1,5-6", ""] {
        assert_eq!(range(100, given), Wanted::Whole, "{given:?}");
    }
    assert_eq!(range(100, "bytes=+1-5"), Wanted::Whole);
    assert_eq!(range(100, "bytes=--5"), Wanted::Whole);
}

#[test]
fn a_part_is_given_only_to_who_has_the_rest_of_the_same_file() {
    assert_eq!(wanted(9, &[("range", "bytes=0-1"), ("if-range", TAG)]), Wanted::Part(0, 2));
    assert_eq!(wanted(9, &[("range", "bytes=0-1"), ("if-range", "\"old\"")]), Wanted::Whole);
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    assert_eq!(wanted(9, &[("range", "bytes=0-1"), ("if-range", date)]), Wanted::Whole);
    assert_eq!(wanted(9, &[("range", "bytes=0-1"), ("if-range", "W/\"abc\"")]), Wanted::Whole);
}

#[test]
fn who_has_it_already_gets_nothing_new() {
    for known in [TAG, "*", "\"x\", \"abc\"", "W/\"abc\""] {
        assert_eq!(wanted(9, &[("if-none-match", known)]), Wanted::NotModified, "{known}");
    }
    assert_eq!(wanted(9, &[("if-none-match", "\"x\"")]), Wanted::Whole);
}

#[test]
fn the_reader_is_asked_for_the_same_bytes() {
    assert_eq!(Wanted::Part(3, 5).range(), ByteRange::new(3, 5));
    assert_eq!(Wanted::Whole.range(), ByteRange::FULL);
}
