use super::*;

#[test]
fn a_lease_id_is_written_as_32_digits_and_read_back() {
    for (id, text) in [
        (0, "00000000000000000000000000000000"),
        (0xab, "000000000000000000000000000000ab"),
        (u128::MAX, "ffffffffffffffffffffffffffffffff"),
    ] {
        assert_eq!(LeaseId(id).to_string(), text);
        assert_eq!(text.parse(), Ok(LeaseId(id)));
        assert_eq!(serde_json::to_string(&LeaseId(id)).unwrap(), format!("{text:?}"));
    }
}

#[test]
fn what_is_not_a_lease_id_is_refused_by_name() {
    let wide = "é".repeat(16);
    for bad in [
        "",
        "ab",
        "0000000000000000000000000000000",
        "000000000000000000000000000000000",
        "000000000000000000000000000000AB",
        "+00000000000000000000000000000ab",
        "0x0000000000000000000000000000ab",
        "0000000000000000000000000000000g",
        "00000000-0000-0000-0000-00000000",
        &wide,
    ] {
        let refused = bad.parse::<LeaseId>().unwrap_err();
        assert_eq!(refused.field, "lease", "{bad:?}");
        assert!(refused.to_string().contains("32 hexadecimal digits"));
    }
    assert!(serde_json::from_str::<LeaseId>("12").is_err(), "a number loses digits in JSON");
}

#[test]
fn a_job_has_one_name() {
    let id: JobId = "j42".parse().unwrap();
    assert_eq!(id, JobId(Number::new(42).unwrap()));
    assert_eq!(id.to_string(), "j42");
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"j42\"");
    for bad in
        ["", "j", "42", "J42", "j042", "j+42", "j-1", "j0", "j 42", "j42 ", "j9007199254740992"]
    {
        assert_eq!(bad.parse::<JobId>().unwrap_err().field, "job", "{bad:?}");
    }
}

#[test]
fn request_and_session_ids_are_names_of_at_most_128_bytes() {
    let longest = "r".repeat(128);
    for good in ["r", "0b7f7a5e-5b0e-4d0a-9f0e-1c2d3e4f5a6b", "a:b_c.d-e", &longest] {
        assert_eq!(good.parse::<RequestId>().unwrap().as_str(), good);
        assert_eq!(good.parse::<SessionId>().unwrap().to_string(), good);
    }
    let too_long = "r".repeat(129);
    for bad in ["", "a b", "a/b", "a\nb", "é", "-x", ".x", &too_long] {
        assert_eq!(bad.parse::<RequestId>().unwrap_err().field, "request_id", "{bad:?}");
        assert_eq!(bad.parse::<SessionId>().unwrap_err().field, "session", "{bad:?}");
    }
}
