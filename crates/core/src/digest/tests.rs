use super::*;

/// The published test vector for 102,400 bytes of 0, 1, …, 250, 0, 1, …
const LONG: &str = "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085";
const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

fn long() -> Vec<u8> {
    (0..102_400_u32).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

#[test]
fn digests_are_the_published_ones() {
    assert_eq!(Digest::of(b"").to_string(), EMPTY);
    assert_eq!(Digest::of(&long()).to_string(), LONG);
}

#[test]
fn a_stream_has_the_digest_of_its_bytes_however_it_is_cut() {
    for size in [1, 7, 1_024, 65_537, 200_000] {
        let mut hasher = Hasher::new();
        long().chunks(size).for_each(|piece| hasher.update(piece));
        assert_eq!(hasher.finish().to_string(), LONG);
    }
    assert_eq!(Hasher::new().finish().to_string(), EMPTY);
}

#[test]
fn a_digest_is_read_as_it_is_written() {
    let digest: Digest = LONG.parse().unwrap();
    assert_eq!(digest, Digest::of(&long()));
    assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    assert_eq!(serde_json::to_string(&digest).unwrap(), format!("{LONG:?}"));
    assert_eq!(serde_json::from_str::<Digest>(&format!("{LONG:?}")).unwrap(), digest);
}

#[test]
fn a_digest_has_one_spelling() {
    let upper = LONG.to_uppercase();
    let one_upper = LONG.replacen('b', "B", 1);
    let long = format!("{LONG}0");
    let spaced = format!(" {LONG}");
    let prefixed = format!("0x{}", &LONG[2..]);
    let wide = "é".repeat(32);
    for bad in ["", "bc", &LONG[1..], &long, &upper, &one_upper, &spaced, &prefixed, &wide] {
        let refused = bad.parse::<Digest>().unwrap_err();
        assert_eq!(refused.field, "digest", "{bad}");
    }
}
