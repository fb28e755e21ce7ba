//! A streaming standby: it is looked at while it is one, and promoted after commits were lost.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use palisade_core::{Refusal, job::JobState, lease::Pair, transition::Beat};
use tokio::{net::UnixListener, sync::broadcast::Receiver};

use crate::{
    Failure, Store, StoreExt,
    command::{Complete, Grant, RenewLock},
    conformance::{
        Bench,
        bench::{heartbeat, manifest},
        locks::{self, hold, name},
    },
    events::Batch,
    postgres::{Address, JUMP, OpenError, PostgresOptions, PostgresStore, address::Purpose},
    query::{Query, View},
};

use super::{
    cluster::Cluster,
    faults::{Boottime, insist, wish},
};

type Server = Bench<PostgresStore>;

/// The address of whichever of the two is the primary.
fn address(database: &str, hosts: [&Cluster; 2]) -> Address {
    let [first, second] = hosts.map(|cluster| cluster.home().display().to_string());
    let url = format!(
        "postgres:///{database}?host={first},{second}&user=postgres&target_session_attrs=read-write"
    );
    Address::parse(&url).unwrap()
}

async fn open(address: &Address) -> Result<Server, OpenError> {
    let options = PostgresOptions::new(address.clone(), Arc::new(Boottime));
    PostgresStore::open(options).await.map(|store| Bench::new("a standby", |_| store))
}

/// A job, and its only grant.
async fn granted(bench: &Server, source: &str, worker: &str) -> Grant {
    let wished = wish(bench, source).await;
    bench.submit(&wished).await;
    claim(bench, worker).await
}

/// Claims the only job that waits.
async fn claim(bench: &Server, worker: &str) -> Grant {
    insist(bench, bench.claim_of(worker, 1)).await.grants.remove(0)
}

async fn complete(bench: &Server, grant: &Grant) -> Result<(), Failure> {
    let content = format!("output of {}", grant.job.id);
    wish(bench, &content).await;
    let verb = Complete { job: grant.job.id, pair: grant.pair, manifest: manifest(&content) };
    bench.store.run(verb).await.map(drop)
}

async fn renew(bench: &Server, lock: &str, pair: Pair) -> Result<(), Failure> {
    bench.store.run(RenewLock { name: name(lock), pair }).await.map(drop)
}

fn is_unknown(answer: &Result<(), Failure>) -> bool {
    matches!(answer, Err(Failure::Refused(Refusal::UnknownToken { .. })))
}

/// Asks until the answer says why nothing is written.
async fn until_it_takes_no_writes(bench: &Server) -> String {
    loop {
        match bench.store.run(locks::wish(bench, "probe", "whoever", 0)).await {
            Err(Failure::Unavailable(why)) if why.contains("takes no writes") => return why,
            Err(Failure::Refused(refusal)) => panic!("refused: {refusal}"),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Waits until whoever listens is told to look for itself.
async fn told_to_look(news: &mut Receiver<Batch>) {
    let told = async { while !news.recv().await.unwrap().is_empty() {} };
    tokio::time::timeout(Duration::from_secs(30), told).await.expect("it is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_that_had_not_got_the_last_commits_is_served_on() {
    let mut primary = Cluster::start();
    let database = primary.database().await;
    let mut standby = primary.standby();
    let address = address(&database, [&primary, &standby]);
    let (bench, other) = (open(&address).await.unwrap(), open(&address).await.unwrap());
    let mut news = [bench.store.changes(), other.store.changes()];
    let kept = granted(&bench, "kept", "alice").await;
    let done = granted(&bench, "done", "carol").await;
    bench.store.run(heartbeat("alice", 1, &[&kept])).await.unwrap();
    let door = hold(&bench, "door", "dave").await;
    let later = wish(&bench, "later").await;
    let later = bench.submit(&later).await.job;
    primary.replicated_to(&standby).await;
    tokio::task::block_in_place(|| standby.stop_at_once());
    // What the standby does not get: a completion, more numbers than a sequence logs ahead, grants.
    complete(&bench, &done).await.unwrap();
    for number in 0..50 {
        wish(&bench, &format!("more {number}")).await;
    }
    let lost = claim(&other, "bob").await;
    let window = hold(&bench, "window", "erin").await;
    tokio::task::block_in_place(|| {
        primary.stop_at_once();
        standby.go_on();
    });
    // It is not the primary yet, and that is what everybody is told.
    let refused = open(&address).await.map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
    assert!(refused.to_string().contains("standby, still in recovery"), "{refused}");
    assert!(until_it_takes_no_writes(&bench).await.contains("standby, still in recovery"));
    let looked = bench.store.query(Query::Job(later)).await;
    assert!(matches!(looked, Err(Failure::Unavailable(_))), "{looked:?}");
    standby.promote().await;

    let won = claim(&bench, "frank").await;
    assert_eq!((won.job.id, lost.job.id), (later, later));
    assert!(won.pair.token.get() > window.token.get() + JUMP / 2, "{won:?} after {window:?}");
    for news in &mut news {
        told_to_look(news).await;
    }
    // What was lost is unknown, wherever it is asked for.
    for server in [&bench, &other] {
        let refused = complete(server, &lost).await;
        assert!(is_unknown(&refused), "{refused:?}");
        let refused = renew(server, "window", window).await;
        assert!(is_unknown(&refused), "{refused:?}");
    }
    let again = locks::hold_anew(&bench, "window", "grace").await;
    // What was not logged is made again, and what was replicated goes on.
    let View::Leases(held) = other.store.query(Query::Leases).await.unwrap() else { panic!() };
    let held: BTreeSet<_> = held.iter().map(|lease| lease.token).collect();
    let grants = [&kept, &done, &won];
    assert_eq!(held, grants.map(|grant| grant.pair.token).into());
    assert_eq!(standby.ask(&database, "SELECT count(*)::text FROM alive").await, "1");
    assert!(insist(&other, other.claim_of("heidi", 9)).await.grants.is_empty());
    let beats = other.store.run(heartbeat("alice", 2, &[&kept])).await.unwrap();
    assert_eq!(beats.leases, [Some(Beat::Held)]);
    renew(&other, "door", door).await.unwrap();
    for grant in grants {
        complete(&bench, grant).await.unwrap();
        assert_eq!(other.job(grant.job.id).await.state, JobState::Complete);
    }
    let drawn = [kept.pair, done.pair, door, lost.pair, window, won.pair, again];
    assert_eq!(drawn.map(|pair| pair.token).into_iter().collect::<BTreeSet<_>>().len(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_comes_late_to_a_fail_over_is_told_that_the_journal_is_another_one() {
    let mut primary = Cluster::start();
    let database = primary.database().await;
    let mut standby = primary.standby();
    let address = address(&database, [&primary, &standby]);
    let bench = open(&address).await.unwrap();
    // It does nothing by itself.
    let late = PostgresOptions::new(address.clone(), Arc::new(Boottime));
    let late = crate::postgres::open::engine(&late).await.unwrap();
    primary.replicated_to(&standby).await;
    tokio::task::block_in_place(|| standby.stop_at_once());
    let ask = async |lock: &str| {
        let wish = locks::wish(&bench, lock, "whoever", 0);
        late.apply_batch(vec![wish.into()]).await.answers.remove(0)
    };
    ask("lost").await.unwrap();
    let seen = late.news.position();
    assert!(seen > 0);
    tokio::task::block_in_place(|| {
        primary.stop_at_once();
        standby.go_on();
    });
    standby.promote().await;
    // The others have gone on, past all that it has seen.
    insist(&bench, locks::wish(&bench, "first", "erin", 0)).await;
    for number in 0..seen {
        locks::hold_anew(&bench, &format!("more-{number}"), "erin").await;
    }
    let mut news = late.news.listen();
    while ask("next").await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    told_to_look(&mut news).await;
    assert!(late.news.position() > seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_takes_no_writes_any_more_is_left_for_the_one_that_does() {
    let primary = Cluster::start();
    let database = primary.database().await;
    let mut standby = primary.standby();
    let bench = open(&address(&database, [&primary, &standby])).await.unwrap();
    let door = hold(&bench, "door", "dave").await;
    primary.replicated_to(&standby).await;
    // Its connections stay whole.
    primary.sql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on").await;
    primary.sql("postgres", "SELECT pg_reload_conf()").await;
    until_it_takes_no_writes(&bench).await;
    standby.promote().await;
    let window = insist(&bench, locks::wish(&bench, "window", "erin", 0)).await;
    let palisade_core::lock::Acquired::Granted(window) = window else { panic!("{window:?}") };
    assert!(window.token.get() > door.token.get() + JUMP / 2, "{window:?} after {door:?}");
    let there = "SELECT count(*)::text FROM locks WHERE name = 'window'";
    assert_eq!(standby.ask(&database, there).await, "1");
    renew(&bench, "door", door).await.unwrap();
    // Notifications are heard from there too.
    let heard = "SELECT (count(*) > 0)::text FROM pg_stat_activity \
                 WHERE query LIKE '%LISTEN palisade%' AND pid <> pg_backend_pid()";
    while standby.ask(&database, heard).await != "true" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_read_only_for_a_while_is_served_again() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let bench = open(&cluster.address(&database)).await.unwrap();
    let door = hold(&bench, "door", "dave").await;
    cluster.sql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on").await;
    cluster.sql("postgres", "SELECT pg_reload_conf()").await;
    until_it_takes_no_writes(&bench).await;
    let refused = open(&cluster.address(&database)).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("set to be read-only"), "{refused}");
    // Longer than a gap in the clock's records: it has to be minded first.
    tokio::time::sleep(Duration::from_millis(crate::postgres::GAP_MS + 500)).await;
    until_it_takes_no_writes(&bench).await;
    cluster.sql("postgres", "ALTER SYSTEM RESET default_transaction_read_only").await;
    cluster.sql("postgres", "SELECT pg_reload_conf()").await;
    let window = insist(&bench, locks::wish(&bench, "window", "erin", 0)).await;
    let palisade_core::lock::Acquired::Granted(window) = window else { panic!("{window:?}") };
    // Nothing was lost, so nothing jumps.
    assert!(window.token.get() < door.token.get() + JUMP / 2, "{window:?} after {door:?}");
    renew(&bench, "door", door).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_says_nothing_is_passed_over_and_not_asked_first_again() {
    let cluster = Cluster::start();
    let folder = tempfile::tempdir().unwrap();
    // As a stopped machine does: the connection is taken, and nothing comes.
    let mute = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = mute.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            open.push(connection);
        }
    });
    let (first, second) = (folder.path().display(), cluster.home().display());
    let url = format!("postgres:///postgres?host={first},{second}&user=postgres");
    let address = Address::parse(&url).unwrap();
    for purpose in [Purpose::Write, Purpose::Write, Purpose::Read] {
        let (client, connection) = address.connect(purpose).await.unwrap();
        let driver = tokio::spawn(connection);
        assert_eq!(client.query_one("SELECT 1", &[]).await.unwrap().get::<_, i32>(0), 1);
        drop(client);
        driver.await.unwrap().unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
