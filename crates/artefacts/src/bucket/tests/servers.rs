//! Object stores that the tests start for themselves, on loopback, and end with themselves: an S3
//! server (moto) and Azurite, as `scripts/setup test` installs them.
//!
//! Where they are missing, a test says loudly that it was skipped; where `CI` is set, it fails.

use std::{
    io::{BufRead as _, BufReader, Read as _, Seek as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
};

const MOTO: &str = include_str!("servers/moto.py");
const AZURITE: &str = include_str!("servers/azurite.js");

/// Azurite's well-known account, printed in its manual.
pub(crate) const AZURITE_ACCOUNT: &str = "devstoreaccount1";
/// Its well-known key.
pub(crate) const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server that was started. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct ObjectServer {
    child: Child,
    _lines: BufReader<ChildStdout>,
    pub(crate) port: u16,
}

impl ObjectServer {
    /// An S3 server without buckets. None: it is not installed, and the test is skipped.
    pub(crate) fn moto() -> Option<Self> {
        let own = folder().join("moto/bin/python");
        let python = if own.exists() { own } else { PathBuf::from("python3") };
        Self::start("moto", &python, &["-c", MOTO])
    }

    /// Azurite with a container `tests`. None: it is not installed, and the test is skipped.
    pub(crate) fn azurite() -> Option<Self> {
        let root = folder().join("azurite").display().to_string();
        let words = ["-e", AZURITE, "--", &root, AZURITE_ACCOUNT, AZURITE_KEY];
        Self::start("azurite", Path::new("node"), &words)
    }

    /// The server's address.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    #[expect(clippy::disallowed_methods, reason = "the tests' own servers start here alone")]
    fn start(name: &str, program: &Path, words: &[&str]) -> Option<Self> {
        // A file, not a pipe: whoever does not read a pipe stops its writer when it is full.
        let mut said = tempfile::tempfile().expect("a temporary file");
        let stderr = said.try_clone().expect("a second handle");
        let started = std::process::Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => return skipped(name, &error.to_string()),
        };
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(port) = line.trim().strip_prefix("listening ") {
                let port = port.parse().expect("it prints its port");
                return Some(Self { child, _lines: lines, port });
            }
            line.clear();
        }
        let _ = child.wait();
        let mut why = String::new();
        let _ = said.rewind().and_then(|()| said.read_to_string(&mut why));
        skipped(name, &why)
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(clippy::print_stderr, reason = "a test that does not run says so")]
fn skipped(name: &str, why: &str) -> Option<ObjectServer> {
    let text = format!("{name} cannot be started, `scripts/setup test` installs it:\n{why}");
    assert!(std::env::var_os("CI").is_none(), "{text}");
    eprintln!("\n*** SKIPPED: {text}\n");
    None
}

/// Where the servers are installed.
fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os("PALISADE_TEST_SERVERS") {
        return named.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("palisade/test-servers")
}
