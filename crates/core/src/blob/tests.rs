use super::*;

fn number(value: u64) -> Number {
    Number::new(value).unwrap()
}

fn digest() -> Digest {
    Digest::of(b"bytes")
}

fn blob(generation: u64, state: BlobState) -> Blob {
    let size_bytes = (state == BlobState::Present).then_some(5);
    Blob { digest: digest(), generation: number(generation), state, size_bytes }
}

#[test]
fn a_blob_that_nobody_brought_begins_under_a_fresh_number() {
    let begun = begin(None, digest(), number(7));
    assert_eq!(begun, (blob(7, BlobState::Uploading), Begin::Upload));
}

#[test]
fn two_uploaders_share_a_generation() {
    let newest = blob(3, BlobState::Uploading);
    assert_eq!(begin(Some(newest), digest(), number(7)), (newest, Begin::Upload));
}

#[test]
fn what_is_present_is_not_brought_again() {
    let newest = blob(3, BlobState::Present);
    assert_eq!(begin(Some(newest), digest(), number(7)), (newest, Begin::Exists));
}

#[test]
fn what_was_condemned_comes_back_under_another_number() {
    let newest = blob(3, BlobState::Condemned);
    let begun = begin(Some(newest), digest(), number(7));
    assert_eq!(begun, (blob(7, BlobState::Uploading), Begin::Upload));
}

#[test]
#[should_panic(expected = "the counter went backwards")]
fn a_condemned_place_never_comes_back() {
    let _ = begin(Some(blob(3, BlobState::Condemned)), digest(), number(3));
}

#[test]
fn an_upload_that_ends_makes_its_generation_present_once() {
    let present = blob(3, BlobState::Present);
    assert_eq!(finish(Some(blob(3, BlobState::Uploading)), digest(), number(3), 5), Ok(present));
    assert_eq!(finish(Some(present), digest(), number(3), 5), Ok(present), "repeated");
    assert_eq!(finish(Some(present), digest(), number(3), 6), Ok(present), "its length stays");
}

#[test]
fn an_upload_to_a_place_that_is_not_the_newest_or_was_condemned_starts_again() {
    for newest in [
        None,
        Some(blob(3, BlobState::Condemned)),
        Some(blob(4, BlobState::Uploading)),
        Some(blob(4, BlobState::Present)),
        Some(blob(2, BlobState::Uploading)),
    ] {
        let refused = finish(newest, digest(), number(3), 5).unwrap_err();
        let expected = Refusal::StaleGeneration { digest: digest(), generation: number(3) };
        assert_eq!(refused, expected, "{newest:?}");
    }
}
