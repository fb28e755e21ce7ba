//! What the end-to-end tests share: a cluster of real processes, recipes of an operator's own, and
//! looks at what is left on the machine.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

pub mod receiver;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use palisade_api::{
    Client,
    client::Upload,
    wire::{InputWire, JobView, SubmitRequest, SubmitResponse},
};
use palisade_lab::drill::{Clip, Cluster, Process, WorkerOptions, make_clip};

/// The binary under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_palisade");

/// A server with the operator's recipes of [`RECIPES`], in a folder of its own.
pub struct Stage {
    pub cluster: Cluster,
    pub dir: tempfile::TempDir,
}

/// Recipes of an operator's own. `slow` takes as long as its clip, whatever the machine; `liar`
/// makes something that is no film; `shy` fails in a way that another try may mend.
const RECIPES: [(&str, &str); 4] = [
    ("slow", include_str!("recipes/slow.toml")),
    ("liar", include_str!("recipes/liar.toml")),
    ("shy", include_str!("recipes/shy.toml")),
    ("family", include_str!("recipes/family.toml")),
];

impl Stage {
    pub async fn set() -> Self {
        Self::set_with(&[]).await
    }

    pub async fn set_with(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        Self::set_by(Path::new(PROGRAM), dir, more).await
    }

    /// The same, its processes being of another program (the binary in other clothes).
    pub async fn set_by(program: &Path, dir: tempfile::TempDir, more: &[&str]) -> Self {
        let recipes = dir.path().join("recipes");
        std::fs::create_dir_all(&recipes).expect("a folder for recipes");
        for (name, text) in RECIPES {
            std::fs::write(recipes.join(format!("{name}.toml")), text).expect("a recipe's file");
        }
        let folder = recipes.display().to_string();
        let mut flags = vec!["--recipes", &folder];
        flags.extend(more);
        let cluster = Cluster::start(program, dir.path(), &flags).await;
        Self { cluster: cluster.expect("the server starts"), dir }
    }

    pub fn worker(&self, name: &str) -> Process {
        self.worker_with(name, WorkerOptions::default())
    }

    pub fn worker_with(&self, name: &str, mut how: WorkerOptions) -> Process {
        let folder = self.dir.path().join("recipes").display().to_string();
        how.more.extend(["--recipes".to_owned(), folder]);
        self.cluster.start_worker(name, &how).expect("the worker starts")
    }

    pub fn client(&self) -> &Client {
        self.cluster.client()
    }

    pub async fn clip(&self, name: &str, seconds: u32) -> PathBuf {
        let path = self.dir.path().join(name);
        let tone_hz = 200 + seconds;
        let clip = Clip { width: 320, height: 180, seconds, rate: 25, tone_hz };
        make_clip(clip, &path).await.expect("ffmpeg makes the clip");
        path
    }

    pub async fn wish(&self, recipe: &str, file: &Path) -> SubmitRequest {
        let (digest, size_bytes) =
            self.client().upload(file, &Upload::Input).await.expect("the upload arrives");
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let input = InputWire { digest: digest.to_string(), size_bytes, name };
        SubmitRequest {
            recipe: recipe.to_owned(),
            inputs: BTreeMap::from([("source".to_owned(), input)]),
            ..SubmitRequest::default()
        }
    }

    pub async fn submit(&self, recipe: &str, file: &Path) -> SubmitResponse {
        let wish = self.wish(recipe, file).await;
        self.client().submit(&wish).await.expect("the submission is recorded")
    }

    pub async fn over(&self, job: &str) -> JobView {
        let over = |job: &JobView| matches!(job.state.as_str(), "complete" | "failed");
        self.cluster.job_when(job, "over", over).await.expect("the job ends")
    }

    pub async fn event(&self, worker: &Process, event: &str, job: &str) -> serde_json::Value {
        let seen = self.cluster.event_of(worker, event, job).await;
        seen.unwrap_or_else(|error| panic!("{error:#}\n{}", worker.log()))
    }

    /// Asserts that a worker's scratch is empty, however its attempts ended.
    pub async fn assert_scratch_is_empty(&self, worker: &str) {
        let scratch = self.cluster.worker_dir(worker).join("scratch");
        palisade_lab::drill::wait_for("an empty scratch", LIMIT, async || {
            let left: Vec<_> = std::fs::read_dir(&scratch)
                .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
                .unwrap_or_default();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await
        .expect("nothing is left of the scratch");
    }

    /// Waits until no process works below a worker's folder.
    pub async fn assert_no_renderer(&self, worker: &str) {
        let folder = self.cluster.worker_dir(worker);
        palisade_lab::drill::wait_for("the renderers to be gone", LIMIT, async || {
            let left = renderers(&folder);
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await
        .expect("no renderer is left");
    }
}

/// Generous: a slow machine is no fault.
pub const LIMIT: std::time::Duration = std::time::Duration::from_mins(1);

/// The attempts that completed a job.
pub fn completed(job: &JobView) -> usize {
    job.attempts.iter().filter(|attempt| attempt.outcome == "completed").count()
}

/// Living processes that run in or name a folder, the worker itself aside: (pid, state, name).
pub fn renderers(folder: &Path) -> Vec<(u32, char, String)> {
    let scratch = folder.join("scratch").display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let names_it = String::from_utf8_lossy(&words).contains(&scratch)
            || cwd.display().to_string().contains(&scratch);
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
        if let Some(state) = state.filter(|state| names_it && !matches!(state, 'Z' | 'X')) {
            found.push((pid, state, String::from_utf8_lossy(&words).replace('\0', " ")));
        }
    }
    found
}
