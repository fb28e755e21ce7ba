//! A server that is stopped in the middle of a transaction: a process of its own, a real SIGSTOP.

use std::{process::Stdio, sync::Arc, time::Duration};

use palisade_core::JobId;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    Store,
    command::{Command, Retry},
    postgres::{Address, PostgresOptions, PostgresStore},
};

use super::{
    cluster::Cluster,
    faults::{Boottime, open, wish},
};

const URL: &str = "PALISADE_TEST_URL";
const JOBS: &str = "PALISADE_TEST_JOBS";
const CHILD: &str = "postgres::tests::stopped::a_server_that_looks_at_jobs_again_and_again";

/// Runs in the child: locks rows and lets them go, until it is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a child process"]
async fn a_server_that_looks_at_jobs_again_and_again() {
    let Ok(url) = std::env::var(URL) else { return };
    let jobs = std::env::var(JOBS).unwrap();
    let options = PostgresOptions::new(Address::parse(&url).unwrap(), Arc::new(Boottime));
    let store = PostgresStore::open(options).await.unwrap();
    let jobs: Vec<JobId> = jobs.split(',').map(|id| id.parse().unwrap()).collect();
    loop {
        // Refused, for they are live; to see that, their rows are locked.
        let retries = jobs
            .iter()
            .map(|job| Command::Retry(Retry { job: *job, submission: None, request_id: None }));
        store.execute(retries.collect()).await;
    }
}

struct Peer(std::process::Child);

impl Peer {
    #[expect(clippy::disallowed_methods, reason = "a process of its own is what is stopped")]
    fn start(url: &str, jobs: &[JobId]) -> Self {
        let jobs: Vec<_> = jobs.iter().map(ToString::to_string).collect();
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "--ignored", "--nocapture", CHILD]);
        command.env(URL, url).env(JOBS, jobs.join(",")).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many of the child's transactions stand still with rows locked.
async fn standing_still(client: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'peer' \
               AND state = 'idle in transaction' AND backend_xid IS NOT NULL \
               AND query LIKE '%FROM clock%'";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_stopped_with_rows_locked_hides_nothing_else_and_those_not_for_long() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    cluster.sql(&database, "CREATE ROLE peer SUPERUSER LOGIN").await;
    let bench = open(&cluster, &database).await;
    let mut jobs = Vec::new();
    for number in 0..6 {
        let wish = wish(&bench, &format!("source {number}")).await;
        jobs.push(bench.submit(&wish).await.job);
    }
    let (theirs, others) = jobs.split_at(3);
    let url = format!("postgres:///{database}?host={}&user=peer", cluster.home().display());
    let peer = Peer::start(&url, theirs);
    let address = cluster.address(&database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    // Stopped until it stands where it should.
    loop {
        peer.signal(Signal::STOP);
        // What it had sent is carried out meanwhile; what it would send is not.
        tokio::time::sleep(Duration::from_millis(20)).await;
        if standing_still(&client).await > 0 {
            break;
        }
        peer.signal(Signal::CONT);
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    let first = bench.claim(&bench.claim_of("alice", 6)).await;
    let granted: Vec<_> = first.grants.iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, others);
    // Whoever needs one of the rows waits until the database ends that transaction.
    let again = Retry { job: theirs[0], submission: None, request_id: None };
    let refused = bench.store.execute(vec![Command::Retry(again)]).await;
    assert!(matches!(refused[0], Err(crate::Failure::Refused(_))), "{refused:?}");
    assert_eq!(standing_still(&client).await, 0);
    let second = bench.claim(&bench.claim_of("alice", 6)).await;
    assert_eq!(second.grants.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), theirs);
    // It goes on as if nothing had been, and finds them granted.
    peer.signal(Signal::CONT);
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'peer' \
                AND state_change > $1::timestamptz";
    let now: String = client.query_one("SELECT now()::text", &[]).await.unwrap().get(0);
    let sql = busy.replace("$1", &format!("'{now}'"));
    while client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client);
    driver.await.unwrap().unwrap();
}
