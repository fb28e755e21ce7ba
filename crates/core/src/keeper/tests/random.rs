//! The keeper under events in any order.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Event {
    Wait(u64),
    Tick(u64),
    /// To a heartbeat that was sent so many ms ago.
    Confirmed(u64),
    Refused(AbortReason),
    Completing,
    Finished,
}

fn events() -> impl Strategy<Value = Event> {
    let reasons = prop_oneof![
        Just(AbortReason::Lost),
        Just(AbortReason::Cancelled),
        Just(AbortReason::UnknownToken)
    ];
    prop_oneof![
        12 => prop_oneof![0..3_000_u64, 0..40_000_u64, 0..200_000_u64].prop_map(Event::Wait),
        20 => any::<u64>().prop_map(Event::Tick),
        8 => prop_oneof![0..3_000_u64, 0..60_000_u64].prop_map(Event::Confirmed),
        1 => reasons.prop_map(Event::Refused),
        1 => Just(Event::Completing),
        1 => Just(Event::Finished),
    ]
}

fn configs() -> impl Strategy<Value = KeeperConfig> {
    let grace = prop_oneof![Just(0_u64), 1..100_000_u64];
    (500..60_000_u64, grace, any::<bool>(), 0..20_000_u64).prop_map(
        |(ttl_ms, doubt_grace_ms, fitting, pause_ms)| {
            let config = KeeperConfig::for_ttl(ttl_ms, doubt_grace_ms);
            if fitting { config } else { KeeperConfig { pause_ms: pause_ms + 1, ..config } }
        },
    )
}

/// What an observer knows, without looking into the keeper.
struct Observer {
    keeper: Keeper,
    config: KeeperConfig,
    now: u64,
    /// The latest instant at which a confirmed request was sent, waits included.
    confirmed_at: u64,
    ticked_at: u64,
    /// When the last pause was over.
    resumed_at: u64,
    frozen: bool,
    aborted: bool,
}

impl Observer {
    fn trusted_until(&self) -> u64 {
        self.confirmed_at + trusted_span_ms(self.config.ttl_ms)
    }

    fn is_paused(&self) -> bool {
        self.now - self.ticked_at > self.config.pause_ms
    }

    fn happen(&mut self, event: &Event) {
        let (now, state) = (at(self.now), self.keeper.state());
        match *event {
            Event::Wait(ms) => self.now += ms,
            Event::Tick(chance) => self.tick(chance),
            Event::Confirmed(ago) => {
                let sent = self.now.saturating_sub(ago);
                if state != State::Lost {
                    self.confirmed_at = self.confirmed_at.max(sent);
                }
                let wanted = self.keeper.confirmed(at(sent), now);
                if !wanted.is_empty() {
                    assert_eq!(wanted, [Action::Thaw]);
                    assert!(self.frozen, "a thaw follows a freeze");
                    assert!(sent >= self.resumed_at && !self.is_paused(), "a fresh answer alone");
                    assert!(self.now < self.trusted_until());
                    self.frozen = false;
                }
            }
            Event::Refused(reason) => {
                let wanted = self.keeper.refused(reason);
                if matches!(state, State::Held | State::Doubt { .. }) {
                    assert_eq!(wanted, [Action::Abort(reason)]);
                    self.aborted = true;
                } else {
                    assert_eq!((wanted, self.keeper.state()), (vec![], state));
                }
            }
            Event::Completing => {
                let may = self.keeper.may_act(now);
                assert_eq!(self.keeper.completing(now), may);
                let expected = if may { State::Completing } else { state };
                assert_eq!(self.keeper.state(), expected);
            }
            Event::Finished => {
                self.keeper.finished();
                self.aborted = true;
            }
        }
    }

    fn tick(&mut self, chance: u64) {
        let (paused, state) = (self.is_paused(), self.keeper.state());
        let gap_ms = self.now - self.ticked_at;
        self.ticked_at = self.now;
        let wanted = self.keeper.tick(at(self.now), chance);
        assert!(self.keeper.wake_at() > at(self.now), "a loop of sleeping and ticking never spins");
        if paused {
            self.resumed_at = self.now;
        }
        if self.aborted {
            assert_eq!(wanted, [], "nothing follows an abort");
            return;
        }
        let over = paused || self.now >= self.trusted_until();
        let freezes = state == State::Held && over;
        assert_eq!(wanted.first() == Some(&Action::Freeze), freezes, "first, and when it must");
        assert_eq!(wanted.contains(&Action::ReportPause(gap_ms)), paused);
        assert!(!wanted.contains(&Action::Thaw));
        if freezes {
            assert!(!self.frozen, "frozen once");
            self.frozen = true;
        }
        let aborts = Action::Abort(AbortReason::DoubtGraceOver);
        if wanted.contains(&aborts) {
            assert!(self.frozen && state != State::Completing, "never while completing");
            assert_eq!(wanted.last(), Some(&aborts));
            self.aborted = true;
        } else if paused || freezes {
            assert_eq!(wanted.last(), Some(&Action::Renew), "it asks at once");
        }
    }

    /// What holds at any instant.
    fn look(&self) {
        let acts = self.keeper.may_act(at(self.now));
        if self.keeper.state() == State::Completing {
            assert!(acts, "a complete is repeated until it is answered");
            return;
        }
        let trusted = self.now < self.trusted_until() && !self.is_paused();
        let holds = self.keeper.state() == State::Held;
        assert_eq!(acts, holds && trusted, "never past what was confirmed, nor after a pause");
        assert!(!(acts && (self.frozen || self.aborted)), "what is frozen does not act");
        assert_eq!(self.aborted, self.keeper.state() == State::Lost);
        assert_eq!(
            self.frozen && !self.aborted,
            matches!(self.keeper.state(), State::Doubt { .. })
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2_000)
    })]

    #[test]
    fn a_keeper_keeps_its_word_whatever_happens(
        config in configs(),
        waited_ms in prop_oneof![Just(0_u64), 0..60_000_u64],
        chance in any::<u64>(),
        events in prop::collection::vec(events(), 1..60),
    ) {
        let now = 1_000_000 + waited_ms;
        let keeper = Keeper::granted(config, at(1_000_000), waited_ms, at(now), chance);
        let mut observer = Observer {
            keeper,
            config,
            now,
            confirmed_at: now - waited_ms.div_ceil(1_000),
            ticked_at: now,
            resumed_at: 0,
            frozen: false,
            aborted: false,
        };
        for event in &events {
            observer.happen(event);
            observer.look();
        }
    }

    /// Ticked when it wants to be and never answered, it asks, and gives up in the end.
    #[test]
    fn a_keeper_that_is_never_answered_gives_up_after_the_trust_and_the_grace(
        config in configs(),
        chance in any::<u64>(),
    ) {
        let mut keeper = Keeper::granted(config, at(0), 0, at(0), chance);
        let mut steps = 0;
        while keeper.state() != State::Lost {
            let now = keeper.wake_at();
            keeper.tick(now, chance.rotate_left(steps % 64));
            steps += 1;
            let longest = trusted_span_ms(config.ttl_ms) + config.doubt_grace_ms;
            prop_assert!(keeper.wake_at() > now, "it never spins");
            prop_assert!(now <= at(longest), "it is ticked in time for what it must do");
        }
        // Not a busy loop either: it sleeps a while between ticks.
        let longest = trusted_span_ms(config.ttl_ms) + config.doubt_grace_ms;
        let nap_ms = (config.pause_ms / 2).clamp(1, config.ttl_ms / 4).min(90);
        prop_assert!(u64::from(steps) <= 8 + 2 * longest.div_ceil(nap_ms));
    }
}
