//! Addresses: what is understood, and what is refused by name.

use super::Location;
use crate::bucket::Scheme;

fn refused(text: &str) -> String {
    text.parse::<Location>().expect_err("it is refused").to_string()
}

#[test]
fn an_address_names_whose_bucket_which_prefix_and_settings() {
    let text = "s3://films/exports/eu?endpoint=http://127.0.0.1:9000&allow_http=true";
    let Ok(Location::Bucket { scheme, bucket, prefix, settings }) = text.parse() else {
        panic!("{text} is an address")
    };
    assert_eq!((scheme, bucket.as_str(), prefix.as_ref()), (Scheme::S3, "films", "exports/eu"));
    let pairs: Vec<_> =
        settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("endpoint", "http://127.0.0.1:9000"), ("allow_http", "true")]);
    for (text, wanted) in [("gs://b", Scheme::Gs), ("az://c/p", Scheme::Az)] {
        let Ok(Location::Bucket { scheme, .. }) = text.parse() else { panic!("{text}") };
        assert_eq!(scheme, wanted);
    }
    for text in [text, "gs://b/", "az://c/p", "file:///var/blobs", "memory:"] {
        let location: Location = text.parse().expect("an address");
        assert_eq!(location.to_string().parse(), Ok(location), "{text}");
    }
    assert_eq!("file:///var/blobs".parse(), Ok(Location::Folder("/var/blobs".into())));
    assert_eq!("memory:".parse(), Ok(Location::Memory));
}

#[test]
fn what_is_no_address_is_refused_with_those_that_are() {
    for text in ["", "films", "/var/blobs", "http://films/x", "s3://", "file://h/x"] {
        assert!(refused(text).contains("s3://BUCKET/PREFIX"), "{text:?}: {}", refused(text));
    }
    // An address is resolved as any URL is: nothing above the bucket can be named.
    let Ok(Location::Bucket { prefix, .. }) = "s3://films/a/../../b".parse() else { panic!() };
    assert_eq!(prefix.as_ref(), "b");
}

#[test]
fn secrets_are_refused_and_not_repeated() {
    for name in ["secret_access_key", "aws_session_token", "sas_token", "access_key"] {
        let message = refused(&format!("s3://films?{name}=hunter2"));
        assert!(message.contains(name) && message.contains("environment"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn nothing_of_an_address_that_is_not_understood_is_repeated() {
    for text in [
        "s3://AKIA:hunter2@films/x",
        "s3://hunter2@films",
        "s3://AKIA:hun/ter2@films",
        "s3://AKIA:hun?ter2@films",
        "s3://films?ter2@films=1",
        "s3://films?endpoint=http://AKIA:hunter2@10.0.0.7:9000",
        "hunter2://AKIA@films",
        "AKIA:hunter2@films",
    ] {
        let message = refused(text);
        let repeated = ["hun", "ter2", "AKIA"].iter().find(|word| message.contains(**word));
        assert_eq!(repeated, None, "{text}: {message}");
    }
    assert!(refused("s3://AKIA:hunter2@films").contains("environment"));
}

#[test]
fn settings_that_nobody_knows_are_refused_by_name() {
    assert!(refused("s3://films?endpiont=x").contains("endpiont"));
    assert!(refused("s3://films?conditional=maybe").contains("maybe"));
    assert!("s3://films?conditional=off".parse::<Location>().is_ok());
}

#[tokio::test]
async fn what_is_shown_of_a_bucket_holds_no_secret() {
    let location: Location = "s3://films/p?region=eu-central-1".parse().expect("an address");
    let secrets = [("AWS_ACCESS_KEY_ID", "AKIAHUNTER"), ("AWS_SECRET_ACCESS_KEY", "hunter2")];
    let environment = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let opened = location.open(&environment).await.expect("a client");
    let shown = format!("{opened:?} {}", opened.name);
    assert!(!shown.contains("hunter2") && !shown.contains("AKIAHUNTER"), "{shown}");
    assert_eq!(opened.name, "s3://films/p");
}
