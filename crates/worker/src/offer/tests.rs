use super::*;
use crate::testing::{ScriptedRunner, recipe};

fn offer(recipes: &[(&str, &str)], version: Option<&str>) -> (Offer, Vec<String>) {
    let mut book = RecipeBook::new();
    for (name, pinned) in recipes {
        book.add(recipe(name, pinned)).unwrap();
    }
    let runner = ScriptedRunner::default();
    if let Some(version) = version {
        runner.versions.lock().unwrap().insert("cp".to_owned(), version.to_owned());
    }
    Offer::new(&book, &runner)
}

fn names(claimed: &[CapabilityWire]) -> Vec<&str> {
    claimed.iter().map(|capability| capability.recipe.as_str()).collect()
}

#[test]
fn a_recipe_without_its_tool_is_not_offered_and_it_is_said_why() {
    let (offer, lacking) =
        offer(&[("free", ""), ("pinned", "5.1"), ("later", "5.10")], Some("5.1.9"));
    assert_eq!(names(&offer.within(u64::MAX, Timestamp(0)).unwrap()), ["free", "pinned"]);
    assert_eq!(lacking, ["later wants cp 5.10, there is 5.1.9"]);
    let (offer, lacking) = self::offer(&[("free", "")], None);
    assert!(offer.is_empty());
    assert_eq!(lacking, ["free wants cp, there is none"]);
}

#[test]
fn the_room_needed_at_least_is_named() {
    let (offer, _) = offer(&[("one", "")], Some("1"));
    assert!(offer.within(1_000, Timestamp(0)).is_ok());
    let none = offer.within(999, Timestamp(0)).unwrap_err();
    assert_eq!(none, NoRoom { needed_bytes: 1_000, free_bytes: 999 });
}

#[test]
fn a_recipe_whose_job_found_no_room_is_set_aside_until_there_is_or_time_has_passed() {
    let (offer, _) = offer(&[("big", ""), ("small", "")], Some("1"));
    offer.set_aside(&"big".parse().unwrap(), 9_000, Timestamp(100));
    let at = |free_bytes, ms| offer.within(free_bytes, Timestamp(ms)).unwrap();
    assert_eq!(names(&at(8_999, 200)), ["small"]);
    assert_eq!(names(&at(9_000, 200)), ["big", "small"]);
    assert_eq!(names(&at(8_999, 100 + SET_ASIDE_MS)), ["big", "small"]);
}

#[test]
fn a_recipe_is_known_in_its_present_definition_alone() {
    let (offer, _) = offer(&[("one", "")], Some("1"));
    let name: RecipeName = "one".parse().unwrap();
    assert!(offer.get(&name, recipe("one", "").definition()).is_some());
    assert!(offer.get(&name, recipe("one", "1").definition()).is_none());
}
