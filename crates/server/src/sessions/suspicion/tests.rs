use palisade_core::{SessionId, Timestamp};

use super::Suspicion;

const START: u64 = 1_000_000;
/// After the quiet that follows a start.
const SERVING: u64 = START + 3_000;

fn session(number: usize) -> SessionId {
    format!("s{number}").parse().unwrap()
}

/// A server that has been serving for a while, looked at last at `SERVING`.
fn serving(sessions: usize) -> Suspicion {
    let mut suspicion = Suspicion::new(2_000, 3_000, Timestamp(START));
    look_until(&mut suspicion, START, SERVING);
    for number in 0..sessions {
        suspicion.opened(&session(number));
    }
    suspicion
}

/// Looks every 250 ms, as the server does. Answers whom it suspected.
fn look_until(suspicion: &mut Suspicion, from: u64, until: u64) -> Vec<SessionId> {
    let looks = (from..=until).step_by(250).flat_map(|at| suspicion.due(Timestamp(at)));
    looks.map(|(session, _)| session).collect()
}

#[test]
fn a_session_that_is_gone_is_suspected_after_a_while_as_of_its_end() {
    let mut suspicion = serving(1);
    suspicion.broke(&session(0), Timestamp(SERVING));
    assert_eq!(look_until(&mut suspicion, SERVING, SERVING + 1_999), []);
    let suspects = suspicion.due(Timestamp(SERVING + 2_000));
    assert_eq!(suspects, [(session(0), Timestamp(SERVING))]);
    assert_eq!(look_until(&mut suspicion, SERVING + 2_250, SERVING + 9_000), []);
}

#[test]
fn a_session_that_came_back_is_not_suspected() {
    let mut suspicion = serving(1);
    suspicion.broke(&session(0), Timestamp(SERVING));
    look_until(&mut suspicion, SERVING, SERVING + 1_500);
    suspicion.opened(&session(0));
    assert_eq!(look_until(&mut suspicion, SERVING + 1_500, SERVING + 9_000), []);
}

#[test]
fn a_session_with_another_connection_is_not_gone() {
    let mut suspicion = serving(1);
    suspicion.opened(&session(0));
    suspicion.broke(&session(0), Timestamp(SERVING));
    assert!(suspicion.is_connected(&session(0)));
    assert_eq!(look_until(&mut suspicion, SERVING, SERVING + 9_000), []);
}

#[test]
fn a_server_that_has_just_started_suspects_nobody_until_all_had_time_to_come_back() {
    let mut suspicion = Suspicion::new(2_000, 3_000, Timestamp(START));
    for number in 0..2 {
        suspicion.opened(&session(number));
        suspicion.broke(&session(number), Timestamp(START + 100));
    }
    assert_eq!(look_until(&mut suspicion, START, START + 2_999), []);
    suspicion.opened(&session(1));
    // Whoever is really gone is not kept for a whole ttl.
    assert_eq!(look_until(&mut suspicion, START + 3_000, START + 20_000), [session(0)]);
}

#[test]
fn a_server_that_was_stopped_itself_gives_everybody_the_time_to_come_back() {
    let mut suspicion = serving(3);
    suspicion.broke(&session(0), Timestamp(SERVING));
    assert_eq!(suspicion.due(Timestamp(SERVING + 10_000)), []);
    // What breaks just after it woke broke because of the same gap.
    suspicion.broke(&session(1), Timestamp(SERVING + 10_100));
    suspicion.broke(&session(2), Timestamp(SERVING + 10_100));
    assert_eq!(look_until(&mut suspicion, SERVING + 10_250, SERVING + 12_999), []);
    suspicion.opened(&session(1));
    suspicion.opened(&session(2));
    let suspects = look_until(&mut suspicion, SERVING + 13_000, SERVING + 20_000);
    assert_eq!(suspects, [session(0)]);
}

#[test]
fn a_server_that_loses_most_sessions_together_suspects_nobody() {
    let mut suspicion = serving(4);
    for number in 0..3 {
        suspicion.broke(&session(number), Timestamp(SERVING + 300 * number as u64));
    }
    assert_eq!(look_until(&mut suspicion, SERVING + 750, SERVING + 9_000), []);
}

#[test]
fn half_of_the_sessions_or_few_of_them_or_one_by_one_are_suspected() {
    let mut half = serving(4);
    half.broke(&session(0), Timestamp(SERVING));
    half.broke(&session(1), Timestamp(SERVING));
    assert_eq!(look_until(&mut half, SERVING, SERVING + 9_000).len(), 2);

    let mut few = serving(3);
    (0..3).for_each(|number| few.broke(&session(number), Timestamp(SERVING)));
    assert_eq!(look_until(&mut few, SERVING, SERVING + 9_000).len(), 3);

    let mut slowly = serving(5);
    let mut suspected = Vec::new();
    for number in 0..5 {
        let at = SERVING + 2_500 * number as u64;
        slowly.broke(&session(number), Timestamp(at));
        suspected.extend(look_until(&mut slowly, at, at + 2_250));
    }
    assert_eq!(suspected.len(), 5);
}

#[test]
fn what_is_over_is_forgotten() {
    let mut suspicion = serving(3);
    (0..3).for_each(|number| suspicion.broke(&session(number), Timestamp(SERVING)));
    look_until(&mut suspicion, SERVING, SERVING + 9_000);
    assert!(suspicion.connections.is_empty() && suspicion.gone.is_empty());
    assert!(suspicion.ends.is_empty());
}
