//! What happens, in its order.

use std::{path::PathBuf, time::Duration};

use palisade_api::wire::{InputWire, JobView, SubmitRequest};

use crate::drill::{Clip, Cluster, DrillError, Process, Proxy, WorkerOptions, make_clip, wait_for};

use super::{DemoOptions, checks, report::Report};

/// The lease of the demonstration's workers: short, so that a pause past it is short too.
const TTL_MS: u64 = 4_000;

/// An export of the demonstration.
#[derive(Debug, Clone)]
pub(super) struct Export {
    pub(super) job: String,
    pub(super) recipe: &'static str,
    pub(super) seconds: u32,
}

/// The stage: a server and three workers, or several and four; four exports.
pub(super) struct Scene {
    cluster: Cluster,
    proxy: Proxy,
    /// Is killed.
    anna: Process,
    /// Is paused in mid-render.
    bert: Process,
    /// Is paused between its last look at its lease and the arrival of its completion.
    cleo: Process,
    /// Is left alone; where there are several servers.
    dora: Option<Process>,
    exports: Vec<Export>,
    dir: PathBuf,
}

impl Scene {
    /// Makes the clips, starts the server and the workers, submits the exports.
    pub(super) async fn set(
        options: &DemoOptions,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, DrillError> {
        let dir = options.dir.clone();
        let clips = make_clips(options, tell).await?;
        let cluster = start_servers(options, tell).await?;
        let exports = submit_all(&cluster, &clips, tell).await?;
        let proxy =
            Proxy::start(cluster.address_of(cluster.servers() - 1), Some("/complete HTTP/1.1"))
                .await?;
        let own = WorkerOptions { ttl_ms: TTL_MS, ..WorkerOptions::default() };
        let behind_proxy = WorkerOptions { url: Some(proxy.url()), ..own.clone() };
        let several = cluster.servers() > 1;
        let who = if several {
            "four workers, one render each: anna, bert, cleo and dora"
        } else {
            "three workers, one render each: anna, bert and cleo"
        };
        tell(&format!("{who}; leases of 4 s"));
        let anna = cluster.start_worker("anna", &own)?;
        let bert = cluster.start_worker("bert", &own)?;
        let cleo = cluster.start_worker("cleo", &behind_proxy)?;
        let dora = if several { Some(cluster.start_worker("dora", &own)?) } else { None };
        Ok(Self { cluster, proxy, anna, bert, cleo, dora, exports, dir })
    }

    /// Kills one worker, stops two, and wakes them when it is too late.
    pub(super) async fn play(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), DrillError> {
        let (anna, bert, cleo) = tokio::try_join!(
            self.job_in_mid_render(&self.anna),
            self.job_in_mid_render(&self.bert),
            self.job_in_mid_render(&self.cleo),
        )?;
        self.anna.kill();
        tell(&format!("anna is killed (SIGKILL) in the middle of {anna}"));
        self.bert.stop();
        tell(&format!("bert is stopped (SIGSTOP) in the middle of {bert}"));
        self.anna.ended().await?;
        let own = WorkerOptions { ttl_ms: TTL_MS, ..WorkerOptions::default() };
        self.anna = self.cluster.start_worker("anna", &own)?;
        tell("anna is started again, under its old name; it inherits nothing");
        self.kill_a_server(tell).await?;
        let held = tokio::time::timeout(Duration::from_mins(4), self.proxy.held()).await;
        let Ok(held) = held else { return Err(not_seen("cleo to send its completion")) };
        self.cleo.stop();
        tell(&format!(
            "cleo has looked at its lease for the last time and sent its completion of {cleo}; \
             the network holds it back, and cleo is stopped"
        ));
        for export in &self.exports {
            let job = self.complete(&export.job).await?;
            let by = job.completion.as_ref().map(|done| (done.worker.as_str(), done.token));
            let (worker, token) = by.unwrap_or(("nobody", 0));
            tell(&format!("{} is complete, by {worker} under token {token}", export.job));
        }
        self.bert.wake();
        tell("bert wakes, and does not know that time has passed");
        let aborted = self.cluster.event_of(&self.bert, "aborted", &bert).await?;
        tell(&format!("bert asks before it goes on, and stops by itself: {}", aborted["detail"]));
        self.cleo.wake();
        held.let_go();
        tell("cleo wakes, and the network lets its late completion go on");
        let refused = self.cluster.event_of(&self.cleo, "refused", &cleo).await?;
        tell(&format!("the fence refuses it ({}): {}", refused["code"], refused["message"]));
        Ok(())
    }

    /// Kills the server that everybody asks first, where others go on.
    async fn kill_a_server(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), DrillError> {
        if self.cluster.servers() > 1 {
            self.cluster.kill_server_at(0).await?;
            let address = self.cluster.address_of(0);
            tell(&format!("the server at {address} is killed (SIGKILL); all go on to the next"));
        }
        Ok(())
    }

    /// Waits until a worker is in the middle of a render, and answers the job's id.
    async fn job_in_mid_render(&self, worker: &Process) -> Result<String, DrillError> {
        let what = format!("{} to be in mid-render", worker.name());
        wait_for(&what, Duration::from_mins(2), async || {
            let lines = worker.lines();
            let events = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
            let mut events = events.filter(|seen: &serde_json::Value| seen["event"] == "progress");
            let job = events.find_map(|seen| seen["job"].as_str().map(str::to_owned));
            job.ok_or_else(|| format!("{}{}", lines.join("\n"), worker.log()))
        })
        .await
    }

    async fn complete(&self, id: &str) -> Result<JobView, DrillError> {
        self.cluster
            .job_when(id, "over", |job| matches!(job.state.as_str(), "complete" | "failed"))
            .await
    }

    /// Looks at what came of it, as an outsider would.
    pub(super) async fn look(&self) -> Result<Report, DrillError> {
        let mut jobs = Vec::new();
        let mut complaints = Vec::new();
        let mut events = Vec::new();
        for export in &self.exports {
            let job = self.cluster.client().job(&export.job).await?;
            let folder = self.dir.join("exports");
            complaints.extend(checks::check(self.cluster.client(), export, &job, &folder).await?);
            events.extend(self.cluster.client().history(&export.job).await?.events);
            jobs.push(job);
        }
        events.sort_by_key(|event| event.position);
        Ok(Report { jobs, events, complaints, folder: self.dir.join("exports") })
    }

    /// Ends all that was started.
    pub(super) async fn end(&mut self) {
        let named = [&mut self.anna, &mut self.bert, &mut self.cleo];
        let mut workers: Vec<_> = named.into_iter().chain(self.dora.as_mut()).collect();
        for process in &workers {
            process.terminate();
        }
        for process in &mut workers {
            end_politely(process).await;
        }
        for index in 0..self.cluster.servers() {
            self.cluster.server_at(index).terminate();
            end_politely(self.cluster.server_at(index)).await;
        }
    }
}

/// Starts one server, or several of one store.
async fn start_servers(
    options: &DemoOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<Cluster, DrillError> {
    let Some(shared) = &options.shared else {
        let cluster = Cluster::start(&options.program, &options.dir, &[]).await?;
        tell(&format!("a server at {}", cluster.url()));
        return Ok(cluster);
    };
    let flags = ["--store", &shared.store, "--artefacts", &shared.artefacts];
    let servers = shared.servers;
    let cluster = Cluster::start_many(&options.program, &options.dir, servers, &flags).await?;
    tell(&format!("{servers} servers of one store, none of them special: {}", cluster.url()));
    Ok(cluster)
}

/// Waits for a process that was asked to end; a deaf one is killed.
async fn end_politely(process: &mut Process) {
    if tokio::time::timeout(Duration::from_secs(10), process.ended()).await.is_err() {
        process.kill();
        let _ = process.ended().await;
    }
}

fn not_seen(what: &str) -> DrillError {
    let waited = Duration::from_mins(4);
    DrillError::NotSeen { what: what.to_owned(), waited, seen: "nothing".to_owned() }
}

struct Source {
    path: PathBuf,
    recipe: &'static str,
    seconds: u32,
}

async fn make_clips(
    options: &DemoOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Source>, DrillError> {
    let folder = options.dir.join("clips");
    std::fs::create_dir_all(&folder).map_err(DrillError::io("cannot make the clips' folder"))?;
    let longest = options.seconds;
    let plan = [
        ("city.mp4", "h264-720p", longest),
        ("harbour.mp4", "hls", longest * 3 / 4),
        ("forest.mp4", "h264-720p", longest * 2 / 3),
        ("market.mp4", "h264-720p", longest / 2),
    ];
    let mut sources = Vec::new();
    for (index, (name, recipe, seconds)) in (0..).zip(plan) {
        let path = folder.join(name);
        let tone_hz = 220 + 110 * index;
        let clip = Clip { width: 1280, height: 720, seconds, rate: 25, tone_hz };
        make_clip(clip, &path).await?;
        sources.push(Source { path, recipe, seconds });
    }
    tell(&format!("four clips of {} to {longest} s in {}", longest / 2, folder.display()));
    Ok(sources)
}

async fn submit_all(
    cluster: &Cluster,
    sources: &[Source],
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Export>, DrillError> {
    let client = cluster.client();
    let mut exports = Vec::new();
    for source in sources {
        let purpose = palisade_api::client::Upload::Input;
        let (digest, size_bytes) = client.upload(&source.path, &purpose).await?;
        let name = source.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let shown = name.clone().unwrap_or_default();
        let input = InputWire { digest: digest.to_string(), size_bytes, name };
        let wish = SubmitRequest {
            recipe: source.recipe.to_owned(),
            inputs: [("source".to_owned(), input)].into(),
            parameters: [("preset".to_owned(), "veryfast".into())].into(),
            ..SubmitRequest::default()
        };
        let submitted = client.submit(&wish).await?;
        let job = submitted.job.clone();
        tell(&format!("submitted {shown} as {} with {}", job, source.recipe));
        if exports.is_empty() {
            let again = client.submit(&wish).await?;
            let same = if again.job == job { "joined" } else { "DID NOT JOIN" };
            tell(&format!("submitted {shown} a second time: it {same} {job}"));
        }
        exports.push(Export { job, recipe: source.recipe, seconds: source.seconds });
    }
    Ok(exports)
}
