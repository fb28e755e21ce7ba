//! A runner that renders when it is told to.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use palisade_core::{
    job::{Failure, FailureKind},
    manifest::Provenance,
};
use tokio::sync::{oneshot, watch};

use crate::{
    render::{RenderError, RenderProgress, RenderRequest, Rendered, RenderedOutput},
    runner::{Run, Runner, Steer},
};

type Outcome = Result<Rendered, RenderError>;

#[derive(Debug, Default)]
pub(crate) struct ScriptedRunner {
    pub(crate) runs: Mutex<Vec<Arc<ScriptedRun>>>,
    pub(crate) leftovers: Mutex<Vec<i32>>,
    /// Scratch roots in which leftovers were looked for, with what was there at that moment.
    pub(crate) looked_in: Mutex<Vec<(PathBuf, usize)>>,
    pub(crate) versions: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
pub(crate) struct ScriptedRun {
    pub(crate) request: RenderRequest,
    /// What it was told, in order.
    pub(crate) told: Mutex<Vec<&'static str>>,
    outcome: Mutex<Option<oneshot::Sender<Outcome>>>,
    progress: watch::Sender<RenderProgress>,
}

impl ScriptedRun {
    pub(crate) fn told(&self) -> Vec<&'static str> {
        self.told.lock().unwrap().clone()
    }

    /// Succeeds, with one output of that content.
    pub(crate) fn finish(&self, content: &[u8]) {
        let folder = self.request.scratch.join("out");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("out.bin");
        std::fs::write(&path, content).unwrap();
        self.finish_with(path);
    }

    /// Succeeds, with one output that is there.
    pub(crate) fn finish_with(&self, path: PathBuf) {
        let output = RenderedOutput {
            name: "out.bin".parse().unwrap(),
            path,
            media_type: "application/octet-stream".to_owned(),
            size_bytes: 6,
            facts: BTreeMap::new(),
        };
        let provenance = Provenance { toolchain: "cp 9".to_owned(), commands: Vec::new() };
        self.end(Ok(Rendered { outputs: vec![output], checks: Vec::new(), provenance }));
    }

    pub(crate) fn end(&self, outcome: Outcome) {
        let sender = self.outcome.lock().unwrap().take().expect("it ends once");
        let _ = sender.send(outcome);
    }

    pub(crate) fn progress(&self, percent: f64) {
        self.progress.send_replace(RenderProgress { percent: Some(percent), ..Default::default() });
    }

    fn tell(&self, what: &'static str) {
        self.told.lock().unwrap().push(what);
    }
}

impl Steer for ScriptedRun {
    fn freeze(&self) {
        self.tell("freeze");
    }

    fn thaw(&self) {
        self.tell("thaw");
    }

    fn kill(&self) {
        self.tell("kill");
        if let Some(sender) = self.outcome.lock().unwrap().take() {
            let _ = sender.send(Err(RenderError::Killed));
        }
    }
}

impl Runner for ScriptedRunner {
    fn tool_version(&self, tool: &str) -> Option<String> {
        self.versions.lock().unwrap().get(tool).cloned()
    }

    fn start(&self, request: RenderRequest) -> Run {
        let (sender, receiver) = oneshot::channel();
        let run = Arc::new(ScriptedRun {
            request,
            told: Mutex::default(),
            outcome: Mutex::new(Some(sender)),
            progress: watch::Sender::new(RenderProgress::default()),
        });
        let progress = run.progress.subscribe();
        self.runs.lock().unwrap().push(Arc::clone(&run));
        let outcome = async move { receiver.await.unwrap_or(Err(RenderError::Killed)) };
        Run { steer: run, progress, outcome: Box::pin(outcome) }
    }

    fn end_leftovers(&self, scratch_root: &Path) -> io::Result<Vec<i32>> {
        let entries = std::fs::read_dir(scratch_root)?.count();
        self.looked_in.lock().unwrap().push((scratch_root.to_owned(), entries));
        Ok(std::mem::take(&mut *self.leftovers.lock().unwrap()))
    }
}

pub(crate) fn rendered_failure(reason: &str) -> Outcome {
    let message = format!("it went wrong: {reason}");
    let (reason, kind) = (reason.to_owned(), FailureKind::Final);
    Err(RenderError::Failed(Failure { reason, message, kind }))
}
