//! Children that run one ignored test of this very binary.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

/// Where the child finds its folder.
const FOLDER: &str = "PALISADE_TEST_FOLDER";

/// Starts a child that runs an ignored test, its standard output piped. With `wrapper`, a shell
/// line runs first, and then the child in its place.
#[expect(clippy::disallowed_methods, reason = "a process of its own is what is tested")]
pub(super) fn spawn(test: &str, folder: &Path, wrapper: Option<&str>) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        None => Command::new(&own),
        Some(line) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("{line}; exec \"$0\" \"$@\"")).arg(&own);
            shell
        }
    };
    command
        .args(["--exact", "--ignored", "--nocapture", test])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// In a child: its folder. None: somebody runs the ignored tests by hand.
pub(super) fn folder() -> Option<std::path::PathBuf> {
    std::env::var_os(FOLDER).map(Into::into)
}
