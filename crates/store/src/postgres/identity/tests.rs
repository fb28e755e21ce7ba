use super::{Cluster, Recorded, lost};

fn cluster() -> Cluster {
    Cluster {
        system_id: Some("7301".to_owned()),
        timeline: "00000001".to_owned(),
        started: "monday".to_owned(),
        place: "5/16402".to_owned(),
    }
}

fn recorded() -> Recorded {
    Recorded {
        system_id: Some("7301".to_owned()),
        timeline: Some("00000001".to_owned()),
        started: Some("sunday".to_owned()),
        place: Some("5/16402".to_owned()),
        whole: true,
        counter: 100,
        position: 10,
    }
}

#[test]
fn a_restart_of_the_same_cluster_loses_nothing() {
    assert_eq!(lost(&cluster(), &recorded(), (100, 10)), None);
}

#[test]
fn a_store_that_nobody_wrote_has_lost_nothing() {
    let fresh =
        Recorded { system_id: None, timeline: None, started: None, place: None, ..recorded() };
    assert_eq!(lost(&cluster(), &fresh, (0, 0)), None);
}

#[test]
fn another_cluster_another_timeline_and_an_older_copy_are_noticed() {
    let other = Cluster { system_id: Some("9".to_owned()), ..cluster() };
    assert!(lost(&other, &recorded(), (0, 0)).is_some());
    let failed_over = Cluster { timeline: "00000002".to_owned(), ..cluster() };
    assert!(lost(&failed_over, &recorded(), (0, 0)).is_some());
    let copied = Cluster { place: "5/19077".to_owned(), ..cluster() };
    assert!(lost(&copied, &recorded(), (0, 0)).is_some());
    assert!(lost(&cluster(), &recorded(), (101, 0)).is_some());
    assert!(lost(&cluster(), &recorded(), (0, 11)).is_some());
}

#[test]
fn a_cluster_that_will_not_say_who_it_is_is_judged_by_the_rest() {
    let silent = Cluster { system_id: None, ..cluster() };
    assert_eq!(lost(&silent, &recorded(), (0, 0)), None);
    assert!(lost(&Cluster { timeline: "2".to_owned(), ..silent }, &recorded(), (0, 0)).is_some());
}
