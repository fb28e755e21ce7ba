//! The story on a register, which sees no grants: the new holder raises first.
//!
//! The writers are processes of their own: this very test program, started again under a lock.

use std::path::{Path, PathBuf};

use palisade_artefacts::register::RegisterError;
use palisade_core::lease::Pair;

use crate::{
    register_example::{begin, key, open, publish},
    stage::{Holder, Stage, signal, until_state},
};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn say(text: &str) {
    use std::io::Write as _;
    // The test harness prints in the middle of a line.
    writeln!(std::io::stdout(), "\n{text}").expect("standard output is there");
}

async fn until_there(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A writer: raises, says so, waits to be let go, publishes, says what came of it.
#[tokio::test]
#[ignore = "a writer, for the other tests here to start"]
async fn a_writer() {
    let pair = Pair {
        token: variable("PALISADE_TOKEN").parse().expect("under a lock"),
        lease_id: variable("PALISADE_LEASE").parse().expect("under a lock"),
    };
    let (name, folder) = (variable("NAME"), PathBuf::from(variable("DIR")));
    let register = open(&folder.join("registers")).await;
    let nonce = |op: u128| u128::from(pair.token.get()) * 10 + op;
    begin(&register, pair, nonce(1)).await.expect("it is the newest holder");
    say(&format!("pid {}", std::process::id()));
    say(&format!("raised {}", pair.token));
    until_there(&folder.join(format!("go-{name}"))).await;
    match publish(&register, pair, &format!("of-{name}"), nonce(2)).await {
        Ok(()) => say("wrote"),
        Err(RegisterError::Refused { source, .. }) => say(&format!("refused {source}")),
        Err(error) => say(&format!("failed {error}")),
    }
    until_there(&folder.join(format!("end-{name}"))).await;
}

fn writer(stage: &Stage, name: &str, ttl: &str) -> Holder {
    let program = std::env::current_exe().expect("this test's program").display().to_string();
    let argv = [program.as_str(), "register::a_writer", "--exact", "--ignored", "--nocapture"];
    let flags = ["door", "--ttl", ttl, "--wait", "10m"];
    stage.lock_argv(name, &flags, &argv, &[("NAME", name)])
}

async fn pointer(stage: &Stage) -> Option<String> {
    let register = open(&stage.path("registers")).await;
    let record = register.read(&key()).await.expect("it can be read")?;
    record.written.map(|written| written.pointer.map(|pointer| pointer.as_str().to_owned()))?
}

/// Alice, stopped with her command after she has raised; and then Bob, who has raised.
async fn two(stage: &Stage) -> (Holder, u32, Holder, String) {
    let alice = writer(stage, "alice", "1s");
    alice.said("raised ").await;
    let command = alice.said("pid ").await.parse().expect("a pid");
    alice.process.stop();
    signal(command, "STOP");
    let bob = writer(stage, "bob", "5m");
    let second = bob.said("raised ").await;
    (alice, command, bob, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_writer_is_refused_by_the_register_and_names_who_has_it() {
    let stage = Stage::set().await;
    let (alice, command, mut bob, second) = two(&stage).await;
    stage.let_go("go-bob");
    bob.said("wrote").await;
    stage.let_go("go-alice");
    signal(command, "CONT");
    let refused = alice.said("refused ").await;
    assert!(refused.contains(&second), "{refused} names {second}");
    assert_eq!(pointer(&stage).await.as_deref(), Some("of-bob"));
    stage.let_go("end-bob");
    assert_eq!(bob.code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_all_the_same_when_the_new_holder_died_after_its_first_act() {
    let stage = Stage::set().await;
    let (alice, command, bob, second) = two(&stage).await;
    let bobs: u32 = bob.said("pid ").await.parse().expect("a pid");
    bob.process.kill();
    until_state(bobs, " ").await;
    stage.let_go("go-alice");
    signal(command, "CONT");
    let refused = alice.said("refused ").await;
    assert!(refused.contains(&second), "{refused} names {second}");
    assert_eq!(pointer(&stage).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_holders_number_is_refused_by_the_author_beside_it() {
    let stage = Stage::set().await;
    let bob = writer(&stage, "bob", "5m");
    let token = bob.said("raised ").await.parse().expect("a number");
    let stranger = Pair { token, lease_id: palisade_core::LeaseId(7) };
    let register = open(&stage.path("registers")).await;
    let refused = publish(&register, stranger, "of-stranger", 1).await;
    assert!(matches!(refused, Err(RegisterError::Refused { .. })), "{refused:?}");
    assert_eq!(pointer(&stage).await, None);
}
