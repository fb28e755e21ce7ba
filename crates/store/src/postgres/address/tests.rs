use tokio_postgres::config::{Host, SslMode};

use super::{Address, AddressError};

#[test]
fn a_sockets_folder_is_a_host() {
    let address = Address::parse("postgres:///exports?host=/run/postgresql&user=palisade").unwrap();
    assert_eq!(address.config.get_hosts(), [Host::Unix("/run/postgresql".into())]);
    assert_eq!(address.config.get_dbname(), Some("exports"));
    assert_eq!(address.config.get_user(), Some("palisade"));
}

#[test]
fn the_modes_say_whether_the_way_is_encrypted() {
    let mode = |mode| {
        let url = format!("postgres://u@h/d?sslmode={mode}");
        Address::parse(&url).unwrap().config.get_ssl_mode()
    };
    assert_eq!(mode("disable"), SslMode::Disable);
    assert_eq!(mode("prefer"), SslMode::Prefer);
    assert_eq!(mode("require"), SslMode::Require);
    let unknown = Address::parse("postgres://u@h/d?sslmode=maybe").unwrap_err();
    assert!(unknown.to_string().contains("verify-full"), "{unknown}");
}

#[test]
fn certificates_that_are_not_there_are_told() {
    let url = "postgres://u@h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem";
    let missing = Address::parse(url).unwrap_err();
    assert!(matches!(missing, AddressError::Certificates { .. }), "{missing}");
}

#[test]
fn nothing_of_an_address_that_is_not_understood_is_repeated() {
    let urls = [
        "postgres://me:hunter2@host:port/d",
        "postgres://me:hun@ter2@host/d",
        "postgres://me:x/hun@ter2@host/d",
        "postgres://me:x?hun@ter2@host/d",
        "postgres://me:hun?ter2=1@host/d",
        "postgres://me:x@host/d?hunter2",
        "postgres://me:x@host/d?hunter2=ter2",
        "postgres://me:x@host/d?sslmode=hunter2",
        "host=localhost user=me password=hunter2",
        "mysql://me:hunter2@host/d",
        "hunter2",
        "",
    ];
    for url in urls {
        let wrong = Address::parse(url).expect_err(url);
        let told = palisade_core::with_causes(&wrong);
        assert!(!told.contains("hun") && !told.contains("ter2"), "{url}: {told}");
        assert!(!told.contains("me:") && !told.contains("@host"), "{url}: {told}");
    }
    let keywords = Address::parse("host=localhost password=hunter2").unwrap_err();
    assert!(keywords.to_string().contains("not a URL"), "{keywords}");
}

#[test]
fn what_is_shown_is_for_people_and_has_no_user() {
    for (url, shown) in [
        ("postgres://me:hunter2@host/exports", "exports at host:5432"),
        ("postgres://me:h%40unter2@a:1,b:2/exports", "exports at a:1, b:2"),
        ("postgres://me:hun/ter2#@host/exports", "exports at host:5432"),
        ("postgres://me@[::1]:7/exports", "exports at [::1]:7"),
        ("postgres:///exports?host=/run/postgresql", "exports at the socket in /run/postgresql"),
        ("postgres://host/d?user=me@farm&password=hunter2", "d at host:5432"),
    ] {
        let address = Address::parse(url).expect(url);
        assert_eq!(address.shown(), shown);
        assert!(!format!("{address:?}").contains("ter2"), "{address:?}");
    }
}
