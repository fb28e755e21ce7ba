//! `workers`: what the server's workers hold.

use std::process::ExitCode;

use crate::{args::Common, output};

use super::client;

pub(crate) async fn run(common: Common) -> anyhow::Result<ExitCode> {
    let list = client(&common)?.workers().await?;
    if common.json {
        output::json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = output::table(["worker", "session", "connected", "job", "token", "ttl"]);
    for worker in &list.workers {
        let connected = if worker.connected { "yes" } else { "no" };
        let who = [worker.worker.clone(), worker.session.clone(), connected.to_owned()];
        if worker.leases.is_empty() {
            rows.add_row(who.iter().cloned().chain(["-", "-", "-"].map(str::to_owned)));
        }
        for lease in &worker.leases {
            let what = [lease.job.clone(), lease.token.to_string(), output::span(lease.ttl_ms)];
            rows.add_row(who.iter().cloned().chain(what));
        }
    }
    output::line(&rows.to_string());
    Ok(ExitCode::SUCCESS)
}
