//! Every sabotage is noticed.

use super::{Sabotage, catch};

/// What takes longer than this test may: they need the far end of a small world.
const SLOW: [Sabotage; 0] = [];

#[test]
fn every_sabotage_is_noticed() {
    let unnoticed: Vec<_> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let mine = Sabotage::ALL.iter().skip(half).step_by(2);
                let quick = mine.filter(|sabotage| !SLOW.contains(sabotage));
                quick.filter(|sabotage| catch(**sabotage).is_none()).collect::<Vec<_>>()
            })
        });
        halves.into_iter().flat_map(|half| half.join().expect("it catches panics")).collect()
    });
    assert!(unnoticed.is_empty(), "a hole in the checkers: {unnoticed:?}");
    assert!(Sabotage::ALL.len() >= 20);
}

#[test]
fn a_sabotage_has_one_name_and_an_unknown_one_is_told_the_others() {
    for sabotage in Sabotage::ALL {
        assert_eq!(sabotage.name().parse(), Ok(*sabotage));
    }
    let refused = "be-nice".parse::<Sabotage>().expect_err("there is no such");
    assert!(refused.to_string().contains("complete-twice"), "{refused}");
}
