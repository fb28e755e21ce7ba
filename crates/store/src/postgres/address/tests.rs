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
fn a_password_is_in_no_message() {
    let wrong = Address::parse("postgres://me:secret@host:port/d").unwrap_err();
    assert!(!wrong.to_string().contains("secret"), "{wrong}");
    let right = Address::parse("postgres://me:secret@host/d").unwrap();
    assert!(!format!("{right:?} {}", right.shown()).contains("secret"), "{right:?}");
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
