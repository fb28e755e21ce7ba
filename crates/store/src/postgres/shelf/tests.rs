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

#[test]
fn what_goes_is_gone_whether_anybody_has_looked_for_it_or_not() {
    let mut shelf = Shelf::default();
    shelf.fetch(1, Some("fetched"));
    shelf.fetch(2, None);
    for key in [1, 2, 3] {
        shelf.remove(key);
        assert_eq!(shelf.get(&key), Some(None));
    }
    // Of what is known not to be there nothing has to be written.
    assert_eq!(shelf.removals().collect::<Vec<_>>(), [&1, &3]);
    assert_eq!(shelf.keys().count(), 0);
    shelf.put(1, "again");
    assert_eq!(shelf.changes().collect::<Vec<_>>(), [(&1, Some(&"fetched"), &"again")]);
    assert_eq!(shelf.removals().collect::<Vec<_>>(), [&3]);
    shelf.roll_back_to(0);
    assert_eq!(shelf.rows().collect::<Vec<_>>(), [(&1, &"fetched")]);
}
