//! A is granted 33 and stopped; B is granted 34; A wakes and writes, and is refused with 34 named.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use crate::stage::{Holder, Stage, run, signal, text, until_state};

/// Says who it is, waits to be let go, writes what it was told to, and says how that ended.
const WRITER: &str = r#"
echo "pair $PALISADE_TOKEN $PALISADE_LEASE"; echo "pid $$"
while ! [ -e "$DIR/go-$NAME" ]; do sleep 0.05; done
echo "of $NAME" > "$DIR/$NAME.txt"
"$P" object put report "$DIR/$NAME.txt" 2> "$DIR/$NAME.err"
echo "wrote $?"
while ! [ -e "$DIR/end-$NAME" ]; do sleep 0.05; done"#;

fn writer(stage: &Stage, name: &str, ttl: &str) -> Holder {
    let flags = ["door", "--ttl", ttl, "--wait", "10m"];
    stage.lock_argv(name, &flags, &["sh", "-c", WRITER], &[("NAME", name)])
}

async fn token(holder: &Holder) -> String {
    let pair = holder.said("pair ").await;
    pair.split(' ').next().expect("a token").to_owned()
}

async fn pid(holder: &Holder) -> u32 {
    holder.said("pid ").await.parse().expect("a pid")
}

/// Reads all the time, and notes what it saw.
struct Reader {
    seen: Arc<Mutex<Vec<Option<String>>>>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Reader {
    fn start(stage: &Stage) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (url, into, until) = (stage.cluster.url(), Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::SeqCst) {
                let got = run(&url, &["object", "get", "report"], "");
                let content = got.status.success().then(|| text(&got.stdout));
                into.lock().expect("nobody panics").push(content);
            }
        });
        Self { seen, stop, thread }
    }

    fn stop(self) -> Vec<Option<String>> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("it reads");
        Arc::try_unwrap(self.seen).expect("it has ended").into_inner().expect("nobody panics")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_stopped_past_its_lock_is_refused_and_then_killed() {
    let stage = Stage::set().await;
    let reader = Reader::start(&stage);
    let mut alice = writer(&stage, "alice", "1s");
    let (first, command) = (token(&alice).await, pid(&alice).await);
    alice.process.stop();
    signal(command, "STOP");

    let mut bob = writer(&stage, "bob", "5m");
    let second = token(&bob).await;
    assert!(second.parse::<u64>().unwrap() > first.parse::<u64>().unwrap());
    stage.let_go("go-bob");
    assert_eq!(bob.said("wrote ").await, "0");

    // The command wakes alone: the worst case, in which nothing has told it.
    stage.let_go("go-alice");
    signal(command, "CONT");
    assert_eq!(alice.said("wrote ").await, "5");
    let told = std::fs::read_to_string(stage.path("alice.err")).expect("its errors");
    assert!(told.contains(&format!("the fence stands at {second}")), "{told}");
    assert_eq!(stage.read("report").as_deref(), Some("of bob\n"));

    // Then what keeps its lock wakes: in doubt first, then lost, and the command is killed.
    alice.process.wake();
    assert_eq!(alice.code().await, Some(118), "{}", alice.process.log());
    let log = alice.process.log();
    let (doubt, lost) = (log.find("in doubt"), log.find("is lost"));
    assert!(doubt.is_some() && doubt < lost, "{log}");
    until_state(command, " ").await;
    stage.let_go("end-bob");
    assert_eq!(bob.code().await, Some(0), "{}", bob.process.log());
    let seen = reader.stop();
    let allowed = |content: &Option<String>| matches!(content.as_deref(), None | Some("of bob\n"));
    assert!(seen.iter().all(allowed), "nobody ever saw alice's: {seen:?}");
    assert!(seen.last().is_some_and(Option::is_some), "the reader saw bob's");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_all_the_same_when_the_new_holder_died_before_it_wrote() {
    let stage = Stage::set().await;
    let alice = writer(&stage, "alice", "1s");
    let command = pid(&alice).await;
    alice.process.stop();
    signal(command, "STOP");
    let bob = writer(&stage, "bob", "5m");
    let (second, bobs_command) = (token(&bob).await, pid(&bob).await);
    bob.process.kill();
    until_state(bobs_command, " ").await;

    stage.let_go("go-alice");
    signal(command, "CONT");
    assert_eq!(alice.said("wrote ").await, "5");
    let told = std::fs::read_to_string(stage.path("alice.err")).expect("its errors");
    assert!(told.contains(&format!("the fence stands at {second}")), "{told}");
    assert_eq!(stage.read("report"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_with_the_holders_number_writes_nothing() {
    let stage = Stage::set().await;
    let bob = writer(&stage, "bob", "5m");
    let second = token(&bob).await;
    stage.let_go("go-bob");
    assert_eq!(bob.said("wrote ").await, "0");
    let put = ["object", "put", "report", "-", "--token", &second];
    let without = stage.palisade(&put, "stranger's");
    assert_eq!(without.status.code(), Some(2), "{}", text(&without.stderr));
    let lease = "0".repeat(32);
    let mut forged = put.to_vec();
    forged.extend(["--lease", &lease]);
    let forged = stage.palisade(&forged, "stranger's");
    assert_eq!(forged.status.code(), Some(2), "{}", text(&forged.stderr));
    assert!(text(&forged.stderr).contains("was never granted"), "{}", text(&forged.stderr));
    assert_eq!(stage.read("report").as_deref(), Some("of bob\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_machine_was_asleep_past_its_ttl_goes_on_where_nobody_took_the_lock() {
    let stage = Stage::set().await;
    let mut alice = writer(&stage, "alice", "1s");
    let (_, command) = (token(&alice).await, pid(&alice).await);
    alice.process.stop();
    signal(command, "STOP");
    // Longer than the ttl and than what counts as a pause: too short would be no pause at all.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    signal(command, "CONT");
    alice.process.wake();
    alice.logged("is confirmed again").await;
    stage.let_go("go-alice");
    assert_eq!(alice.said("wrote ").await, "0");
    stage.let_go("end-alice");
    assert_eq!(alice.code().await, Some(0), "{}", alice.process.log());
}
