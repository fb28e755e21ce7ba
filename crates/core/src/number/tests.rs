use super::*;

const BELOW_2_53: u64 = (1 << 53) - 1;

#[test]
fn numbers_end_below_two_to_the_53() {
    assert_eq!(Number::new(BELOW_2_53), Ok(Number::MAX));
    assert_eq!(Number::new(0), Ok(Number::ZERO));
    for bad in [1 << 53, (1 << 53) + 1, 1 << 63, u64::MAX] {
        let refused = Number::new(bad).unwrap_err();
        assert_eq!(refused.field, "token");
        assert_eq!(refused.value, format!("\"{bad}\""));
        assert!(refused.allowed.contains("below 2^53"));
    }
}

#[test]
fn numbers_are_read_from_text_within_the_same_limits() {
    assert_eq!("9007199254740991".parse(), Ok(Number::MAX));
    assert_eq!("0".parse(), Ok(Number::ZERO));
    for bad in [
        "",
        "-1",
        "1.0",
        "1e3",
        " 1",
        "0x10",
        "nine",
        "9007199254740992",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
    ] {
        assert_eq!(bad.parse::<Number>().unwrap_err().field, "token", "{bad:?}");
    }
}

#[test]
fn a_number_has_one_spelling() {
    for bad in ["+1", "01", "00"] {
        assert_eq!(bad.parse::<Number>().unwrap_err().field, "token", "{bad:?}");
    }
}

#[test]
fn json_carries_numbers_exactly_or_not_at_all() {
    assert_eq!(serde_json::to_string(&Number::MAX).unwrap(), "9007199254740991");
    assert_eq!(serde_json::from_str::<Number>("9007199254740991").unwrap(), Number::MAX);
    for bad in ["9007199254740992", "9223372036854775808", "-1", "1.5", "\"1\"", "null", "1e400"] {
        assert!(serde_json::from_str::<Number>(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_next_number_is_one_more() {
    assert_eq!(Number::ZERO.next().get(), 1);
    assert_eq!(Number(BELOW_2_53 - 1).next(), Number::MAX);
}

#[test]
#[should_panic(expected = "the counter is used up")]
fn a_counter_that_is_used_up_does_not_start_again() {
    let _ = Number::MAX.next();
}

#[test]
fn a_counter_that_is_raised_as_far_as_it_goes_can_still_be_drawn_from() {
    let mut counter = Number::ZERO;
    assert!(counter.raised_by(0).is_err());
    assert!(counter.raised_by(BELOW_2_53 / 2 + 1).is_err());
    assert!(counter.raised_by(u64::MAX).is_err());
    let mut raises = 0;
    while let most @ 1.. = (Number::MAX.get() - counter.get()) / 2 {
        assert!(counter.raised_by(most + 1).unwrap_err().allowed.contains(&most.to_string()));
        counter = counter.raised_by(most).unwrap();
        assert!(counter < Number::MAX);
        raises += 1;
    }
    assert!(raises > 50, "{raises}");
}
