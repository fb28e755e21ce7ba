use super::*;

#[test]
fn spans_read_as_a_person_would_say_them() {
    let cases = [
        (40, "40 ms"),
        (1_000, "1 s"),
        (40_100, "40.1 s"),
        (125_000, "2 min 5 s"),
        (3_780_000, "1 h 3 min"),
        (7_862_400_000, "91 d"),
    ];
    for (ms, text) in cases {
        assert_eq!(span(ms), text);
    }
}

#[test]
fn instants_are_shown_in_utc_over_leap_years() {
    assert_eq!(rfc3339(Timestamp(1_773_478_800_123)), "2026-03-14T09:00:00.123Z");
    assert_eq!(rfc3339(Timestamp(951_782_400_000)), "2000-02-29T00:00:00.000Z");
    assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
}

#[test]
fn lists_and_numbers_read_naturally() {
    assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    assert_eq!(grouped(1_234_567), "1,234,567");
    assert_eq!(count(1, "export", "exports"), "1 export");
    assert_eq!(count(0, "export", "exports"), "0 exports");
}
