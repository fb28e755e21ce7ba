use anyhow::Context as _;
use palisade_server::StartError;
use palisade_store::Failure;

use super::{UNREACHABLE, USAGE, code};

#[test]
fn what_is_away_at_a_start_is_told_apart_from_what_is_wrong() {
    let away = StartError::Store(Failure::Unavailable("no route to the host".to_owned()));
    let started: Result<(), _> = Err(away).context("starting");
    assert_eq!(code(&started.unwrap_err(), None), UNREACHABLE);
    let listen = "127.0.0.1:1".parse().expect("an address");
    let source = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    assert_eq!(code(&StartError::Listen { listen, source }.into(), None), USAGE);
}
