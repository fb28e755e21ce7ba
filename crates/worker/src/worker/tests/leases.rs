//! What keepers and heartbeats do to a render.

use palisade_api::wire::SessionEvent;
use palisade_core::clock::Clock as _;

use crate::testing::{Bench, Fault, TTL_MS, Verb};

#[tokio::test]
async fn every_second_renewal_reply_may_be_lost_and_the_render_goes_on() {
    let bench = Bench::new();
    bench.server.script(Verb::Heartbeat, |nth| (nth % 2 == 0).then_some(Fault::LoseReply));
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    bench.pass(5 * TTL_MS).await;
    assert_eq!(run.told(), [] as [&str; 0], "it was never frozen");
    run.finish(b"output");
    bench.event("completed").await;
    bench.end(worker).await;
}

#[tokio::test]
async fn one_heartbeat_speaks_for_all_leases_and_seq_rises() {
    let mut bench = Bench::new();
    bench.config.slots = 3;
    let worker = bench.start().await;
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(bench.rendering().await.1);
    }
    bench.pass(TTL_MS).await;
    let beats = bench.server.state().beats.clone();
    let last: Vec<_> = beats.last().unwrap().leases.iter().map(|lease| lease.token).collect();
    assert_eq!(last, tokens);
    assert!(beats.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    bench.end(worker).await;
}

#[tokio::test]
async fn a_server_away_for_less_than_the_grace_freezes_and_thaws_and_the_same_token_completes() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    let all = [Verb::Heartbeat, Verb::Claim];
    bench.server.all(&all, Fault::Away);
    bench.event("frozen").await;
    assert_eq!(run.told(), ["freeze"]);
    bench.pass(2 * TTL_MS).await;
    bench.server.all(&all, None);
    bench.event("thawed").await;
    assert_eq!(run.told(), ["freeze", "thaw"]);
    run.finish(b"output");
    assert_eq!(bench.event("completed").await["token"], token);
    bench.end(worker).await;
}

#[tokio::test]
async fn nothing_is_uploaded_or_completed_while_in_doubt() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    bench.server.all(&[Verb::Heartbeat], Fault::Away);
    bench.event("frozen").await;
    run.finish(b"output");
    bench.event("uploading").await;
    bench.pass(TTL_MS).await;
    assert!(bench.server.state().uploaded.is_empty());
    assert_eq!(bench.count("completing"), 0);
    bench.server.all(&[Verb::Heartbeat], None);
    bench.event("completed").await;
    bench.end(worker).await;
}

#[tokio::test]
async fn a_server_away_for_longer_than_the_grace_aborts_and_hears_of_it_when_it_is_back() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    let all = [Verb::Heartbeat, Verb::Claim];
    bench.server.all(&all, Fault::Away);
    assert_eq!(bench.event("aborted").await["reason"], "doubt_grace_over");
    assert_eq!(run.told(), ["freeze", "kill"]);
    assert_eq!(bench.left().len(), 0);
    bench.server.all(&all, None);
    // It is no longer listed, so it is handed back, and need not lapse.
    bench.until("the grant is handed back", || bench.server.standing(token) == "released").await;
    assert_eq!(bench.server.reported(), (0, 0, 0));
    bench.end(worker).await;
}

#[tokio::test]
async fn a_lost_lease_ends_the_render_and_nothing_is_reported() {
    for (standing, word) in [("superseded", "lost"), ("cancelled", "cancelled")] {
        let bench = Bench::new();
        let worker = bench.start().await;
        let (run, token) = bench.rendering().await;
        bench.server.close(token, standing);
        let aborted = bench.event("aborted").await;
        assert_eq!(aborted["reason"], word);
        assert_eq!(run.told(), ["kill"]);
        assert_eq!(bench.left().len(), 0);
        assert_eq!(bench.server.reported(), (0, 0, 0));
        bench.end(worker).await;
    }
}

#[tokio::test]
async fn the_session_tells_of_a_cancel_at_once() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    bench.until("the session is open", || !bench.server.state().sessions.is_empty()).await;
    // No heartbeat could tell: they do not arrive.
    bench.server.all(&[Verb::Heartbeat], Fault::Away);
    let job = bench.server.job_of(token);
    let at = bench.clock.now();
    bench.server.say(&SessionEvent::Cancelled { job, token });
    assert_eq!(bench.event("aborted").await["reason"], "cancelled");
    assert_eq!(run.told(), ["kill"]);
    assert!(bench.clock.now().since_ms(at) < TTL_MS / 3, "sooner than any heartbeat");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_session_that_opens_late_asks_at_once_for_what_was_told_before() {
    let mut bench = Bench::new();
    bench.config.ttl_ms = 3_600_000;
    bench.server.all(&[Verb::Session], Fault::Away);
    let worker = bench.start().await;
    let (_run, token) = bench.rendering().await;
    bench.server.close(token, "cancelled");
    bench.pass(20_000).await;
    assert_eq!(bench.count("aborted"), 0);
    bench.server.all(&[Verb::Session], None);
    let at = bench.clock.now();
    assert_eq!(bench.event("aborted").await["reason"], "cancelled");
    assert!(bench.clock.now().since_ms(at) < 10_000, "as soon as the session is open");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_session_that_speaks_of_other_jobs_changes_nothing() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    bench.until("the session is open", || !bench.server.state().sessions.is_empty()).await;
    let reason = "superseded".to_owned();
    bench.server.say(&SessionEvent::Lost { job: "j1".to_owned(), token, reason });
    bench.pass(TTL_MS).await;
    assert_eq!(run.told(), [] as [&str; 0]);
    bench.end(worker).await;
}

#[tokio::test]
async fn a_broken_session_renews_at_once_over_a_new_connection() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (_run, _) = bench.rendering().await;
    bench.until("the session is open", || !bench.server.state().sessions.is_empty()).await;
    // The heartbeat that is on its way hangs in the connection that is dead.
    bench.server.all(&[Verb::Heartbeat], Fault::Hang);
    let before = bench.server.state().beats.len();
    bench.until("a heartbeat hangs", || bench.server.state().beats.len() > before).await;
    bench.server.all(&[Verb::Heartbeat], None);
    let (beats, connections) = {
        let state = bench.server.state();
        (state.beats.len(), state.connections)
    };
    let at = bench.clock.now();
    bench.server.break_sessions();
    bench.until("it renews", || bench.server.state().beats.len() > beats).await;
    assert!(bench.clock.now().since_ms(at) <= 200, "at once");
    assert!(bench.server.state().connections > connections, "over a new connection");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_pause_freezes_first_and_is_reported_and_what_was_lost_meanwhile_is_ended() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    bench.server.close(token, "superseded");
    bench.clock.jump(2 * TTL_MS);
    assert_eq!(bench.event("aborted").await["reason"], "lost");
    assert_eq!(run.told(), ["freeze", "kill"]);
    assert_eq!(bench.event("paused").await["token"], token);
    let told = |state: &crate::testing::State| {
        state.beats.iter().flat_map(|beat| beat.pauses.clone()).collect::<Vec<_>>()
    };
    let pauses = told(&bench.server.state());
    let [pause] = &pauses[..] else { panic!("{pauses:?}") };
    assert_eq!(pause.token, token);
    assert!((2 * TTL_MS..3 * TTL_MS).contains(&pause.pause_ms), "{pause:?}");
    bench.end(worker).await;
}

#[tokio::test]
async fn a_pause_after_which_the_lease_is_still_held_is_thawed() {
    let bench = Bench::new();
    let worker = bench.start().await;
    let (run, _) = bench.rendering().await;
    bench.clock.jump(2 * TTL_MS);
    bench.event("thawed").await;
    assert_eq!(run.told(), ["freeze", "thaw"]);
    run.finish(b"output");
    bench.event("completed").await;
    bench.end(worker).await;
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_asked_again_under_its_id_and_gets_the_same_grant() {
    let bench = Bench::new();
    bench.server.script(Verb::Claim, |nth| match nth {
        0 => Some(Fault::LoseReply),
        1 | 2 => Some(Fault::Away),
        _ => None,
    });
    let worker = bench.start().await;
    let (run, token) = bench.rendering().await;
    {
        let state = bench.server.state();
        assert_eq!(state.attempts.len(), 1, "granted once");
        let ids: Vec<_> = state.claims.iter().map(|claim| &claim.request_id).collect();
        assert!(ids.len() >= 4 && ids[..4].iter().all(|id| *id == ids[0]), "{ids:?}");
        assert!(ids[4..].iter().all(|id| *id != ids[0]), "settled: {ids:?}");
    }
    run.finish(b"output");
    assert_eq!(bench.event("completed").await["token"], token);
    bench.end(worker).await;
}

#[tokio::test]
async fn heartbeats_name_pending_claims_so_that_their_grants_are_not_handed_back() {
    let mut bench = Bench::new();
    bench.config.slots = 2;
    let worker = bench.start().await;
    let (_first, _) = bench.rendering().await;
    // The second claim is granted and its answer delayed past several heartbeats.
    bench.server.script(Verb::Claim, |nth| (nth == 0).then_some(Fault::LoseReply));
    bench.pass(bench.config.wait_ms + 1_000).await;
    bench.server.submit(&bench.recipe(), b"second");
    let second = bench.run(1).await;
    bench.pass(2 * TTL_MS).await;
    assert_eq!(second.told(), [] as [&str; 0]);
    let beats = bench.server.state().beats.clone();
    assert!(beats.iter().any(|beat| !beat.pending.is_empty()));
    bench.end(worker).await;
}
