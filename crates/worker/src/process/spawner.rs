//! Starting children, from one thread that lives as long as the process.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, OnceLock, mpsc},
};

use tokio::{net::unix::pipe, sync::oneshot};

use super::{
    child::{Child, ChildControl},
    nanny::{Place, WatchArgs},
    record,
    tree::Identity,
};

/// How the nanny is started: our own binary and the words that lead to [`super::nanny_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NannyCommand {
    /// The binary.
    pub program: PathBuf,
    /// The words before the nanny's own arguments.
    pub words: Vec<OsString>,
}

impl NannyCommand {
    /// This very program, even if its file has been replaced since, with those words.
    pub fn this_program(words: &[&str]) -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            words: words.iter().map(OsString::from).collect(),
        }
    }
}

/// A child to be started.
#[derive(Debug, Clone, Default)]
pub struct ChildSpec {
    /// The program, found in the worker's `PATH` if it is a bare name, and its arguments.
    pub argv: Vec<OsString>,
    /// The folder in which it runs: the attempt's scratch folder. What runs is noted below it,
    /// for [`super::leftovers`].
    pub folder: PathBuf,
    /// What it is called in that note (`step-1`): letters, digits and `-`. One child at a time.
    pub label: String,
    /// Variables of its environment, beside `PATH`, `HOME`, `TMPDIR` and `LC_ALL`: of the
    /// worker's own it sees only its `PATH`.
    pub environment: BTreeMap<String, String>,
}

/// Why a child could not be started. Another try may succeed.
#[derive(Debug, thiserror::Error)]
#[error("{program} could not be started")]
pub struct SpawnError {
    /// The program asked for.
    pub program: String,
    /// What the system said.
    pub source: io::Error,
}

/// Starts children. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    nanny: Arc<NannyCommand>,
}

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<std::process::Child>>,
}

impl Supervisor {
    /// A supervisor whose nannies are started in that way.
    pub fn new(nanny: NannyCommand) -> Self {
        Self { nanny: Arc::new(nanny) }
    }

    /// Starts a child. Needs a tokio runtime with IO. When everything that belongs to the child
    /// (itself and its controls) has been dropped, its whole tree is killed.
    pub async fn spawn(&self, spec: ChildSpec) -> Result<Child, SpawnError> {
        let program = spec.argv.first().map(|word| word.to_string_lossy().into_owned());
        let program = program.unwrap_or_default();
        self.try_spawn(spec).await.map_err(|source| SpawnError { program, source })
    }

    async fn try_spawn(&self, spec: ChildSpec) -> io::Result<Child> {
        if spec.argv.is_empty() {
            return Err(io::Error::other("no program was named"));
        }
        let records = spec.folder.join(record::FOLDER);
        tokio::fs::create_dir_all(&records).await?;
        let record = records.join(format!("{}.record", spec.label));
        let (ours, theirs) = UnixStream::pair()?;
        let (stdout, stdout_writer) = io::pipe()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let mut command = self.command(spec, record);
        command.stdin(OwnedFd::from(theirs)).stdout(stdout_writer).stderr(stderr_writer);
        let nanny = start(command).await?;
        let stdout = pipe::Receiver::from_owned_fd(stdout.into())?;
        let stderr = pipe::Receiver::from_owned_fd(stderr.into())?;
        adopt(nanny, ours, Some((stdout, stderr)))
    }

    fn command(&self, spec: ChildSpec, record: PathBuf) -> Command {
        let mut command = self.nanny_command(Place::Scratch(record), spec.argv);
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &spec.folder)
            .env("TMPDIR", &spec.folder)
            .env("LC_ALL", "C.UTF-8")
            .envs(spec.environment)
            .current_dir(spec.folder)
            // Out of the worker's group: a Ctrl-C on the terminal is the worker's to handle.
            .process_group(0)
            .stderr(Stdio::null());
        command
    }

    /// The call of a nanny, without its surroundings.
    #[expect(clippy::disallowed_methods, reason = "this is the room where children are started")]
    pub(super) fn nanny_command(&self, place: Place, argv: Vec<OsString>) -> Command {
        let mut command = Command::new(&self.nanny.program);
        let watch = WatchArgs { place, words: self.nanny.words.clone(), argv };
        command.arg0("palisade").args(&self.nanny.words).args(watch.into_args());
        command
    }
}

/// Starts a nanny, on the one thread that does so.
pub(super) async fn start(command: Command) -> io::Result<std::process::Child> {
    let ended = || io::Error::other("the spawning thread has ended");
    let (reply, answer) = oneshot::channel();
    spawner()?.send(Request { command, reply }).map_err(|_| ended())?;
    answer.await.map_err(|_| ended())?
}

/// Takes a nanny that was started into our hands, with our end of its socket.
pub(super) fn adopt(
    nanny: std::process::Child,
    socket: UnixStream,
    pipes: Option<(pipe::Receiver, pipe::Receiver)>,
) -> io::Result<Child> {
    socket.set_nonblocking(true)?;
    let reports = tokio::net::UnixStream::from_std(socket.try_clone()?)?;
    let control = ChildControl::new(socket, Identity::of(nanny.id().cast_signed()));
    Ok(Child::new(nanny, control, reports, pipes))
}

/// The one thread that spawns. It never ends: PDEATHSIG fires when the *thread* that spawned ends,
/// and threads of a runtime's pool come and go.
fn spawner() -> io::Result<mpsc::Sender<Request>> {
    static SPAWNER: OnceLock<Result<mpsc::Sender<Request>, io::ErrorKind>> = OnceLock::new();
    let start = || {
        let (sender, requests) = mpsc::channel::<Request>();
        let run = move || {
            for mut request in requests {
                let spawned = request.command.spawn();
                if let Err(Ok(mut orphan)) = request.reply.send(spawned) {
                    // Nobody waits for it any more: its socket is closed, so it ends by itself.
                    let _status = orphan.wait();
                }
            }
        };
        let thread = std::thread::Builder::new().name("palisade-spawn".to_owned()).spawn(run);
        thread.map(|_runs_for_ever| sender).map_err(|error| error.kind())
    };
    SPAWNER.get_or_init(start).clone().map_err(io::Error::from)
}
