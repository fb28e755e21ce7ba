use super::*;

const GRACE: u64 = 1_000;

fn blob(state: BlobState) -> Blob {
    let size_bytes = (state == BlobState::Present).then_some(5);
    let generation = Number::new(7).unwrap();
    Blob { digest: Digest::of(b"bytes"), generation, state, size_bytes }
}

fn case(stage: Stage, since: u64) -> Case {
    let Blob { digest, generation, .. } = blob(BlobState::Present);
    Case { digest, generation, stage, since: Timestamp(since) }
}

#[test]
fn what_nobody_keeps_is_noted_then_condemned_after_the_grace() {
    for state in [BlobState::Present, BlobState::Uploading] {
        let blob = blob(state);
        let noted = case(Stage::Idle, 50);
        assert_eq!(look(blob, false, None, Timestamp(50), GRACE), Look::Note(noted));
        assert_eq!(look(blob, false, Some(noted), Timestamp(1_049), GRACE), Look::Leave);
        let condemned = Blob { state: BlobState::Condemned, ..blob };
        assert_eq!(
            look(blob, false, Some(noted), Timestamp(1_050), GRACE),
            Look::Condemn(condemned, case(Stage::Condemned, 1_050))
        );
    }
}

#[test]
fn what_is_kept_is_left_alone_or_acquitted_however_late_it_is() {
    let present = blob(BlobState::Present);
    assert_eq!(look(present, true, None, Timestamp(9_999), GRACE), Look::Leave);
    let noted = Some(case(Stage::Idle, 0));
    assert_eq!(look(present, true, noted, Timestamp(9_999), GRACE), Look::Acquit);
}

#[test]
fn what_is_condemned_stays_so() {
    let condemned = blob(BlobState::Condemned);
    for kept in [true, false] {
        let case = Some(case(Stage::Condemned, 0));
        assert_eq!(look(condemned, kept, case, Timestamp(9_999), GRACE), Look::Leave);
    }
}

#[test]
fn a_tombstone_stands_from_the_condemnation_until_no_late_upload_can_come() {
    assert_eq!(cleared(case(Stage::Condemned, 50)), Some(case(Stage::Cleared, 50)));
    assert_eq!(cleared(case(Stage::Cleared, 50)), None);
    assert_eq!(cleared(case(Stage::Idle, 50)), None);
    let forgotten = |stage, now| may_forget(case(stage, 50), Timestamp(now), 100);
    assert!(!forgotten(Stage::Cleared, 149) && forgotten(Stage::Cleared, 150));
    assert!(!forgotten(Stage::Condemned, 9_999), "its place has to be cleared first");
    assert!(!forgotten(Stage::Idle, 9_999));
}
