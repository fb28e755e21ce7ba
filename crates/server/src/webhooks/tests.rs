use std::net::IpAddr;

use palisade_core::outbox::Secret;

use super::{AllowedAddresses, literal, shown, sign};

/// The example by which the Standard Webhooks project's own libraries are tested
/// (github.com/standard-webhooks/standard-webhooks, `libraries/`).
#[test]
fn the_signature_is_the_published_one() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = sign::signature(
        &key,
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        r#"{"test": 2432232314}"#,
    );
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

/// The example of docs.svix.com/receiving/verifying-payloads/how-manual, the same scheme.
#[test]
fn the_signature_is_the_other_published_one_too() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let key = STANDARD.decode("plJ3nmyCDGBKInavdOK15jsl").unwrap();
    let body = r#"{"event_type":"ping","data":{"success":true}}"#;
    let signature = sign::signature(&key, "msg_loFOjxBNrRLzqYUf", 1_731_705_121, body);
    assert_eq!(signature, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=");
}

#[test]
fn two_secrets_sign_side_by_side_and_a_secret_is_shown_as_the_specification_says() {
    let secrets = [Secret::new([1; 32]), Secret::new([2; 32])];
    let header = sign::header(&secrets, "evt_1", 5, "{}");
    let [one, two] = secrets.map(|secret| sign::signature(secret.as_bytes(), "evt_1", 5, "{}"));
    assert_eq!(header, format!("{one} {two}"));
    assert_ne!(one, two);
    assert_eq!(shown(&Secret::new([0; 32])), format!("whsec_{}=", "A".repeat(43)));
}

#[test]
fn only_public_addresses_are_allowed_by_themselves() {
    let allowed = AllowedAddresses::default();
    let check = |address: &str, expected: bool| {
        assert_eq!(allowed.allows(address.parse::<IpAddr>().unwrap()), expected, "{address}");
    };
    for public in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "168.63.129.15",
        "2606:4700::1111",
        "2a00::1",
        "64:ff9b::1.1.1.1",
        "::ffff:1.1.1.1",
    ] {
        check(public, true);
    }
    for private in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        check(private, false);
    }
}

#[test]
fn what_the_operator_allows_is_allowed() {
    let networks = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
    let allowed = AllowedAddresses { all: false, networks };
    for (address, expected) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("fd12::1", true),
        ("127.0.0.1", false),
        ("192.168.0.1", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(allowed.allows(address.parse().unwrap()), expected, "{address}");
    }
    let all = AllowedAddresses { all: true, networks: Vec::new() };
    assert!(all.allows("127.0.0.1".parse().unwrap()));
    assert!("10.0.0.0/33".parse::<super::addresses::Network>().is_err());
}

#[test]
fn an_address_in_disguise_is_seen_through() {
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1:8080/x",
    ] {
        let url = reqwest::Url::parse(url).unwrap();
        assert_eq!(literal(&url), Some("127.0.0.1".parse().unwrap()), "{url}");
    }
    let url = reqwest::Url::parse("http://[::ffff:127.0.0.1]/").unwrap();
    assert!(!AllowedAddresses::default().allows(literal(&url).unwrap()));
    assert_eq!(literal(&reqwest::Url::parse("http://localhost/").unwrap()), None);
}
