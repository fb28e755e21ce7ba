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
fn a_password_is_in_no_message() {
    let wrong = Address::parse("postgres://me:secret@host:port/d").unwrap_err();
    assert!(!wrong.to_string().contains("secret"), "{wrong}");
    let right = Address::parse("postgres://me:secret@host/d").unwrap();
    assert!(!format!("{right:?} {}", right.shown()).contains("secret"), "{right:?}");
}
