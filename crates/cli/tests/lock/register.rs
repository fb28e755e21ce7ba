//! The story on a register, in a folder and in a bucket. It sees no grants: the new holder raises
//! first.
//!
//! The writers are processes of their own: this very test program, started again under a lock.

use std::path::{Path, PathBuf};

use palisade_artefacts::register::{Register, RegisterError};
use palisade_core::lease::Pair;

use crate::{
    register_example::{begin, key, open, open_bucket, publish},
    servers::ObjectServer,
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
    let register = match variable("BUCKET").as_str() {
        "" => open(&folder.join("registers")).await,
        address => open_bucket(address, u128::from(pair.token.get())).await,
    };
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

/// Where the register is.
struct Scene {
    stage: Stage,
    /// The bucket's server; none: it is in a folder.
    bucket: Option<ObjectServer>,
}

/// What a bucket wants to see.
const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", "tests"), ("AWS_SECRET_ACCESS_KEY", "of-tests")];

impl Scene {
    async fn in_a_folder() -> Self {
        Self { stage: Stage::set().await, bucket: None }
    }

    /// None: there is no server for buckets, and the test is skipped.
    async fn in_a_bucket() -> Option<Self> {
        let server = ObjectServer::moto()?;
        let stage = Stage::set().await;
        let made = reqwest::Client::new().put(format!("{}/films", server.url())).send().await;
        assert!(made.expect("an answer").status().is_success(), "the bucket is made");
        Some(Self { stage, bucket: Some(server) })
    }

    fn address(&self) -> Option<String> {
        let server = self.bucket.as_ref()?;
        Some(format!("s3://films/reports?endpoint={}&allow_http=true", server.url()))
    }

    fn writer(&self, name: &str, ttl: &str) -> Holder {
        let program = std::env::current_exe().expect("this test's program").display().to_string();
        let argv = [program.as_str(), "register::a_writer", "--exact", "--ignored", "--nocapture"];
        let flags = ["door", "--ttl", ttl, "--wait", "10m"];
        let bucket = self.address().unwrap_or_default();
        let mut environment = vec![("NAME", name), ("BUCKET", bucket.as_str())];
        environment.extend(KEYS);
        self.stage.lock_argv(name, &flags, &argv, &environment)
    }

    /// The register, as this process sees it.
    async fn register(&self) -> Register {
        let Some(address) = self.address() else {
            return open(&self.stage.path("registers")).await;
        };
        let keys = KEYS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let location: palisade_artefacts::Location = address.parse().expect("an address");
        let opened = location.open(&keys).await.expect("a client");
        let cells = opened.bucket.expect("a bucket").cells();
        Register::new(std::sync::Arc::new(cells), palisade_artefacts::register::Pace::default())
    }

    async fn pointer(&self) -> Option<String> {
        let record = self.register().await.read(&key()).await.expect("it can be read")?;
        record.written.map(|written| written.pointer.map(|pointer| pointer.as_str().to_owned()))?
    }

    /// Alice, stopped with her command after she has raised; and then Bob, who has raised.
    async fn two(&self) -> (Holder, u32, Holder, String) {
        let alice = self.writer("alice", "1s");
        alice.said("raised ").await;
        let command = alice.said("pid ").await.parse().expect("a pid");
        alice.process.stop();
        signal(command, "STOP");
        let bob = self.writer("bob", "5m");
        let second = bob.said("raised ").await;
        (alice, command, bob, second)
    }

    /// Alice's command wakes alone, and publishes. Answers what she is told.
    async fn wake(&self, alice: &Holder, command: u32) -> String {
        self.stage.let_go("go-alice");
        signal(command, "CONT");
        alice.said("refused ").await
    }

    async fn a_stopped_writer_is_refused(&self) {
        let (alice, command, mut bob, second) = self.two().await;
        self.stage.let_go("go-bob");
        bob.said("wrote").await;
        let refused = self.wake(&alice, command).await;
        assert!(refused.contains(&second), "{refused} names {second}");
        assert_eq!(self.pointer().await.as_deref(), Some("of-bob"));
        self.stage.let_go("end-bob");
        assert_eq!(bob.code().await, Some(0));
    }

    async fn it_is_refused_all_the_same_when_the_new_holder_died(&self) {
        let (alice, command, bob, second) = self.two().await;
        let bobs: u32 = bob.said("pid ").await.parse().expect("a pid");
        bob.process.kill();
        until_state(bobs, " ").await;
        let refused = self.wake(&alice, command).await;
        assert!(refused.contains(&second), "{refused} names {second}");
        assert_eq!(self.pointer().await, None);
    }

    async fn a_stranger_is_refused(&self) {
        let bob = self.writer("bob", "5m");
        let token = bob.said("raised ").await.parse().expect("a number");
        let stranger = Pair { token, lease_id: palisade_core::LeaseId(7) };
        let refused = publish(&self.register().await, stranger, "of-stranger", 1).await;
        assert!(matches!(refused, Err(RegisterError::Refused { .. })), "{refused:?}");
        assert_eq!(self.pointer().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_writer_is_refused_by_the_register_and_told_who_has_it() {
    Scene::in_a_folder().await.a_stopped_writer_is_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_all_the_same_when_the_new_holder_died_after_its_first_act() {
    Scene::in_a_folder().await.it_is_refused_all_the_same_when_the_new_holder_died().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_holders_number_is_refused_by_the_author_beside_it() {
    Scene::in_a_folder().await.a_stranger_is_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_register_in_a_bucket_tells_the_same_story() {
    let Some(scene) = Scene::in_a_bucket().await else { return };
    scene.a_stopped_writer_is_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_register_in_a_bucket_refuses_after_a_mere_raise_too() {
    let Some(scene) = Scene::in_a_bucket().await else { return };
    scene.it_is_refused_all_the_same_when_the_new_holder_died().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_register_in_a_bucket_knows_its_author_from_a_stranger() {
    let Some(scene) = Scene::in_a_bucket().await else { return };
    scene.a_stranger_is_refused().await;
}
