//! Children under real signals: nothing that a tool starts is out of reach, and nothing of it
//! outlives the worker.

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use palisade_worker::process::{ChildSpec, Exit, Supervisor, leftovers};
use rustix::process::Signal;
use support::{is_alive, is_frozen, nanny, parent, pids, script, signal, until};
use tokio::io::AsyncReadExt as _;

/// A shell, a child of it that ignores what it can, and a grandchild that leaves group and
/// session; their pids are printed in that order.
const FAMILY: &str = "trap '' TERM HUP INT
    echo $$
    sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 1000; done' &
    setsid sh -c 'echo $$; exec sleep 1000' &
    while :; do sleep 1000; done";

fn all_gone(pids: &[i32]) -> bool {
    !pids.iter().any(|pid| is_alive(*pid))
}

#[tokio::test]
async fn a_child_tells_its_code_and_sees_only_the_environment_made_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let argv = ["sh", "-c", "env; pwd; cat; echo oops >&2; exit 7"].map(Into::into).to_vec();
    let spec = ChildSpec {
        argv,
        folder: folder.path().into(),
        label: "step-1".into(),
        environment: [("ANSWER".to_owned(), "42".to_owned())].into(),
    };
    let mut child = Supervisor::new(nanny()).spawn(spec).await.expect("started");
    let mut text = String::new();
    child.take_stdout().expect("once").read_to_string(&mut text).await.expect("text");
    assert_eq!(child.wait().await, Exit::Code(7));
    assert_eq!(child.stderr_tail(), "oops\n");
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    let expected = ["ANSWER", "HOME", "LC_ALL", "PALISADE_CHILD", "PATH", "PWD", "TMPDIR"];
    names.retain(|name| !matches!(*name, "_" | "OLDPWD" | "SHLVL"));
    assert_eq!(names, expected);
    assert_eq!(text.lines().last(), folder.path().to_str());
}

#[tokio::test]
async fn a_child_that_ends_at_once_still_tells_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    for code in 0..50 {
        let mut child = script(folder.path(), &format!("exit {code}")).await;
        assert_eq!(child.wait().await, Exit::Code(code));
    }
}

#[tokio::test]
async fn a_child_that_a_signal_ended_tells_the_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), "kill -SEGV $$").await;
    assert_eq!(child.wait().await, Exit::Signal(Signal::SEGV.as_raw()));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let argv = vec!["no-such-program".into()];
    let spec = ChildSpec { argv, folder: folder.path().into(), ..ChildSpec::default() };
    let mut child = Supervisor::new(nanny()).spawn(spec).await.expect("the nanny starts");
    assert_eq!(child.wait().await, Exit::Code(127));
    assert!(child.stderr_tail().contains("cannot start no-such-program"));
}

#[tokio::test]
async fn a_kill_reaches_those_that_ignore_signals_and_those_in_sessions_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    child.control().kill();
    assert_eq!(child.wait().await, Exit::Signal(9));
    assert!(all_gone(&family), "a slot is free only once the last of them is gone");
}

#[tokio::test]
async fn a_freeze_reaches_grandchildren_and_a_thaw_wakes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    child.control().freeze();
    until("all are stopped", || family.iter().all(|pid| is_frozen(*pid)));
    child.control().thaw();
    until("all run again", || family.iter().all(|pid| is_alive(*pid) && !is_frozen(*pid)));
    child.control().kill();
    child.wait().await;
}

#[tokio::test]
async fn a_frozen_tree_dies_of_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    child.control().freeze();
    until("all are stopped", || family.iter().all(|pid| is_frozen(*pid)));
    child.control().kill();
    assert_eq!(child.wait().await, Exit::Signal(9));
    assert!(all_gone(&family));
}

#[tokio::test]
async fn a_tree_that_forks_all_the_time_is_frozen_and_killed_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let forker = "echo $$; while :; do (setsid sh -c 'sleep 0.02 & sleep 0.01' &); done";
    let mut child = script(folder.path(), forker).await;
    let shell = pids(&mut child, 1).await[0];
    let nanny = parent(shell);
    child.control().freeze();
    until("the shell is stopped", || is_frozen(shell));
    child.control().kill();
    child.wait().await;
    assert!(!is_alive(shell) && !is_alive(nanny));
    let mark = format!("PALISADE_CHILD={}", boot_id());
    let of_this_nanny = |environment: &Vec<u8>| {
        let text = String::from_utf8_lossy(environment);
        text.split('\0').any(|e| e.starts_with(&mark) && e.contains(&format!("-{nanny}-")))
    };
    assert_eq!(environments().iter().filter(|e| of_this_nanny(e)).count(), 0);
}

#[tokio::test]
async fn what_a_tool_leaves_behind_is_ended_before_its_slot_is_free() {
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = "setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.1; exit 0";
    let mut child = script(folder.path(), daemon).await;
    let daemon = pids(&mut child, 1).await;
    assert_eq!(child.wait().await, Exit::Code(0));
    assert!(all_gone(&daemon));
}

#[tokio::test]
async fn a_child_whose_handle_is_dropped_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    drop(child);
    until("all are gone", || all_gone(&family));
}

#[tokio::test]
async fn a_nanny_that_was_stopped_by_hand_still_obeys() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    signal(parent(family[0]), Signal::STOP);
    child.control().kill();
    child.wait().await;
    assert!(all_gone(&family));
}

#[tokio::test]
async fn a_nanny_that_is_killed_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = script(folder.path(), FAMILY).await;
    let family = pids(&mut child, 3).await;
    signal(parent(family[0]), Signal::KILL);
    assert_eq!(child.wait().await, Exit::NannyLost);
    assert!(all_gone(&family));
}

#[test]
fn children_outlive_the_thread_that_asked_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .expect("a runtime");
    let handle = runtime.handle().clone();
    let path = folder.path().to_owned();
    let spawned = runtime.spawn_blocking(move || {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        (handle.block_on(script(&path, "echo $$; exec sleep 1000")), thread)
    });
    let (mut child, thread) = runtime.block_on(spawned).expect("spawned");
    until("the thread that asked has retired", || {
        !Path::new(&format!("/proc/self/task/{thread}")).exists()
    });
    runtime.block_on(async {
        let sleeper = pids(&mut child, 1).await[0];
        assert!(is_alive(sleeper));
        child.control().kill();
        assert_eq!(child.wait().await, Exit::Signal(9));
    });
}

/// A worker of its own process that runs [`FAMILY`].
struct Host {
    process: std::process::Child,
    family: Vec<i32>,
}

#[expect(clippy::disallowed_methods, reason = "the worker to be killed is no child under test")]
fn host(folder: &Path) -> Host {
    let mut process = Command::new(env!("CARGO_BIN_EXE_palisade-test-nanny"))
        .args(["host", folder.to_str().expect("a path"), "sh", "-c", FAMILY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the host starts");
    let lines = BufReader::new(process.stdout.take().expect("piped")).lines().take(3);
    let family = lines.map(|line| line.expect("a line").parse().expect("a pid")).collect();
    Host { process, family }
}

#[test]
fn a_worker_that_is_killed_takes_the_whole_tree_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut host = host(folder.path());
    host.process.kill().expect("killed");
    host.process.wait().expect("reaped");
    until("all are gone", || all_gone(&host.family));
}

#[test]
fn a_worker_that_is_killed_takes_a_frozen_tree_along_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut host = host(folder.path());
    host.process.stdin.as_mut().expect("piped").write_all(b"freeze\n").expect("written");
    until("all are stopped", || host.family.iter().all(|pid| is_frozen(*pid)));
    host.process.kill().expect("killed");
    host.process.wait().expect("reaped");
    until("all are gone", || all_gone(&host.family));
}

#[test]
fn what_a_killed_worker_and_its_killed_nanny_left_is_ended_at_the_next_start() {
    let root = tempfile::tempdir().expect("a folder");
    let attempt = root.path().join("attempt-1");
    std::fs::create_dir(&attempt).expect("made");
    let mut host = host(&attempt);
    let nanny = parent(host.family[0]);
    // Stopped first, so that it cannot clear up between the two kills.
    signal(nanny, Signal::STOP);
    host.process.kill().expect("killed");
    host.process.wait().expect("reaped");
    signal(nanny, Signal::KILL);
    until("the tool died with its nanny", || !is_alive(host.family[0]));
    assert!(is_alive(host.family[2]), "the one in a session of its own is what this is about");
    let ended = leftovers::end_all(root.path()).expect("looked for");
    assert!(ended.pids.contains(&host.family[2]), "{ended:?}");
    assert!(all_gone(&host.family));
    assert_eq!(leftovers::end_all(root.path()).expect("looked for").pids, Vec::<i32>::new());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "an innocent process that must be left alone")]
fn a_recycled_pid_and_another_boot_are_left_alone() {
    let root = tempfile::tempdir().expect("a folder");
    let mut innocent = Command::new("sleep").arg("1000").spawn().expect("started");
    let pid = innocent.id().cast_signed();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is there");
    let fields = stat.rsplit_once(')').expect("a name").1;
    let started: u64 =
        fields.split_ascii_whitespace().nth(19).expect("a time").parse().expect("a number");
    let note = |name: &str, boot: &str, started: u64| {
        let folder = root.path().join(name).join("children");
        std::fs::create_dir_all(&folder).expect("made");
        let text = format!("boot {boot}\nprocess {pid} {started}\n");
        std::fs::write(folder.join("step-1.record"), text).expect("written");
    };
    note("recycled", &boot_id(), started - 1);
    note("another-boot", "11111111-2222-3333-4444-555555555555", started);
    assert_eq!(leftovers::end_all(root.path()).expect("looked for").pids, Vec::<i32>::new());
    assert!(is_alive(pid));
    note("the-same", &boot_id(), started);
    assert_eq!(leftovers::end_all(root.path()).expect("looked for").pids, [pid]);
    innocent.wait().expect("reaped");
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable");
    text.trim().to_owned()
}

fn environments() -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir("/proc").expect("readable");
    entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("environ")).ok()).collect()
}
