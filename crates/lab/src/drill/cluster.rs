//! Servers and their workers, as processes of their own in a folder of their own.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use palisade_api::{Client, wire::JobView};

use super::{DrillError, Process, wait_for};

/// How long anything in a drill may take before it is called missing. Generous: a slow machine is
/// no fault.
const LIMIT: Duration = Duration::from_mins(4);

/// Servers of one store, mostly one alone, and their workers.
#[derive(Debug)]
pub struct Cluster {
    program: PathBuf,
    dir: PathBuf,
    servers: Vec<Member>,
    server_args: Vec<String>,
    client: Client,
}

/// One of the servers.
#[derive(Debug)]
struct Member {
    /// Its folder below the cluster's, and what its log is called.
    name: String,
    address: SocketAddr,
    process: Option<Process>,
}

/// How a worker of the drill is started.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The lease's length, in ms.
    pub ttl_ms: u64,
    /// How many jobs at once.
    pub slots: u32,
    /// Another address than the server's: a proxy's.
    pub url: Option<String>,
    /// More flags.
    pub more: Vec<String>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self { ttl_ms: 4_000, slots: 1, url: None, more: Vec::new() }
    }
}

impl Cluster {
    /// Starts a server of `program` (the `palisade` binary) below `dir`.
    pub async fn start(program: &Path, dir: &Path, more: &[&str]) -> Result<Self, DrillError> {
        Self::start_many(program, dir, 1, more).await
    }

    /// Starts several servers, which the flags `more` let work on one store.
    pub async fn start_many(
        program: &Path,
        dir: &Path,
        count: usize,
        more: &[&str],
    ) -> Result<Self, DrillError> {
        std::fs::create_dir_all(dir).map_err(DrillError::io("cannot make the drill's folder"))?;
        let mut servers = Vec::new();
        for number in 1..=count {
            let name = if number == 1 { "server".to_owned() } else { format!("server-{number}") };
            servers.push(Member { name, address: free_address()?, process: None });
        }
        let client = Client::new(&url_of(&servers))?;
        let mut cluster = Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            servers,
            server_args: more.iter().map(|&flag| flag.to_owned()).collect(),
            client,
        };
        for index in 0..count {
            cluster.start_server_at(index).await?;
        }
        Ok(cluster)
    }

    /// Starts the first server, again at the same address and on the same data, and waits until
    /// it serves.
    pub async fn start_server(&mut self) -> Result<(), DrillError> {
        self.start_server_at(0).await
    }

    /// The same of any server, counted from 0.
    pub async fn start_server_at(&mut self, index: usize) -> Result<(), DrillError> {
        let member = &mut self.servers[index];
        let data = self.dir.join(&member.name).display().to_string();
        let address = member.address.to_string();
        let flags = ["serve", "--data", &data, "--listen", &address].map(str::to_owned);
        let args: Vec<_> = flags.into_iter().chain(self.server_args.iter().cloned()).collect();
        let log = self.dir.join(format!("{}.log", member.name));
        let process = Process::start(&member.name, &self.program, &args, &[], &log)?;
        let process = member.process.insert(process);
        let client = Client::new(&format!("http://{address}"))?;
        let serves = wait_for("the server to serve", LIMIT, async || {
            client.ready().await.map_err(|error| error.to_string())
        });
        let ended = || {
            let message = "it ended instead of serving".to_owned();
            Err(DrillError::Tool { tool: member.name.clone(), message })
        };
        let outcome = tokio::select! {
            outcome = serves => outcome,
            _ = process.ended() => ended(),
        };
        outcome.map_err(|error| self.with_log(index, &error))
    }

    fn with_log(&self, index: usize, error: &DrillError) -> DrillError {
        let log = self.servers[index].process.as_ref().map(Process::log).unwrap_or_default();
        DrillError::Tool { tool: error.to_string(), message: log }
    }

    /// Starts a worker.
    pub fn start_worker(&self, name: &str, how: &WorkerOptions) -> Result<Process, DrillError> {
        let data = self.worker_dir(name).display().to_string();
        let url = how.url.clone().unwrap_or_else(|| self.url());
        let (ttl, slots) = (format!("{}ms", how.ttl_ms), how.slots.to_string());
        let flags = [
            "worker", "--server", &url, "--name", name, "--slots", &slots, "--ttl", &ttl, "--data",
            &data, "--events",
        ];
        let args: Vec<_> =
            flags.into_iter().map(str::to_owned).chain(how.more.iter().cloned()).collect();
        Process::start(name, &self.program, &args, &[], &self.dir.join(format!("{name}.log")))
    }

    /// A worker's data directory.
    pub fn worker_dir(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The first server's data directory.
    pub fn server_dir(&self) -> PathBuf {
        self.dir.join("server")
    }

    /// The first server's process.
    pub fn server(&mut self) -> &mut Process {
        self.server_at(0)
    }

    /// Any server's process, counted from 0.
    pub fn server_at(&mut self, index: usize) -> &mut Process {
        self.servers[index].process.as_mut().expect("it was started with the cluster")
    }

    /// Kills the first server without a word.
    pub async fn kill_server(&mut self) -> Result<(), DrillError> {
        self.kill_server_at(0).await
    }

    /// Kills any server without a word.
    pub async fn kill_server_at(&mut self, index: usize) -> Result<(), DrillError> {
        self.server_at(index).kill();
        self.server_at(index).ended().await.map(|_| ())
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The first server's address.
    pub fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    /// Any server's address.
    pub fn address_of(&self, index: usize) -> SocketAddr {
        self.servers[index].address
    }

    /// The servers' addresses, for `--server`.
    pub fn url(&self) -> String {
        url_of(&self.servers)
    }

    /// A client of the servers.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until a job is as `fits` wants it.
    pub async fn job_when(
        &self,
        id: &str,
        what: &str,
        fits: impl Fn(&JobView) -> bool,
    ) -> Result<JobView, DrillError> {
        wait_for(&format!("{id} to be {what}"), LIMIT, async || match self.client.job(id).await {
            Ok(job) if fits(&job) => Ok(job),
            Ok(job) => Err(summary(&job)),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    /// Waits until a worker has printed an event for a job, and answers the event.
    pub async fn event_of(
        &self,
        worker: &Process,
        event: &str,
        job: &str,
    ) -> Result<serde_json::Value, DrillError> {
        let what = format!("{} to print {event} for {job}", worker.name());
        wait_for(&what, LIMIT, async || {
            let lines = worker.lines();
            let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
            let mut events = events.filter(|seen: &serde_json::Value| seen["job"] == job);
            events
                .find(|seen| seen["event"] == event)
                .ok_or_else(|| lines.last().cloned().unwrap_or_default())
        })
        .await
    }
}

fn summary(job: &JobView) -> String {
    let attempts: Vec<_> = job
        .attempts
        .iter()
        .map(|attempt| format!("{} {} {}", attempt.token, attempt.worker, attempt.outcome))
        .collect();
    format!("{} {}, attempts: {}", job.id, job.state, attempts.join("; "))
}

fn url_of(servers: &[Member]) -> String {
    let urls: Vec<_> = servers.iter().map(|member| format!("http://{}", member.address)).collect();
    urls.join(",")
}

/// An address on loopback that was free a moment ago.
fn free_address() -> Result<SocketAddr, DrillError> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_err(DrillError::io("cannot find a free port on loopback"))
}
