use super::Shelf;

#[test]
fn what_nobody_looked_at_is_told_apart_from_what_is_not_there() {
    let mut shelf = Shelf::default();
    assert_eq!(shelf.get(&1), None);
    shelf.fetch(1, None::<&str>);
    assert_eq!(shelf.get(&1), Some(None));
    shelf.put(1, "new");
    assert_eq!(shelf.get(&1), Some(Some(&"new")));
}

#[test]
fn a_rollback_takes_back_exactly_what_came_after_its_mark() {
    let mut shelf = Shelf::default();
    shelf.fetch(1, Some("fetched"));
    shelf.put(1, "first");
    let mark = shelf.mark();
    shelf.put(1, "second");
    shelf.put(2, "made");
    shelf.roll_back_to(mark);
    assert_eq!(shelf.changes().collect::<Vec<_>>(), [(&1, Some(&"fetched"), &"first")]);
    shelf.roll_back_to(0);
    assert_eq!(shelf.present(&1), Some(&"fetched"));
    assert_eq!(shelf.get(&2), None);
}
