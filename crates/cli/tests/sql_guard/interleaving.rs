//! Two holders' transactions, one step of one of them at a time, in every order there is.

use std::collections::VecDeque;

use crate::{
    database::{Database, Holder, Outcome},
    session::Session,
};

/// A step of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begin,
    Guard,
    Write,
    Commit,
    /// A new holder's first act.
    Raise,
    /// Begin, guard and write at once.
    Hold,
    /// The holder's process is killed.
    Die,
}

/// The transaction that a worker runs.
pub(crate) const TRANSACTION: [Step; 4] = [Step::Begin, Step::Guard, Step::Write, Step::Commit];

/// What happened, in its order. Numbers are the actors'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The guard, or the raise, was asked.
    Asked(usize),
    Admitted(usize),
    Refused(usize, String),
    Committed(usize),
    Died(usize),
}

/// All the orders of two actors' turns.
pub(crate) fn orders(first: usize, second: usize) -> Vec<Vec<usize>> {
    if first == 0 || second == 0 {
        let last = usize::from(first == 0);
        return vec![vec![last; first + second]];
    }
    let mut all = Vec::new();
    for (actor, rest) in [(0, orders(first - 1, second)), (1, orders(first, second - 1))] {
        for mut order in rest {
            order.insert(0, actor);
            all.push(order);
        }
    }
    all
}

/// One holder in one run.
pub(crate) struct Actor<'run> {
    pub(crate) holder: Holder,
    pub(crate) steps: &'run [Step],
    pub(crate) session: &'run mut Session,
}

struct State<'run> {
    actor: Actor<'run>,
    left: VecDeque<Step>,
    /// The step that waits for the other holder.
    blocked: Option<Step>,
    /// Turns that came while it waited.
    owed: usize,
    over: bool,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<Event>,
    /// Steps that had to wait for the other holder.
    pub(crate) waits: usize,
    /// Transactions that the database asked to begin again.
    pub(crate) again: usize,
}

/// Runs two holders on one resource in one order.
pub(crate) struct Stage<'run> {
    database: &'run dyn Database,
    monitor: &'run mut Session,
    resource: &'run str,
    states: [State<'run>; 2],
    run: Run,
}

impl<'run> Stage<'run> {
    pub(crate) fn set(
        database: &'run dyn Database,
        monitor: &'run mut Session,
        resource: &'run str,
        actors: [Actor<'run>; 2],
    ) -> Stage<'run> {
        let states = actors.map(|actor| State {
            left: actor.steps.iter().copied().collect(),
            actor,
            blocked: None,
            owed: 0,
            over: false,
        });
        let run = Run { events: Vec::new(), waits: 0, again: 0 };
        Stage { database, monitor, resource, states, run }
    }

    pub(crate) fn play(mut self, order: &[usize]) -> Run {
        for who in order {
            self.turn(*who);
        }
        // What was begun again, or still waits, is played to its end.
        while self.states.iter().any(|state| !state.over) {
            for who in [0, 1] {
                self.turn(who);
            }
        }
        self.run
    }

    fn turn(&mut self, who: usize) {
        let state = &mut self.states[who];
        if state.over {
            return;
        }
        if state.blocked.is_some() {
            state.owed += 1;
            return;
        }
        let step = state.left.pop_front().expect("a holder whose steps are done is over");
        self.step(who, step);
    }

    fn step(&mut self, who: usize, step: Step) {
        if matches!(step, Step::Guard | Step::Raise | Step::Hold) {
            self.run.events.push(Event::Asked(who));
        }
        if step == Step::Die {
            self.states[who].actor.session.die();
            self.run.events.push(Event::Died(who));
            self.end(who);
            return;
        }
        let sql = self.sql(who, step);
        self.states[who].actor.session.send(&sql);
        let other = 1 - who;
        let waiting = usize::from(self.states[other].blocked.is_some());
        loop {
            if let Some(answer) = self.states[who].actor.session.poll() {
                let outcome = self.database.outcome(answer);
                return self.answered(who, step, outcome);
            }
            // With the other one gone for good, whatever is in the way goes by itself.
            let may_wait = !self.states[other].over;
            let count = self.database.waiting(self.monitor);
            if may_wait && count.is_some_and(|count| count > waiting) {
                return self.wait(who, step);
            }
        }
    }

    fn sql(&self, who: usize, step: Step) -> String {
        let (database, holder) = (self.database, self.states[who].actor.holder);
        match step {
            Step::Begin => database.begin().to_owned(),
            Step::Guard => database.guard(self.resource, holder),
            Step::Write => database.write(self.resource, holder),
            Step::Commit => "COMMIT;".to_owned(),
            Step::Raise => database.raise(self.resource, holder),
            Step::Hold => {
                [Step::Begin, Step::Guard, Step::Write].map(|step| self.sql(who, step)).join("\n")
            }
            Step::Die => String::new(),
        }
    }

    fn wait(&mut self, who: usize, step: Step) {
        assert!(self.states[1 - who].blocked.is_none(), "both wait for each other: a deadlock");
        self.states[who].blocked = Some(step);
        self.run.waits += 1;
    }

    fn answered(&mut self, who: usize, step: Step, outcome: Outcome) {
        match outcome {
            Outcome::Done => {
                let events = &mut self.run.events;
                match step {
                    Step::Guard | Step::Hold => events.push(Event::Admitted(who)),
                    Step::Commit => events.push(Event::Committed(who)),
                    Step::Raise => {
                        events.extend([Event::Admitted(who), Event::Committed(who)]);
                    }
                    Step::Begin | Step::Write | Step::Die => {}
                }
                if self.states[who].left.is_empty() {
                    self.end(who);
                } else if matches!(step, Step::Commit | Step::Raise) {
                    self.release(1 - who);
                }
            }
            Outcome::Refused(code) => {
                self.run.events.push(Event::Refused(who, code));
                self.roll_back(who);
                self.end(who);
            }
            Outcome::Again => {
                self.run.again += 1;
                self.roll_back(who);
                let state = &mut self.states[who];
                state.left = state.actor.steps.iter().copied().collect();
                self.release(1 - who);
            }
            Outcome::Busy => self.wait(who, step),
        }
    }

    fn roll_back(&mut self, who: usize) {
        if self.states[who].actor.steps != [Step::Raise] {
            self.states[who].actor.session.rows("ROLLBACK;");
        }
    }

    fn end(&mut self, who: usize) {
        self.states[who].over = true;
        self.release(1 - who);
    }

    /// The other one's transaction has ended: what waited for it goes on, and makes up its turns.
    fn release(&mut self, who: usize) {
        let Some(step) = self.states[who].blocked.take() else { return };
        if self.database.waiting(self.monitor).is_none() {
            // Waiting was an error: the step is made again.
            self.step(who, step);
        } else {
            let answer = self.states[who].actor.session.wait();
            let outcome = self.database.outcome(answer);
            self.answered(who, step, outcome);
        }
        for _ in 0..std::mem::take(&mut self.states[who].owed) {
            self.turn(who);
        }
    }
}

#[test]
fn orders_are_all_there_are() {
    let all = orders(4, 4);
    assert_eq!(all.len(), 70);
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 70);
    assert!(all.iter().all(|order| order.iter().sum::<usize>() == 4));
}
