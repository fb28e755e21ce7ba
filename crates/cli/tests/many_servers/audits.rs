//! `palisade audit` of the database and the bucket: in order while it is served and afterwards, and
//! harm is named.

use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::{
    common::{PROGRAM, engines::psql},
    crowd::Crowd,
    three_servers,
};

async fn audit(flags: &[String]) -> (Option<i32>, Value) {
    #[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
    let output = Command::new(PROGRAM).args(["audit", "--json"]).args(flags).output().await;
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code(), report)
}

/// There is nothing to be found, and there are so many jobs.
pub(crate) async fn in_order(flags: Vec<String>, jobs: u64) {
    let (code, report) = audit(&flags).await;
    assert_eq!((code, &report["findings"]), (Some(0), &Value::Array(Vec::new())), "{report:#}");
    assert_eq!(report["jobs"], jobs, "{report:#}");
    assert!(report["entries"].as_u64() >= Some(3 * jobs), "each was told of: {report:#}");
    assert!(report["blobs"].as_u64() >= Some(1), "{report:#}");
}

/// The same while the crowd is at work, when it has come so far.
pub(crate) async fn in_the_middle(flags: Vec<String>, crowd: Crowd, completed: u64) {
    while crowd.completed() < completed {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (code, report) = audit(&flags).await;
    assert_eq!(code, Some(0), "{report:#}");
    assert!(report["jobs"].as_u64() >= Some(completed), "{report:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_did_to_the_database_is_found() {
    let Some((stage, flags)) = three_servers(&[]).await else { return };
    let crowd = Crowd::gather(&stage, 3).await;
    for client in crowd.work(1) {
        client.await.expect("no panic");
    }
    in_order(flags.clone(), 3).await;
    drop(stage);
    let found = |report: &Value| {
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let rules = findings.iter().filter_map(|one| one["rule"].as_str().map(str::to_owned));
        rules.collect::<std::collections::BTreeSet<_>>()
    };
    let job = crowd.seen().submitted[&0].trim_start_matches('j').to_owned();
    psql(&flags[1], "ALTER SEQUENCE counter RESTART 1");
    let (code, report) = audit(&flags).await;
    assert_eq!((code, found(&report).contains("rising_tokens")), (Some(1), true), "{report:#}");
    psql(&flags[1], &format!("DELETE FROM jobs WHERE id = {job}"));
    let (code, report) = audit(&flags).await;
    assert_eq!((code, found(&report).contains("readable")), (Some(1), true), "{report:#}");
    // Of what is not to be read, nothing is said to be in order.
    let newest = "version = (SELECT max(version) FROM refinery_schema_history)";
    psql(&flags[1], &format!("DELETE FROM refinery_schema_history WHERE {newest}"));
    #[expect(clippy::disallowed_methods, reason = "the test runs the program under test")]
    let old = Command::new(PROGRAM).arg("audit").args(&flags).output().await.expect("it runs");
    let said = String::from_utf8_lossy(&old.stderr).into_owned();
    assert_eq!(old.status.code(), Some(2), "{said}");
    assert!(said.contains("is at version"), "{said}");
}
