use super::*;

#[test]
fn a_name_keeps_its_number_until_it_is_retired() {
    let mut names = Names::new();
    let first = names.intern("export-1");
    let second = names.intern("export-2");
    assert_ne!(first, second);
    assert_eq!(names.intern("export-1"), first);
    assert_eq!(names.text(second), "export-2");
}

#[test]
fn numbers_of_retired_names_are_used_again() {
    let mut names = Names::new();
    for round in 0..10_000 {
        let id = names.intern(&format!("export-{round}"));
        assert!(id < 2, "{round} got {id}");
        assert_eq!(names.text(id), format!("export-{round}"));
        if round > 0 {
            let previous = names.intern(&format!("export-{}", round - 1));
            names.retire(previous);
        }
    }
    assert!(names.slots.len() <= 2);
}
