//! Somebody who reads one address all the time, and notes what was to be seen there.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use tokio::{sync::watch, task::JoinHandle};

use crate::common::Stage;

/// What was seen, each once: a text, or the status where there was none to read.
type Seen = BTreeSet<Result<String, u16>>;

pub(crate) struct Reader {
    seen: Arc<Mutex<Seen>>,
    rounds: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

/// What is to be read at an address now.
pub(crate) async fn read(url: &str) -> Result<String, u16> {
    let answer = reqwest::get(url).await.expect("the server answers");
    match answer.status().as_u16() {
        200 => Ok(answer.text().await.expect("all of it comes")),
        status => Err(status),
    }
}

impl Reader {
    pub(crate) fn start(stage: &Stage, path: &str) -> Self {
        let url = format!("{}{path}", stage.cluster.url());
        let seen = Arc::new(Mutex::new(Seen::new()));
        let (told, rounds) = watch::channel(0);
        let into = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let what = read(&url).await;
                into.lock().expect("nobody panics").insert(what);
                told.send_modify(|round| *round += 1);
            }
        });
        Self { seen, rounds, task }
    }

    /// Ends after two more looks, of which the second began after this call. Answers all that was
    /// ever there to be read.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        let now = *self.rounds.borrow();
        self.rounds.wait_for(|round| *round >= now + 2).await.expect("it reads on");
        self.task.abort();
        let seen = self.seen.lock().expect("nobody panics");
        seen.iter().filter_map(|what| what.clone().ok()).collect()
    }
}
