//! The heartbeat and a runtime that does nothing else any more.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::testing::{Bench, TTL_MS};

const MAIN_THREADS: usize = 2;

/// Blocks every thread of the main runtime for as long as `work` takes on a runtime of its own.
fn while_blocked(main: &tokio::runtime::Handle, work: impl Future<Output = ()>) {
    let all_blocked = Arc::new(Barrier::new(MAIN_THREADS + 1));
    let over = Arc::new(AtomicBool::new(false));
    for _ in 0..MAIN_THREADS {
        let (all_blocked, over) = (Arc::clone(&all_blocked), Arc::clone(&over));
        main.spawn(async move {
            all_blocked.wait();
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
    all_blocked.wait();
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(work);
    over.store(true, Ordering::Relaxed);
}

#[test]
fn heartbeats_go_on_while_every_thread_of_the_main_runtime_is_blocked_for_two_ttls() {
    let main = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(MAIN_THREADS)
        .enable_all()
        .build()
        .unwrap();
    let bench = Arc::new(Bench::new());
    let (worker, run) = main.block_on({
        let bench = Arc::clone(&bench);
        async move {
            let worker = bench.start().await;
            let (run, _) = bench.rendering().await;
            (worker, run)
        }
    });
    let before = bench.server.state().beats.len();
    while_blocked(main.handle(), bench.pass(2 * TTL_MS));
    let beats = bench.server.state().beats.len() - before;
    assert!(beats >= 5, "a heartbeat each third of a ttl, but there were {beats}");
    assert_eq!(run.told(), [] as [&str; 0], "never in doubt");
    main.block_on(async {
        run.finish(b"output");
        bench.event("completed").await;
        bench.end(worker).await;
    });
}

#[test]
fn a_lost_lease_kills_the_render_even_while_the_main_runtime_is_blocked() {
    let main = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(MAIN_THREADS)
        .enable_all()
        .build()
        .unwrap();
    let bench = Arc::new(Bench::new());
    let (worker, run, token) = main.block_on(async {
        let worker = bench.start().await;
        let (run, token) = bench.rendering().await;
        (worker, run, token)
    });
    let killed = AtomicUsize::new(0);
    while_blocked(main.handle(), async {
        bench.server.close(token, "superseded");
        bench.until("it is killed", || run.told().contains(&"kill")).await;
        killed.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(killed.load(Ordering::Relaxed), 1);
    main.block_on(async {
        assert_eq!(bench.event("aborted").await["reason"], "lost");
        bench.end(worker).await;
    });
}
