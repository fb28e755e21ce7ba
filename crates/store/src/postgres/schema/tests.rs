use super::{Applied, Found, known_version, own_migrations, own_relations, whose};

fn line(version: i64, name: &str) -> Applied {
    Applied { version, name: name.to_owned(), checksum: "17".to_owned() }
}

#[test]
fn a_history_that_is_ours_is_known_though_a_newer_server_has_gone_on() {
    let own = own_migrations();
    assert_eq!(whose(&own, &own), Found::Ours(known_version()));
    assert_eq!(whose(&own[..1], &own), Found::Ours(1));
    let newer = [own.clone(), vec![line(known_version() + 1, "of the next version")]].concat();
    assert_eq!(whose(&newer, &own), Found::Ours(known_version() + 1));
}

#[test]
fn a_history_of_another_application_is_foreign() {
    let own = own_migrations();
    assert_eq!(whose(&[line(1, "users")], &own), Found::Foreign);
    assert_eq!(whose(&[line(1, &own[0].name)], &own), Found::Foreign, "by its checksum");
    assert_eq!(whose(&[line(20_240_101, "users")], &own), Found::Foreign);
    let mixed = [own.clone(), vec![line(2, "users")]].concat();
    assert_eq!(whose(&mixed, &own), Found::Foreign);
}

#[test]
fn the_names_that_migrations_take_are_read_from_them() {
    let names = own_relations();
    for name in ["counter", "meta", "jobs", "leases", "outbox", "collection", "alive"] {
        assert!(names.iter().any(|own| own == name), "{name}: {names:?}");
    }
    assert!(names.iter().all(|name| !name.is_empty() && !name.contains('"')), "{names:?}");
}
