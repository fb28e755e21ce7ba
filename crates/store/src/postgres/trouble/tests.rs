use super::is_away;
use crate::{failure::Failure, fault::Fault, postgres::Address};

async fn refused(url: &str) -> tokio_postgres::Error {
    let address = Address::parse(url).unwrap();
    address.config.connect(address.tls()).await.err().expect("nobody is there")
}

#[tokio::test]
async fn a_database_that_nobody_serves_is_away() {
    let port = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let refused = refused(&format!("postgres://me@127.0.0.1:{port}/exports")).await;
    assert!(is_away(&Fault::Engine(refused.into())));
    let folder = tempfile::tempdir().unwrap();
    let url = format!("postgres:///exports?user=me&host={}", folder.path().display());
    let refused = self::refused(&url).await;
    assert!(is_away(&Fault::Engine(refused.into())));
    let busy = Failure::Unavailable("others were in the way".to_owned());
    assert!(is_away(&Fault::Engine(busy.into())));
}

#[test]
fn a_record_that_is_damaged_is_not_away() {
    let corrupt = Fault::Corrupt { record: "meta".to_owned(), what: "it is none".to_owned() };
    assert!(!is_away(&corrupt));
}
