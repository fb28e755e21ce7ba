//! The life of one row.

use super::*;
use crate::history::What;

fn settled(row: Delivery, id: u128, tried: Tried, now: Timestamp) -> Settled {
    settle(row, lease_id(id), tried, 0, now)
}

#[test]
fn what_is_taken_is_over() {
    let row = leased(row(), 7, NOW);
    let Settled::Over(row, what) = settled(row, 7, Tried::Taken, NOW.plus_ms(100)) else {
        panic!("it is over");
    };
    assert_eq!((row.standing, row.tries), (Standing::Delivered, 1));
    assert!(matches!(what, What::NotificationDelivered(fate) if fate.tries == 1));
}

#[test]
fn a_failed_try_waits_as_standard_webhooks_recommends_and_the_last_one_is_a_dead_letter() {
    let (mut row, mut now, mut waits) = (row(), NOW, Vec::new());
    let what = loop {
        row = leased(row, 7, now);
        match settled(row, 7, failed(), now) {
            Settled::Later(later) => {
                waits.push(later.due_at.since_ms(now));
                assert!(!later.is_due(later.due_at.minus_a_ms()) && later.is_due(later.due_at));
                now = later.due_at;
                row = later;
            }
            Settled::Over(over, what) => {
                row = over;
                break what;
            }
            Settled::Ignored => panic!("it is its own lease"),
        }
    };
    assert_eq!(waits, DELAYS_MS);
    assert_eq!((row.standing, row.tries), (Standing::Dead, TRIES_MAX));
    assert_eq!(row.last.unwrap().status, Some(503));
    assert!(matches!(what, What::NotificationDead(fate) if fate.tries == 10));
}

impl Timestamp {
    fn minus_a_ms(self) -> Self {
        Self(self.0 - 1)
    }
}

#[test]
fn chance_makes_a_wait_longer_by_a_fifth_at_most() {
    for (chance, expected) in [(0, 5_000), (1_000, 6_000), (1_001, 5_000), (u64::MAX, 5_015)] {
        let row = leased(row(), 7, NOW);
        let Settled::Later(row) = settle(row, lease_id(7), failed(), chance, NOW) else {
            panic!("there are tries left");
        };
        assert_eq!(row.due_at.since_ms(NOW), expected, "chance {chance}");
    }
}

#[test]
fn a_receiver_is_left_alone_as_long_as_it_asks_but_no_longer_than_a_day() {
    for (asked, expected) in [(1_000, 5_000), (60_000, 60_000), (u64::MAX, 86_400_000)] {
        let tried = Tried::Failed {
            status: Some(429),
            error: "429".to_owned(),
            retry_after_ms: Some(asked),
            gone: false,
        };
        let Settled::Later(row) = settled(leased(row(), 7, NOW), 7, tried, NOW) else {
            panic!("there are tries left");
        };
        assert_eq!(row.due_at.since_ms(NOW), expected);
    }
}

#[test]
fn what_the_receiver_never_wants_is_dead_at_once() {
    let tried = Tried::Failed {
        status: Some(410),
        error: "410".to_owned(),
        retry_after_ms: None,
        gone: true,
    };
    let settled = settled(leased(row(), 7, NOW), 7, tried, NOW);
    assert!(matches!(settled, Settled::Over(row, _) if row.standing == Standing::Dead));
}

#[test]
fn what_failed_for_a_week_is_dead_whatever_its_tries() {
    let week = NOW.plus_ms(AGE_MS_MAX);
    let settled = settled(leased(row(), 7, week), 7, failed(), week);
    assert!(matches!(settled, Settled::Over(row, _) if row.tries == 1));
}

#[test]
fn a_lapsed_lease_is_taken_over_and_its_deliverers_word_counts_for_nothing_then() {
    let first = leased(row(), 7, NOW);
    assert!(!first.is_due(NOW.plus_ms(19_999)));
    let late = NOW.plus_ms(20_000);
    let second = leased(first, 8, late);
    assert_eq!(settled(second.clone(), 7, Tried::Taken, late), Settled::Ignored);
    assert_eq!(settled(second.clone(), 7, failed(), late), Settled::Ignored);
    assert!(matches!(settled(second, 8, Tried::Taken, late), Settled::Over(..)));
}

#[test]
fn a_lapsed_lease_that_nobody_took_over_settles_still() {
    let row = leased(row(), 7, NOW);
    let settled = settled(row, 7, Tried::Taken, NOW.plus_ms(3_600_000));
    assert!(matches!(settled, Settled::Over(row, _) if row.standing == Standing::Delivered));
}

#[test]
fn what_kills_its_deliverers_is_a_dead_letter_in_the_end() {
    let (mut row, mut now) = (row(), NOW);
    for try_number in 1..=TRIES_MAX {
        row = leased(row, u128::from(try_number), now);
        now = row.due_at;
    }
    assert!(matches!(lease(row, lease_id(99), 20_000, now), Leasing::Dead(row, _)
        if row.standing == Standing::Dead && row.tries == TRIES_MAX));
}

#[test]
fn asked_for_again_it_is_the_same_with_all_its_tries() {
    let Settled::Over(over, _) = settled(leased(row(), 7, NOW), 7, Tried::Taken, NOW) else {
        panic!("it is over");
    };
    let later = NOW.plus_ms(AGE_MS_MAX);
    let (asked, what) = again(over.clone(), later).unwrap();
    assert_eq!(
        what,
        What::NotificationAgain(Fate {
            endpoint: EndpointId(5),
            notification: number(4),
            submission: number(1),
            tries: 1,
            message: None,
        })
    );
    assert_eq!((asked.id(), &asked.notice), (over.id(), &over.notice));
    assert!(asked.is_due(later) && asked.tries == 0);
    // Its age counts anew too: one failed try is not its end.
    assert!(matches!(settled(leased(asked, 8, later), 8, failed(), later), Settled::Later(_)));
}

#[test]
fn what_is_being_tried_is_not_asked_for_again() {
    assert_eq!(again(leased(row(), 7, NOW), NOW), None);
}

#[test]
fn ids_read_as_they_are_written() {
    let id = row().id();
    assert_eq!(id.to_string(), "evt_0000000000000005_4");
    assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
    assert_eq!("wh_00000000000000ff".parse::<EndpointId>().unwrap(), EndpointId(255));
    for wrong in ["", "evt_", "evt_5_4", "evt_0000000000000005", "evt_0000000000000005_x"] {
        assert!(wrong.parse::<EventId>().is_err(), "{wrong:?}");
    }
    for wrong in ["wh_", "wh_5", "00000000000000ff", "wh_00000000000000FF"] {
        assert!(wrong.parse::<EndpointId>().is_err(), "{wrong:?}");
    }
}

#[test]
fn an_address_is_checked_before_it_is_kept() {
    for fine in
        ["https://example.com", "http://example.com:8080/hook?a=b", "https://[2001:db8::1]/"]
    {
        assert_eq!(checked_url(fine), Ok(()), "{fine}");
    }
    let long = format!("https://example.com/{}", "x".repeat(URL_BYTES_MAX));
    for wrong in [
        "",
        "ftp://example.com",
        "https://",
        "https:///path",
        "example.com",
        "https://user:secret@example.com/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://example.com\\@evil.example",
        "https://exämple.com/",
        &long,
    ] {
        assert!(checked_url(wrong).is_err(), "{wrong}");
    }
}

fn endpoint(id: u64, url: &str) -> Endpoint {
    Endpoint {
        id: EndpointId(id),
        tenant: crate::Tenant::default_tenant(),
        url: url.to_owned(),
        events: [EventType::Completed].into(),
        secret: Secret::new([1; 32]),
        previous: None,
        created_at: NOW,
    }
}

#[test]
fn an_address_of_a_tenant_is_one_webhook_only() {
    let there = [endpoint(1, "https://a.example/")];
    let refused = create(&there, endpoint(2, "https://a.example/")).unwrap_err();
    assert!(refused.to_string().contains("wh_0000000000000001"), "{refused}");
    assert!(create(&there, endpoint(2, "https://b.example/")).is_ok());
    let tenant = "other".parse().unwrap();
    assert!(create(&there, Endpoint { tenant, ..endpoint(2, "https://a.example/") }).is_ok());
    let silent = Endpoint { events: [].into(), ..endpoint(2, "https://b.example/") };
    assert!(create(&there, silent).is_err());
}

#[test]
fn after_a_rotation_both_secrets_sign_for_a_while() {
    let (old, new) = (Secret::new([1; 32]), Secret::new([2; 32]));
    let rotated = rotate(endpoint(1, "https://a.example/"), new, 1_000, NOW);
    assert_eq!(rotated.secrets(NOW.plus_ms(999)), [new, old]);
    assert_eq!(rotated.secrets(NOW.plus_ms(1_000)), [new]);
    assert_eq!(rotate(rotated, old, 0, NOW).secrets(NOW), [old]);
    assert_eq!(format!("{old:?}"), "Secret(…)");
}
