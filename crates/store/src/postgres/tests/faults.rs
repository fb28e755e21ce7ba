//! A database that crashes, peers that stand still, connections that break, copies that are old.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_core::{JobId, Timestamp, clock::Clock, transition::Beat};

use crate::{
    Failure, Store, StoreExt,
    command::{BeginBlob, Complete, FinishBlob, Pin, Submit, Verb},
    conformance::{
        Bench,
        bench::{heartbeat, manifest, request, wish_for},
    },
    postgres::{JUMP, PostgresOptions, PostgresStore, raise_tokens},
    query::{Query, View},
};

use super::cluster::Cluster;

/// The machine's own clock: here the database's time counts.
#[derive(Debug)]
pub(super) struct Boottime;

impl Clock for Boottime {
    fn now(&self) -> Timestamp {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ms = now.tv_sec * 1_000 + now.tv_nsec / 1_000_000;
        Timestamp(ms.unsigned_abs())
    }
}

fn options(cluster: &Cluster, database: &str) -> PostgresOptions {
    PostgresOptions::new(cluster.address(database), Arc::new(Boottime))
}

pub(super) async fn open(cluster: &Cluster, database: &str) -> Bench<PostgresStore> {
    let store = PostgresStore::open(options(cluster, database)).await.unwrap();
    Bench::new("a fault", |_| store)
}

/// Runs a request until it is answered: what was not done is asked again with the same ids.
pub(super) async fn insist<V: Verb + Clone + 'static>(
    bench: &Bench<PostgresStore>,
    verb: V,
) -> V::Answer {
    loop {
        match bench.store.run(verb.clone()).await {
            Ok(answer) => return answer,
            Err(Failure::Refused(refusal)) => panic!("refused: {refusal}"),
            Err(Failure::Unavailable(_) | Failure::Unknown(_)) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

pub(super) async fn wish(
    bench: &Bench<PostgresStore>,
    source: &str,
) -> palisade_core::transition::Wish {
    let digest = palisade_core::Digest::of(source.as_bytes());
    let pin = Pin::Until(Timestamp(u64::from(u32::MAX) * 1_000));
    let place = insist(bench, BeginBlob { digest, pin }).await;
    if !place.present {
        let size_bytes = source.len() as u64;
        let finish = FinishBlob { digest, generation: place.generation, size_bytes };
        insist(bench, finish).await;
    }
    wish_for(digest, source.len() as u64)
}

/// Submits, claims and completes, over and over; tells of each job that was answered as complete.
async fn work(bench: &Bench<PostgresStore>, worker: u64, rounds: &AtomicU64) -> Vec<JobId> {
    let mut complete = Vec::new();
    let mut round = 0;
    while rounds.load(Ordering::SeqCst) > 0 {
        round += 1;
        let wish = wish(bench, &format!("source {worker} {round}")).await;
        let request_id = Some(request(&format!("submit-{worker}-{round}")));
        let submit = Submit { wish, request_id };
        insist(bench, submit).await;
        let claim = bench.claim_of(&format!("worker-{worker}"), 1);
        let claimed = insist(bench, claim).await;
        let Some(grant) = claimed.grants.first() else { continue };
        wish_blob(bench, &format!("output of {}", grant.job.id)).await;
        let content = format!("output of {}", grant.job.id);
        let verb = Complete { job: grant.job.id, pair: grant.pair, manifest: manifest(&content) };
        insist(bench, verb).await;
        complete.push(grant.job.id);
    }
    complete
}

async fn wish_blob(bench: &Bench<PostgresStore>, content: &str) {
    wish(bench, content).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_crashes_under_load_loses_nothing_that_was_answered() {
    let mut cluster = Cluster::with(&[]);
    let database = cluster.database().await;
    let servers =
        [Arc::new(open(&cluster, &database).await), Arc::new(open(&cluster, &database).await)];
    let running = Arc::new(AtomicU64::new(1));
    let mut workers = Vec::new();
    for worker in 0..6_u64 {
        let server = Arc::clone(&servers[usize::try_from(worker % 2).unwrap()]);
        let running = Arc::clone(&running);
        workers.push(tokio::spawn(async move { work(&server, worker, &running).await }));
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        tokio::task::block_in_place(|| {
            cluster.stop_at_once();
            cluster.go_on();
        });
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    running.store(0, Ordering::SeqCst);
    let mut complete = Vec::new();
    for worker in workers {
        complete.extend(worker.await.unwrap());
    }
    assert!(complete.len() > 20, "{}", complete.len());
    let mut tokens = Vec::new();
    for id in complete {
        let View::Job(Some(job)) = servers[0].store.query(Query::Job(id)).await.unwrap() else {
            panic!("{id} was answered")
        };
        assert_eq!(job.state, palisade_core::job::JobState::Complete);
        assert!(job.attempts.is_sorted_by(|a, b| a.token < b.token));
        tokens.extend(job.attempts.iter().map(|attempt| attempt.token));
    }
    let granted = tokens.len();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), granted, "a token was granted twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_gives_leases_their_time_back_though_renewals_were_not_logged() {
    let mut cluster = Cluster::with(&[]);
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let source = wish(&bench, "a source").await;
    bench.submit(&source).await;
    let grant = bench.grant("alice").await;
    bench.store.run(heartbeat("alice", 1, &[&grant])).await.unwrap();
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        cluster.go_on();
    });
    // Another worker gets nothing: the lease stands, for a whole ttl from now.
    let claim = bench.claim_of("bob", 1);
    let claimed = insist(&bench, claim).await;
    assert!(claimed.grants.is_empty());
    let lease = bench.job(grant.job.id).await.attempts[0].lease;
    let left_ms = lease.deadline.since_ms(bench.store.now());
    assert!((25_000..=30_030).contains(&left_ms), "{left_ms}");
    let beats = bench.store.run(heartbeat("alice", 2, &[&grant])).await.unwrap();
    assert_eq!(beats.leases, [Some(Beat::Held)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_stands_still_with_a_row_does_not_hide_the_others() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let mut jobs = Vec::new();
    for number in 0..3 {
        let wish = wish(&bench, &format!("source {number}")).await;
        jobs.push(bench.submit(&wish).await.job);
    }
    // A server that locked the first job's row, and was stopped there.
    let address = cluster.address(&database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    let lock = format!(
        "SET idle_in_transaction_session_timeout = '5s'; BEGIN; \
         SELECT 1 FROM jobs WHERE id = {} FOR UPDATE",
        jobs[0].0
    );
    client.batch_execute(&lock).await.unwrap();
    let first = bench.claim(&bench.claim_of("alice", 3)).await;
    let granted: Vec<_> = first.grants.iter().map(|grant| grant.job.id).collect();
    assert_eq!(granted, jobs[1..]);
    // The database ends it, and the job is there again: nobody has to do anything.
    let cancel = crate::command::Cancel {
        job: jobs[0],
        which: palisade_core::transition::Which::All,
        request_id: None,
    };
    assert_eq!(bench.store.run(cancel).await.unwrap().withdrawn, 1);
    assert!(driver.await.unwrap().is_err());
    drop(client);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_that_comes_back_draws_no_number_a_second_time() {
    let mut cluster = Cluster::with(&[]);
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let number = async |content: &str| {
        let digest = palisade_core::Digest::of(content.as_bytes());
        let pin = Pin::Until(Timestamp(u64::from(u32::MAX) * 1_000));
        let begin = BeginBlob { digest, pin };
        insist(&bench, begin).await.generation.get()
    };
    number("before the copy").await;
    let copy = cluster.home().join("copy");
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        let mut cp = cluster.plain("cp");
        assert!(cp.arg("-a").arg(cluster.data()).arg(&copy).status().unwrap().success());
        cluster.go_on();
    });
    let mut answered = 0;
    // More than the database logs ahead of its sequence.
    for round in 0..50 {
        answered = number(&format!("after the copy {round}")).await;
    }
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        std::fs::remove_dir_all(cluster.data()).unwrap();
        std::fs::rename(&copy, cluster.data()).unwrap();
        cluster.go_on();
    });
    let drawn = number("after the restore").await;
    assert!(drawn > answered + JUMP / 2, "{drawn} after {answered}");
    // By hand, where nobody could know.
    let standing = raise_tokens(&options(&cluster, &database), 1_000).await.unwrap();
    assert!(standing >= drawn + 1_000);
    assert!(number("after the raise").await > standing);
}
