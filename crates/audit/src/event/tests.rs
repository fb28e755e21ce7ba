use super::*;

#[test]
fn every_kind_is_found_again_by_its_word() {
    for kind in EventKind::ALL {
        assert_eq!(EventKind::from_word(kind.word()), Some(kind));
    }
    assert_eq!(EventKind::from_word("heartbeat"), None);
}

#[test]
fn a_path_that_contains_a_telling_word_is_not_a_refusal() {
    assert!(says_refused("rejected: stale_token"));
    assert!(says_refused("412"));
    assert!(says_refused("HTTP error: Precondition Failed"));
    assert!(!says_refused("exports/refused-412.mp4"));
    assert!(!says_refused("exports/1842.mp4"));
}

#[test]
fn a_timeout_is_not_a_lost_lease() {
    assert!(says_lost("lease lost to w2"));
    assert!(says_lost("Missing lock for job 7"));
    assert!(!says_lost("connection timed out"));
}

#[test]
fn a_release_that_did_nothing_is_told_from_one_that_freed_anothers_lock() {
    assert!(says_harmless("not locked by current thread"));
    assert!(says_harmless("token mismatch, no-op"));
    assert!(!says_harmless("done"));
}
