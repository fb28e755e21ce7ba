//! One database session, held through the database's own command-line client: statements go in
//! over a pipe, what it says comes back line by line, and a marker tells where an answer ends.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// How long a look at the answer lasts, in [`Session::poll`].
const LOOK: Duration = Duration::from_millis(2);

/// Generous: a slow machine is no fault.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// What differs between the clients.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Client {
    Psql,
    Sqlite,
    Mariadb,
}

/// What came of a statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The rows, as the client prints them.
    Done(Vec<String>),
    /// The database said no.
    Failed(Failure),
    /// The connection is gone, and the transaction with it.
    Lost(String),
}

/// An error of the database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// SQLSTATE, or `PF…` from the message; of SQLite's own errors, the message.
    pub(crate) code: String,
    /// The whole line.
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    heard: Vec<String>,
    sent: u64,
}

impl Session {
    /// Starts a client. Its output and errors share one pipe, so that they stay in order.
    pub(crate) fn start(client: Client, mut command: Command) -> Session {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone().expect("a second end"))
            .stderr(writer);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The command holds the pipe's writing ends: without them the child alone keeps it open.
        drop(command);
        let stdin = child.stdin.take().expect("piped");
        let (told, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        Session { client, child, stdin, lines, heard: Vec::new(), sent: 0 }
    }

    /// Sends statements, and does not wait for what comes of them.
    pub(crate) fn send(&mut self, sql: &str) {
        self.sent += 1;
        let marker = self.marker();
        let echo = match self.client {
            Client::Psql => format!("\\echo {marker}"),
            Client::Sqlite => format!(".print {marker}"),
            Client::Mariadb => format!("SELECT '{marker}';"),
        };
        // A client that has gone is noticed when its answer is read.
        let _ = writeln!(self.stdin, "{sql}\n{echo}").and_then(|()| self.stdin.flush());
    }

    fn marker(&self) -> String {
        format!("answer-{}-ends", self.sent)
    }

    /// The answer, if it comes within a moment.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        self.hear(LOOK)
    }

    /// The answer, which must come.
    pub(crate) fn wait(&mut self) -> Answer {
        self.hear(LIMIT).unwrap_or_else(|| panic!("no answer within {LIMIT:?}: {:?}", self.heard))
    }

    fn hear(&mut self, patience: Duration) -> Option<Answer> {
        let marker = self.marker();
        loop {
            match self.lines.recv_timeout(patience) {
                Ok(line) if line == marker => {
                    let lines = std::mem::take(&mut self.heard);
                    return Some(answer(self.client, lines));
                }
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Answer::Lost(std::mem::take(&mut self.heard).join("\n")));
                }
                Err(RecvTimeoutError::Timeout) => return None,
            }
            if let Some(line) = self.heard.last().filter(|line| is_loss(self.client, line)) {
                return Some(Answer::Lost(line.clone()));
            }
        }
    }

    pub(crate) fn run(&mut self, sql: &str) -> Answer {
        self.send(sql);
        self.wait()
    }

    /// Runs statements that must succeed; their rows.
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<String> {
        match self.run(sql) {
            Answer::Done(rows) => rows,
            other => panic!("{sql}\n{other:?}"),
        }
    }

    /// Runs statements that must be refused with this code; the message.
    pub(crate) fn refused(&mut self, code: &str, sql: &str) -> String {
        match self.run(sql) {
            Answer::Failed(failure) if failure.code == code => failure.text,
            other => panic!("{code} was to be the answer to:\n{sql}\n{other:?}"),
        }
    }

    /// Stops the client as a long pause would.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn wake(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the client is ours and not yet waited for");
    }

    /// Ends the client as a crash would.
    pub(crate) fn die(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.die();
    }
}

fn answer(client: Client, lines: Vec<String>) -> Answer {
    let failure = lines.iter().find_map(|line| {
        let code = failure_code(client, line)?;
        Some(Failure { code, text: line.clone() })
    });
    failure.map_or(Answer::Done(lines), Answer::Failed)
}

/// The stable part of an error's line, if the line is one.
fn failure_code(client: Client, line: &str) -> Option<String> {
    match client {
        // ERROR:  PF001: PF001 stale_token: …
        Client::Psql => {
            let (_, rest) = line.split_once("ERROR:")?;
            Some(rest.trim_start().split(':').next()?.to_owned())
        }
        // ERROR 50001 (PF001) at line 3: PF001 stale_token: …
        Client::Mariadb => {
            let rest = line.strip_prefix("ERROR ")?;
            Some(rest.split_once('(')?.1.split(')').next()?.to_owned())
        }
        // Runtime error near line 3: PF001 stale_token: … (19)
        Client::Sqlite => {
            let (head, rest) = line.split_once(" near line ")?;
            let said = head.ends_with("rror").then_some(rest)?.split_once(": ")?.1;
            let code = if said.starts_with("PF") { said.get(..5)? } else { said };
            Some(code.to_owned())
        }
    }
}

/// Whether a client says that its connection is gone, where it goes on all the same.
fn is_loss(client: Client, line: &str) -> bool {
    let codes = ["ERROR 2006 ", "ERROR 2013 ", "ERROR 2026 ", "ERROR 4031 "];
    matches!(client, Client::Mariadb) && codes.iter().any(|code| line.starts_with(code))
}

#[test]
fn errors_are_told_from_rows() {
    let failed = |client, line: &str| match answer(client, vec!["1".into(), line.into()]) {
        Answer::Failed(failure) => failure.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(Client::Psql, "ERROR:  PF001: PF001 stale_token: 33"), "PF001");
    assert_eq!(failed(Client::Mariadb, "ERROR 50001 (PF001) at line 3: PF001 stale"), "PF001");
    let line = "Runtime error near line 3: PF001 stale_token: the number (19)";
    assert_eq!(failed(Client::Sqlite, line), "PF001");
    let line = "Runtime error near line 3: database is locked (5)";
    assert_eq!(failed(Client::Sqlite, line), "database is locked (5)");
    for client in [Client::Psql, Client::Mariadb, Client::Sqlite] {
        let rows = vec!["an export|33".to_owned()];
        assert_eq!(answer(client, rows.clone()), Answer::Done(rows));
    }
}
