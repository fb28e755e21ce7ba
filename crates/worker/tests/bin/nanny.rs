//! For tests alone: the nanny, and a worker that can be killed.
//!
//! `nanny …` is the nanny. `host FOLDER PROGRAM …` starts the program in that folder, passes its
//! standard output on, and waits; `freeze` as a line on standard input freezes it.

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode};

use palisade_worker::process::{ChildSpec, NannyCommand, Supervisor, nanny_main};
use tokio::io::AsyncReadExt as _;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(|word| word.to_str()) {
        Some("nanny") => nanny_main(args),
        Some("host") => host(args),
        _ => ExitCode::FAILURE,
    }
}

fn host(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let folder = PathBuf::from(args.next().expect("a folder"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let supervisor = Supervisor::new(NannyCommand::this_program(&["nanny"]));
        let argv = args.collect();
        let spec = ChildSpec { argv, folder, label: "step-1".into(), ..ChildSpec::default() };
        let mut child = supervisor.spawn(spec).await.expect("it can be started");
        let control = child.control();
        let mut stdout = child.take_stdout().expect("not taken yet");
        tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
                std::io::stdout().write_all(&buffer[..count]).expect("passed on");
                std::io::stdout().flush().expect("passed on");
            }
        });
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if line == "freeze" {
                    control.freeze();
                }
            }
        });
        child.wait().await;
    });
    ExitCode::SUCCESS
}
