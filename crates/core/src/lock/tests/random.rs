//! Whatever is asked in whatever order: one holder, rising tokens, nobody overtaken, nobody who
//! has gone served.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Ask(u8, u64),
    Release(u8),
    Renew(u8),
    Leave(u8),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..5u8, prop_oneof![Just(0), Just(3_000), Just(50_000)])
            .prop_map(|(who, wait_ms)| Step::Ask(who, wait_ms)),
        3 => (0..5u8).prop_map(Step::Release),
        1 => (0..5u8).prop_map(Step::Renew),
        1 => (0..5u8).prop_map(Step::Leave),
        2 => (1..12_000u64).prop_map(Step::Pass),
    ]
}

fn play(scene: &mut Scene, step: &Step) {
    let name = |who: u8| format!("w{who}");
    match step {
        Step::Ask(who, wait_ms) => {
            scene.ask(&name(*who), *wait_ms);
        }
        Step::Release(who) | Step::Renew(who) => {
            let newest = scene.grants.iter().rev().find(|g| g.holder.as_str() == name(*who));
            let Some(pair) = newest.map(|grant| grant.pair) else { return };
            let open = scene.lock.holding.as_ref().is_some_and(|held| held.token == pair.token);
            let released = matches!(step, Step::Release(_));
            let done = if released { scene.release(&pair) } else { scene.renew(&pair).map(drop) };
            assert!(done.is_ok() || !open, "its holder may: {done:?}");
        }
        Step::Leave(who) => scene.leave(&name(*who)),
        Step::Pass(ms) => {
            scene.now += ms;
            scene.tick();
        }
    }
}

proptest! {
    #[test]
    fn nobody_is_overtaken_and_every_token_rises(steps in prop::collection::vec(step(), 1..60)) {
        let mut scene = Scene::new();
        for step in &steps {
            let (seen, waiting) = (scene.events.len(), scene.lock.waiters.clone());
            play(&mut scene, step);
            let open = scene.grants.iter().filter(|grant| grant.closed.is_none()).count();
            prop_assert_eq!(open, usize::from(scene.lock.holding.is_some()));
            prop_assert!(scene.lock.waiters.is_empty() || scene.lock.holding.is_some());
            prop_assert!(scene.lock.waiters.is_sorted_by_key(|waiter| waiter.ticket));
            let mut left = Vec::new();
            for event in &scene.events[seen..] {
                match event {
                    LockEvent::Left { ticket, .. } => left.push(*ticket),
                    LockEvent::Granted(held) => {
                        let overtaken = waiting.iter().find(|waiter| {
                            waiter.ticket < held.ticket && !left.contains(&waiter.ticket)
                                && scene.lock.waiters.contains(waiter)
                        });
                        prop_assert_eq!(overtaken, None, "{:?}", step);
                    }
                    LockEvent::Closed { .. } | LockEvent::Waiting(_) => {}
                }
            }
        }
        prop_assert!(scene.grants.is_sorted_by(|a, b| a.pair.token < b.pair.token));
    }
}
