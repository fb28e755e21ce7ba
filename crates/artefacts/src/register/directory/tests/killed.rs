//! Real processes that swap one cell as fast as they can, and are killed with -9 in the middle.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Stdio},
};

use super::{DirectoryCells, key};
use crate::register::{CompareAndSwap, Swap};

const FOLDER: &str = "PALISADE_TEST_CELLS";
const WRITER: &str = "PALISADE_TEST_WRITER";
const WRITERS: usize = 3;
const ROUNDS: usize = 8;
/// How many acknowledged lines a round waits for before it kills.
const LINES: usize = 12;

/// Adds lines `WRITER:COUNT` to the cell, for ever, and says each that was acknowledged.
#[tokio::test]
#[ignore = "a part of the test below, which starts it as a process of its own"]
async fn writer() {
    let folder = std::env::var(FOLDER).expect("started by the test below");
    let writer = std::env::var(WRITER).expect("started by the test below");
    let cells = DirectoryCells::open(folder, 60_000).await.expect("opened");
    for count in 0.. {
        let line = format!("{writer}:{count}\n");
        loop {
            let cell = cells.read(&key("lines")).await.expect("read");
            let mut bytes = cell.as_ref().map_or(Vec::new(), |cell| cell.bytes.to_vec());
            bytes.extend_from_slice(line.as_bytes());
            let version = cell.map(|cell| cell.version);
            match cells.swap(&key("lines"), version.as_ref(), bytes.into()).await {
                Swap::Swapped => break,
                Swap::Conflict => {}
                other => panic!("{other:?}"),
            }
        }
        let mut out = std::io::stdout().lock();
        out.write_all(format!("ACK {line}").as_bytes()).and_then(|()| out.flush()).expect("told");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's own copy of itself, killed and reaped here"
)]
fn start(folder: &Path, name: &str) -> Child {
    std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "register::directory::tests::killed::writer"])
        .args(["--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(WRITER, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// The acknowledgements among what a writer has said. The last line may be cut off by its death.
fn acknowledged(line: &str) -> Option<String> {
    // The test harness may have begun the line with words of its own.
    line.split_once("ACK ").map(|(_, ack)| ack.to_owned())
}

#[tokio::test]
async fn no_acknowledged_swap_is_lost_and_none_done_twice_when_writers_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acks = BTreeSet::new();
    for round in 0..ROUNDS {
        let mut writers: Vec<_> =
            (0..WRITERS).map(|writer| start(folder.path(), &format!("{round}-{writer}"))).collect();
        let mut outs: Vec<_> = writers
            .iter_mut()
            .map(|writer| BufReader::new(writer.stdout.take().expect("piped")).lines())
            .collect();
        // The first has done some; where the others are in a swap is chance, and all are killed.
        let mut heard = 0;
        while heard < LINES {
            let line = outs[0].next().expect("the writer lives").expect("a line");
            let ack = acknowledged(&line);
            heard += usize::from(ack.is_some());
            acks.extend(ack);
        }
        for writer in &mut writers {
            writer.kill().expect("killed");
            writer.wait().expect("reaped");
        }
        for out in outs {
            // A line that has its end was said whole; the pipe keeps it after the writer's death.
            acks.extend(out.map_while(Result::ok).filter_map(|line| acknowledged(&line)));
        }
    }
    let cells = DirectoryCells::open(folder.path(), 0).await.expect("opened");
    let cell = cells.read(&key("lines")).await.expect("whole").expect("there");
    let text = String::from_utf8(cell.bytes.to_vec()).expect("text");
    let lines: Vec<_> = text.lines().collect();
    let once: BTreeSet<_> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(once.len(), lines.len(), "a line is there twice");
    assert!(acks.len() >= ROUNDS * LINES);
    let lost: Vec<_> = acks.difference(&once).collect();
    assert!(lost.is_empty(), "acknowledged, but not there: {lost:?}");
    // At most one swap of each writer was done without its acknowledgement.
    assert!(lines.len() <= acks.len() + ROUNDS * WRITERS, "{} of {}", lines.len(), acks.len());
}
