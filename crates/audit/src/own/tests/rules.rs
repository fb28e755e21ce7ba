//! Histories that the rules of a lock write themselves, at random: in good order they yield
//! nothing, and of one that stood still they tell that and no more.

use palisade_core::{
    Digest, LeaseId,
    history::{Event, Subject, What},
    lease::{Moment, Pair},
    lock::{Acquire, Acquired, Lock, LockApplied, LockEvent, LockGrant, acquire, release, tick},
};
use proptest::prelude::*;

use super::*;

const TTL_MS: u64 = 30_000;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Idle,
    Waits,
    Holds(Pair),
    /// It stands still, and does not know of it.
    Still(Pair),
    /// Nobody hears of it again.
    Dead,
}

struct Client {
    name: String,
    state: State,
    wishes: u64,
}

/// A lock with its clients, and the journal of what happens.
struct World {
    lock: Lock,
    grants: Vec<LockGrant>,
    drawn: u64,
    now_ms: u64,
    clients: Vec<Client>,
    journal: Vec<Event>,
}

impl World {
    fn new() -> Self {
        let clients =
            (0..5).map(|index| Client { name: format!("c{index}"), state: State::Idle, wishes: 0 });
        let lock = Lock::new("studio".parse().expect("a name"));
        let (grants, journal) = (Vec::new(), Vec::new());
        let clients = clients.collect();
        Self { lock, grants, drawn: 0, now_ms: 1_000_000, clients, journal }
    }

    /// The journal for a person's eyes.
    fn told(&self) -> String {
        let lines = (1..).zip(&self.journal).map(|(position, event): (u64, _)| {
            format!("{position} {} {} {}\n", event.at.0, event.subject, event.what)
        });
        lines.collect()
    }

    fn moment(&self) -> Moment {
        Moment { at: Timestamp(self.now_ms), life: 1 }
    }

    fn draw(&mut self) -> Number {
        self.drawn += 1;
        number(self.drawn)
    }

    fn note(&mut self, subject: Subject, what: What) {
        self.journal.push(Event { at: Timestamp(self.now_ms), subject, what });
    }

    fn of_lock(&self) -> Subject {
        Subject::Lock(self.lock.name.clone())
    }

    fn follow<A>(&mut self, applied: LockApplied<A>) -> A {
        for event in applied.events {
            if let LockEvent::Granted(held) = &event {
                let pair = Pair { token: held.token, lease_id: held.lease_id };
                self.grants.push(LockGrant {
                    name: self.lock.name.clone(),
                    pair,
                    holder: held.holder.clone(),
                    request_id: held.request_id.clone(),
                    closed: None,
                });
                let name = held.holder.to_string();
                let waits = self.clients.iter_mut().find(|client| client.name == name);
                waits.expect("it asked").state = State::Holds(pair);
            }
            let subject = self.of_lock();
            self.note(subject, event.into());
        }
        self.lock = applied.lock;
        applied.answer
    }

    fn open(&self, pair: Pair) -> bool {
        self.lock.holding.as_ref().is_some_and(|held| held.token == pair.token)
    }

    /// Time passes: who is well renews, and the store serves who waits.
    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        let moment = self.moment();
        let well = |client: &Client, token| matches!(client.state, State::Holds(pair) if pair.token == token);
        if let Some(held) = &mut self.lock.holding
            && self.clients.iter().any(|client| well(client, held.token))
        {
            held.lease = held.lease.renewed(moment);
        }
        let fresh = self.draw();
        let applied = tick(self.lock.clone(), fresh, moment);
        self.follow(applied);
    }

    fn ask(&mut self, index: usize, wait_ms: u64) {
        let fresh = self.draw();
        let client = &mut self.clients[index];
        client.wishes += 1;
        let asked = Acquire {
            holder: client.name.parse().expect("a name"),
            ttl_ms: TTL_MS,
            wait_ms,
            request_id: format!("{}-{}", client.name, client.wishes).parse().expect("an id"),
            lease_id: LeaseId(u128::from(fresh.get())),
            alive_ms: wait_ms.max(1),
        };
        client.state = State::Waits;
        let applied = acquire(self.lock.clone(), &asked, None, fresh, self.moment());
        let answer = self.follow(applied.expect("a new wish is answered"));
        if matches!(answer, Acquired::Held { .. }) {
            self.clients[index].state = State::Idle;
        }
    }

    fn refused(&mut self, subject: Subject, verb: &str, pair: Pair, code: &str) {
        let (verb, code, message) = (verb.to_owned(), code.to_owned(), "it is over".to_owned());
        self.note(subject, What::Refused { verb, token: pair.token, code, message });
    }

    fn write(&mut self, pair: Pair) {
        let key = Subject::Object("films/latest".parse().expect("a key"));
        if !self.open(pair) {
            return self.refused(key, "put", pair, "stale_token");
        }
        let (version, digest) = (self.draw(), Some(Digest::of(b"film")));
        self.note(key, What::ObjectWritten { token: pair.token, op: 1, version, digest });
    }

    fn give_up(&mut self, index: usize, pair: Pair) {
        let fresh = self.draw();
        let grant = self.grants.iter().find(|grant| grant.pair == pair).cloned();
        let applied = release(self.lock.clone(), grant.as_ref(), &pair, fresh, self.moment());
        self.clients[index].state = State::Idle;
        self.follow(applied.expect("it holds it"));
    }

    /// It wakes, writes, is refused, hears that its lock is lost, and tidies up.
    fn wake(&mut self, index: usize, pair: Pair) {
        self.write(pair);
        self.now_ms += 300;
        let lock = self.of_lock();
        self.refused(lock.clone(), "renew", pair, "lease_lost");
        self.refused(lock, "release", pair, "lease_lost");
        self.clients[index].state = State::Idle;
    }

    fn act(&mut self, index: usize, action: u8, may_stop: bool) {
        match (self.clients[index].state.clone(), action) {
            (State::Idle, 0..=4) => self.ask(index, 600_000),
            (State::Idle, 5) => self.ask(index, 0),
            (State::Holds(pair), 0..=3) => self.write(pair),
            (State::Holds(pair), 4..=6) => self.give_up(index, pair),
            (State::Holds(_), 7) => {
                self.clients[index].state = State::Dead;
                let name = format!("c{}", self.clients.len());
                self.clients.push(Client { name, state: State::Idle, wishes: 0 });
            }
            (State::Holds(pair), 8) if may_stop => self.clients[index].state = State::Still(pair),
            (State::Still(pair), 0..=4) if !self.open(pair) => self.wake(index, pair),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(ProptestConfig::default().cases.max(300))
    })]

    #[test]
    fn what_the_rules_write_is_judged_as_it_was(
        steps in proptest::collection::vec((0..9_000_u64, 0..64_usize, 0..10_u8), 1..250),
        may_stop in any::<bool>(),
    ) {
        let mut world = World::new();
        let mut woken: Vec<String> = Vec::new();
        for (ms, client, action) in steps {
            world.pass(ms);
            let index = client % world.clients.len();
            let still = matches!(world.clients[index].state, State::Still(_));
            world.act(index, action, may_stop);
            if still && world.clients[index].state == State::Idle {
                woken.push(world.clients[index].name.clone());
            }
        }
        let found = findings(&world.journal);
        for finding in &found {
            let expected = matches!(finding.kind, Kind::Pause | Kind::Overlap | Kind::LateEffect);
            prop_assert!(expected && finding.cause == Cause::Pause, "{finding:#?} {}", world.told());
            prop_assert!(woken.contains(&finding.workers[0]), "{woken:?} {finding:#?}");
            prop_assert_ne!(finding.landed, Some(true), "{:#?}", finding);
        }
        for kind in [Kind::Pause, Kind::LateEffect] {
            let count = found.iter().filter(|finding| finding.kind == kind).count();
            prop_assert_eq!(count, woken.len(), "{:?} of {:?}: {:#?}", kind, woken, found);
        }
    }
}
