//! At a terminal: the command may read it, and its keys reach it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
};

use crate::{common::PROGRAM, stage::Stage};

/// Runs a shell's line on a terminal of its own.
#[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
fn on_a_terminal(stage: &Stage, line: &str) -> Child {
    Command::new("script")
        .args(["-qec", line, "/dev/null"])
        .env("PALISADE_SERVER", stage.cluster.url())
        .env("P", PROGRAM)
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("script runs")
}

/// Reads up to the line that has this in it. Answers all that came.
fn read_to(out: &mut impl std::io::BufRead, what: &str) -> String {
    let mut all = String::new();
    while !all.contains(what) {
        let count = out.read_line(&mut all).expect("text");
        assert!(count > 0, "{what:?} never came: {all:?}");
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_reads_what_is_typed_and_ctrl_c_reaches_it() {
    let stage = Stage::set().await;
    // The shell around it hears the key as well, and goes on.
    let line = r#"trap : INT; $P lock door -- sh -c 'trap "echo in""terrupted; exit 4" INT
        echo ready; read -r line; echo "read: $line"
        while :; do sleep 0.05; done'; echo "code $?""#;
    let mut child = on_a_terminal(&stage, line);
    let mut keys = child.stdin.take().expect("piped");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    read_to(&mut out, "ready");
    keys.write_all(b"hello\n").expect("typed");
    read_to(&mut out, "read: hello");
    keys.write_all(b"\x03").expect("typed");
    let rest = read_to(&mut out, "code ");
    assert!(rest.contains("interrupted") && rest.contains("code 4"), "{rest:?}");
    drop(keys);
    child.wait().expect("it ends");
    let _rest = out.lines().map_while(Result::ok).count();
}
