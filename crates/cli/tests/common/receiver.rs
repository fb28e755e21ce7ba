//! The documents' receiver of notifications, running, and the CLI's verbs about webhooks.

use std::{path::Path, process::Stdio};

use palisade_lab::drill::{Process, wait_for};
use serde_json::Value;

use super::{LIMIT, PROGRAM, Stage};

const DOCUMENT: &str = include_str!("../../../../docs/notifications.md");

/// The document's receiver, running, with records of its own.
pub struct Receiver {
    process: Process,
    pub port: u16,
}

impl Receiver {
    pub async fn start(folder: &Path, port: u16, secret: &str) -> Self {
        let begin = DOCUMENT.split("```python receiver\n").nth(1).expect("the document has it");
        let code = begin.split("```").next().expect("it ends");
        let file = folder.join("receiver.py");
        std::fs::write(&file, code).expect("a file");
        let database = folder.join("shop.db").display().to_string();
        let env = [("WEBHOOK_SECRET", secret), ("WEBHOOK_DATABASE", &database)];
        let args = [file.display().to_string(), port.to_string()];
        let log = folder.join("receiver.log");
        let process = Process::start("receiver", Path::new("python3"), &args, &env, &log);
        let receiver = Self { process: process.expect("python3 starts"), port };
        wait_for("the receiver to listen", LIMIT, async || {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            connected.map(drop).map_err(|error| error.to_string())
        })
        .await
        .expect("it listens");
        receiver
    }

    /// What came, one line each: what was done with it, its id, job and submission.
    pub fn lines(&self) -> Vec<Vec<String>> {
        let words = |line: &String| line.split(' ').map(str::to_owned).collect();
        self.process.lines().iter().map(words).collect()
    }

    pub async fn until(&self, count: usize) -> Vec<Vec<String>> {
        wait_for(&format!("{count} notifications"), LIMIT, async || {
            let lines = self.lines();
            if lines.len() >= count { Ok(lines) } else { Err(self.process.log()) }
        })
        .await
        .expect("they arrive")
    }
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("an address").port()
}

/// Runs `palisade webhooks … --json`.
#[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
pub fn webhooks(stage: &Stage, args: &[&str]) -> Value {
    let done = std::process::Command::new(PROGRAM)
        .args(["webhooks", "--server", &stage.cluster.url(), "--json"])
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .expect("the program runs");
    assert!(done.status.success(), "{args:?}");
    serde_json::from_slice(&done.stdout).unwrap_or(Value::Null)
}

pub fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

pub async fn delivered(stage: &Stage, hook: &str, count: usize) -> Vec<Value> {
    wait_for("all to be delivered", LIMIT, async || {
        let listed = webhooks(stage, &["deliveries", hook, "--state", "delivered"]);
        let rows = listed["deliveries"].as_array().expect("a list").clone();
        if rows.len() == count { Ok(rows) } else { Err(listed.to_string()) }
    })
    .await
    .expect("they are")
}
