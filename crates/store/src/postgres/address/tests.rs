use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

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

#[test]
fn several_hosts_stand_in_either_place_each_with_its_port() {
    let hosts = |url| Address::parse(url).unwrap().config.get_hosts().to_vec();
    let folders = [Host::Unix("/a".into()), Host::Unix("/b".into())];
    assert_eq!(hosts("postgres:///d?host=/a,/b"), folders);
    assert_eq!(hosts("postgres:///d?host=%2Fa%2c%2Fb&user=u"), folders);
    assert_eq!(hosts("postgres:///d?host=/a&host=/b"), folders);
    let names = [Host::Tcp("one".into()), Host::Tcp("two".into())];
    assert_eq!(hosts("postgres://u@one:5432,two:5433/d"), names);
    assert_eq!(hosts("postgres:///d?host=one,two&port=5432,5433"), names);
    let few = Address::parse("postgres:///d?host=a,b,c&port=1,2").unwrap_err();
    assert!(few.to_string().contains("port"), "{few}");
    let many = Address::parse("postgres:///d?host=a,b&hostaddr=127.0.0.1").unwrap_err();
    assert!(many.to_string().contains("hostaddr"), "{many}");
}

#[test]
fn each_of_several_hosts_gets_all_that_the_address_says() {
    let url = "postgres://me:secret@one:1,two:2/d?sslmode=require&options=-cx%3Dy\
               &target_session_attrs=read-only&channel_binding=require";
    let address = Address::parse(url).unwrap();
    let config = &address.config;
    let each = address.hosts.each();
    assert_eq!(each.len(), 2);
    for (one, (host, port)) in each.iter().zip([("one", 1), ("two", 2)]) {
        assert_eq!(
            (one.get_hosts(), one.get_ports()),
            (&[Host::Tcp(host.into())][..], &[port][..])
        );
        assert_eq!(one.get_target_session_attrs(), TargetSessionAttrs::ReadOnly);
        // The rest is the same, whatever the driver learns to know.
        let shown = |config: &tokio_postgres::Config| {
            let shown = format!("{config:?}");
            let (before, rest) = shown.split_once(" host:").unwrap();
            (before.to_owned(), rest.split_once(" connect_timeout:").unwrap().1.to_owned())
        };
        assert_eq!(shown(one), shown(config));
        assert_eq!(one.get_password(), Some(&b"secret"[..]));
    }
}

#[test]
fn what_a_session_must_be_is_one_of_three() {
    let wrong = Address::parse("postgres://u@h/d?target_session_attrs=primary").unwrap_err();
    assert!(wrong.to_string().contains("read-write"), "{wrong}");
}
