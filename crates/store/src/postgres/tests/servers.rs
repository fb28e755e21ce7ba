//! Two servers on one database.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use palisade_core::{Timestamp, history::What, lock::Acquired};

use crate::{
    Store, StoreExt,
    artefacts::Moved,
    command::{ReleaseLock, Submit},
    conformance::{
        Bench, ManualClock,
        bench::BEGINNING,
        locks::{hold, name, wish},
    },
    postgres::PostgresStore,
    query::{Query, View},
};

use super::cluster::Cluster;

type Server = Arc<Bench<PostgresStore>>;

/// Two servers, each a bench of its own; what they make never has the same name.
async fn pair(cluster: &Cluster) -> (Server, Server, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(BEGINNING));
    let database = cluster.database().await;
    let mut servers = Vec::new();
    for number in 0..2_u64 {
        let options = cluster.options(&database, Arc::<ManualClock>::clone(&clock));
        let store = PostgresStore::open(options).await.unwrap();
        let bench = Bench::new("two servers", |_| store);
        for _ in 0..number * 1_000_000 {
            bench.fresh();
        }
        servers.push(Arc::new(bench));
    }
    let second = servers.pop().unwrap();
    (servers.pop().unwrap(), second, clock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_through_two_servers_grant_each_job_once() {
    const JOBS: usize = 300;
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    for _ in 0..JOBS {
        one.new_job().await;
    }
    let mut claimers = Vec::new();
    for (number, server) in [&one, &two, &one, &two, &one, &two].into_iter().enumerate() {
        let server = Arc::clone(server);
        claimers.push(tokio::spawn(async move {
            let mut granted = Vec::new();
            let mut empty = 0;
            // What another transaction has is passed over, so one look is not enough.
            while empty < 3 {
                let claim = server.claim_of(&format!("worker-{number}"), 3);
                let claimed = server.claim(&claim).await;
                empty = if claimed.grants.is_empty() { empty + 1 } else { 0 };
                granted.extend(claimed.grants.into_iter().map(|one| (one.job.id, one.pair.token)));
            }
            granted
        }));
    }
    let mut granted = Vec::new();
    for claimer in claimers {
        granted.extend(claimer.await.unwrap());
    }
    assert_eq!(granted.len(), JOBS);
    assert_eq!(granted.iter().map(|(job, _)| job).collect::<BTreeSet<_>>().len(), JOBS);
    assert_eq!(granted.iter().map(|(_, token)| token).collect::<BTreeSet<_>>().len(), JOBS);
    // The journal has no gaps, and both servers show the same.
    let all = Query::Events { after: 0, limit: usize::MAX };
    let View::Events(first) = one.store.query(all.clone()).await.unwrap() else { panic!() };
    assert_eq!(two.store.query(all).await.unwrap(), View::Events(first.clone()));
    assert!(first.iter().zip(1..).all(|((position, _), expected)| *position == expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_for_each_job_whichever_server_grants() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    let job = one.new_job().await;
    let mut workers = Vec::new();
    for (number, server) in [&one, &two, &one, &two].into_iter().enumerate() {
        let server = Arc::clone(server);
        workers.push(tokio::spawn(async move {
            for _ in 0..25 {
                if let Some(grant) = server.try_grant(&format!("worker-{number}")).await {
                    let release = Bench::<PostgresStore>::release_of(&grant);
                    server.store.run(release).await.unwrap();
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    let View::History(history) = two.store.query(Query::History(job)).await.unwrap() else {
        panic!()
    };
    let granted = history.into_iter().filter_map(|(_, event)| match event.what {
        What::Granted { token, .. } => Some(token),
        _ => None,
    });
    let granted: Vec<_> = granted.collect();
    assert!(granted.len() > 4, "{granted:?}");
    // In the journal's order, which is the order of the commits.
    assert!(granted.is_sorted_by(|a, b| a < b), "{granted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_wish_through_two_servers_makes_one_job() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    for _ in 0..10 {
        let wish = one.wish().await;
        let submits = [&one, &two, &one, &two].map(|server| {
            let (server, wish) = (Arc::clone(server), wish.clone());
            tokio::spawn(async move { server.submit(&wish).await.job })
        });
        let mut jobs = BTreeSet::new();
        for submit in submits {
            jobs.insert(submit.await.unwrap());
        }
        assert_eq!(jobs.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_repeated_at_another_server_gets_its_first_answer() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    let wish = one.wish().await;
    let submit = Submit { wish, request_id: Some("the-same-request".parse().unwrap()) };
    let both = tokio::join!(one.store.run(submit.clone()), two.store.run(submit));
    assert_eq!(both.0.unwrap(), both.1.unwrap());
    let claim = one.claim_of("alice", 2);
    let both = tokio::join!(one.claim(&claim), two.claim(&claim));
    // A job that the other has locked is passed over: one of them may have come back empty.
    let granted = both.0.grants.iter().chain(&both.1.grants).map(|grant| grant.pair);
    let granted: BTreeSet<_> = granted.collect();
    assert_eq!(granted.len(), 1, "{both:?}");
    for server in [&one, &two] {
        let again = server.claim(&claim).await;
        assert_eq!(again.grants.iter().map(|grant| grant.pair).collect::<BTreeSet<_>>(), granted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_what_another_server_committed_in_order() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    let mut news = two.store.changes();
    let mut expected = Vec::new();
    for _ in 0..20 {
        expected.push(one.new_job().await);
        expected.push(two.new_job().await);
    }
    let mut heard = Vec::new();
    while heard.len() < expected.len() {
        let batch = tokio::time::timeout(Duration::from_secs(20), news.recv()).await;
        for event in batch.expect("it is told").unwrap().iter() {
            if matches!(event.what, What::Submitted { .. }) {
                heard.push(event.job().unwrap());
            }
        }
    }
    assert_eq!(heard, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_in_their_order_across_servers() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    let mut held = hold(&one, "door", "first").await;
    let order = [("bob", &two), ("carol", &one), ("dave", &two), ("erin", &one)];
    for (who, server) in order {
        let waits = server.store.run(wish(server, "door", who, 3_600_000)).await.unwrap();
        assert!(matches!(waits, Acquired::Waiting { .. }), "{waits:?}");
    }
    for (who, server) in order {
        // Released at the other server than the one that waits.
        let other = if Arc::ptr_eq(server, &one) { &two } else { &one };
        let release = ReleaseLock { name: name("door"), pair: held };
        other.store.run(release).await.unwrap();
        let token = held.token;
        held = hold(server, "door", who).await;
        assert!(held.token > token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_a_server_that_died_are_passed_over() {
    let cluster = Cluster::start();
    let (one, two, clock) = pair(&cluster).await;
    let held = hold(&one, "door", "first").await;
    let mut gone = wish(&two, "door", "gone", 3_600_000);
    gone.wish.alive_ms = 3_000;
    two.store.run(gone).await.unwrap();
    let here = wish(&one, "door", "here", 3_600_000);
    one.store.run(here).await.unwrap();
    drop(two);
    // Nobody says any more that the first waiter is there.
    for _ in 0..4 {
        clock.advance_ms(1_000);
        one.store.execute(vec![crate::command::Command::Tick]).await;
    }
    one.store.run(ReleaseLock { name: name("door"), pair: held }).await.unwrap();
    let granted = hold(&one, "door", "here").await;
    assert!(granted.token > held.token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_takes_no_lease_away() {
    let cluster = Cluster::start();
    let (one, two, clock) = pair(&cluster).await;
    one.new_job().await;
    let grant = one.grant("alice").await;
    // Forward by an hour, as the database's wall clock may: nobody can tell it from an outage.
    clock.advance_ms(3_600_000);
    assert_eq!(two.try_grant("bob").await, None);
    let lease = two.job(grant.job.id).await.attempts[0].lease;
    assert!(lease.deadline > two.store.now(), "{lease:?}");
    assert!(lease.deadline < two.store.now().plus_ms(31_000), "{lease:?}");
    assert!(two.store.now() >= Timestamp(BEGINNING.0 + 3_600_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_one_store_have_one_place_for_artefacts() {
    let cluster = Cluster::start();
    let (one, two, _) = pair(&cluster).await;
    assert_eq!(one.store.id().await.unwrap(), two.store.id().await.unwrap());
    let (here, there) = tokio::join!(
        one.store.bind_artefacts("here", Moved::No),
        two.store.bind_artefacts("there", Moved::No)
    );
    let bound = here.unwrap();
    assert_eq!(bound, there.unwrap(), "whoever came first");
    assert_eq!(two.store.bind_artefacts("elsewhere", Moved::Yes).await.unwrap(), "elsewhere");
    assert_eq!(one.store.bind_artefacts(&bound, Moved::No).await.unwrap(), "elsewhere");
}
