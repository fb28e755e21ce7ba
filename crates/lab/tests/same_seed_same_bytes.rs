//! Determinism, before any other result is trusted: the same seeds, run by two processes, give the
//! same bytes. Within one process a leaked pointer or a hash map's order could agree by chance.

use palisade_lab::{
    designs::Design,
    explore::{self, World},
    sim::{self, Config},
};

/// Set for the processes that this test starts.
const CHILD: &str = "PALISADE_LAB_PRINTS";

fn everything() -> String {
    let config = Config { seeds: 10, sqlite_every: 5, ..Config::default() };
    let report = sim::run(&config);
    let mut text = serde_json::to_string(&report).expect("a report is data");
    for design in Design::ALL {
        text.push_str(&sim::timeline(config.setting(design, 4)));
    }
    let worlds = vec![World::Design(Design::LeaseHeartbeat), World::Blobs];
    text.push_str(&explore::run(&explore::Config { worlds, ..explore::Config::default() }).text());
    text
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself, to be two processes")]
fn child() -> Vec<u8> {
    let program = std::env::current_exe().expect("a test has a file");
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "the_same_seeds_give_the_same_bytes_in_two_processes", "--nocapture"]);
    command.env(CHILD, "1");
    let output = command.output().expect("a test can be started again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find("BEGIN").expect("it printed");
    let end = text.find("END").expect("to the end");
    text.as_bytes()[begin..end].to_vec()
}

#[test]
fn the_same_seeds_give_the_same_bytes_in_two_processes() {
    if std::env::var_os(CHILD).is_some() {
        println!("BEGIN{}END", everything());
        return;
    }
    let (first, second) = (child(), child());
    assert!(first.len() > 10_000, "they had something to say");
    assert!(first == second, "two processes disagree");
}
