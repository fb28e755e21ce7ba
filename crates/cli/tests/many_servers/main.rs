//! Several servers on one PostgreSQL and one bucket: killed, restarted, and their database with
//! them. Runs where `scripts/with-cluster` has started what they have in common.
#![expect(clippy::print_stderr, reason = "a test says what it skipped, and what it saw")]

mod audits;
mod behind_nginx;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod faults;
mod versions;

use std::{collections::BTreeMap, path::Path};

use common::{PROGRAM, Stage, completed, engines::Shared};

use crowd::Crowd;

/// Three servers with these flags, and all flags with those that say what they share. None: it is not
/// there, which the test says loudly.
async fn three_servers(more: &[&str]) -> Option<(Stage, Vec<String>)> {
    let Some(shared) = Shared::of_environment() else {
        eprintln!("SKIPPED: runs under scripts/with-cluster, as `make test` has it");
        return None;
    };
    let mut flags = shared.flags();
    flags.extend(more.iter().map(|&flag| flag.to_owned()));
    let texts: Vec<_> = flags.iter().map(String::as_str).collect();
    let dir = tempfile::tempdir().expect("a temporary folder");
    Some((Stage::set_many(Path::new(PROGRAM), dir, 3, &texts).await, flags))
}

/// How many jobs, unless `PALISADE_TEST_JOBS` says otherwise.
const JOBS: u64 = 20_000;
const CLIENTS: usize = 32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_killed_every_second_and_a_database_that_crashes_lose_nothing() {
    let Some((mut stage, flags)) = three_servers(&[]).await else { return };
    let jobs =
        std::env::var("PALISADE_TEST_JOBS").map_or(JOBS, |text| text.parse().expect("number"));
    let crowd = Crowd::gather(&stage, jobs).await;
    let working = crowd.work(CLIENTS);
    let audited = tokio::spawn(audits::in_the_middle(flags.clone(), crowd.clone(), jobs / 4));
    let killed = faults::until_over(&mut stage.cluster, &crowd, jobs).await;
    for client in working {
        client.await.expect("a client does not panic");
    }
    audited.await.expect("it is in order while it is served");
    let attempts = all_is_done_once(&stage, &crowd, jobs).await;
    audits::in_order(flags, jobs).await;
    eprintln!("{jobs} jobs, {attempts} attempts, {killed} servers killed or asked to end");
    assert!(killed > 2, "there were faults");
}

/// Every job that was acknowledged is there and complete, by one token that everybody was told, and
/// tokens rose. Answers how many attempts there were.
async fn all_is_done_once(stage: &Stage, crowd: &Crowd, jobs: u64) -> usize {
    let seen = crowd.seen();
    assert_eq!(seen.submitted.len() as u64, jobs, "every acknowledged submission is known");
    let ids: std::collections::BTreeSet<_> = seen.submitted.values().collect();
    assert_eq!(ids.len() as u64, jobs, "each is a job of its own");
    let mut attempts = 0;
    for id in ids {
        let job = stage.client().job(id).await.expect("an acknowledged job is there");
        assert_eq!((job.state.as_str(), completed(&job)), ("complete", 1), "{job:#?}");
        let tokens: Vec<_> = job.attempts.iter().map(|attempt| attempt.token).collect();
        assert!(tokens.windows(2).all(|two| two[0] < two[1]), "tokens rise: {job:#?}");
        let by = job.completion.as_ref().expect("it is complete").token;
        let acknowledged = seen.completed.get(id).cloned().unwrap_or_default();
        assert!(acknowledged.iter().all(|token| *token == by), "one completion is told: {job:#?}");
        attempts += tokens.len();
    }
    let unique: BTreeMap<_, _> = seen.granted.iter().map(|grant| (grant.1, &grant.0)).collect();
    assert_eq!(unique.len(), seen.granted.len(), "no token was granted twice");
    attempts
}

#[tokio::test]
async fn a_real_export_outlives_the_server_that_granted_it() {
    let Some((mut stage, _)) = three_servers(&[]).await else { return };
    let clip = stage.clip("clip.mp4", 6).await;
    let worker = stage.worker("worker");
    let submitted = stage.submit("slow", &clip).await;
    stage.event(&worker, "progress", &submitted.job).await;
    stage.cluster.kill_server_at(0).await.expect("it ends");
    let job = stage.over(&submitted.job).await;
    assert_eq!((job.state.as_str(), job.attempts.len()), ("complete", 1), "{job:#?}");
}

/// A wait at one server hears of what was committed through another.
#[tokio::test]
async fn a_wait_at_one_server_ends_with_the_completion_at_another() {
    let Some((stage, _)) = three_servers(&[]).await else { return };
    let crowd = Crowd::gather(&stage, 1).await;
    let url = format!("http://{}", stage.cluster.address_of(2));
    let elsewhere = palisade_api::Client::new(&url).expect("an address");
    let job = crowd.submit(stage.client(), 0).await;
    let limit = std::time::Duration::from_mins(1);
    let waiting = tokio::spawn(async move { elsewhere.wait(&job, limit).await });
    crowd.claim_and_complete(stage.client(), "worker", 1).await;
    let job = waiting.await.expect("no panic").expect("an answer");
    assert_eq!(job.state, "complete");
}
