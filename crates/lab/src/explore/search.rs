//! Breadth first through every schedule of a small world, so that what is found first is shortest.
//!
//! One thread, states in the order in which they were found: the same world gives the same story
//! every time. A library was weighed (stateright): its states must be `Hash`, `Send` and `Sync`,
//! which the real records are not, and it brings a web server along.

use std::{
    collections::{VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

/// A small world.
pub(super) trait Model {
    /// Everything there is at an instant.
    type State: Clone;
    /// One step that somebody or something can take.
    type Action: Clone + std::fmt::Debug;

    /// How it begins.
    fn begin(&self) -> Self::State;
    /// Every step that could be taken now.
    fn actions(&self, state: &Self::State) -> Vec<Self::Action>;
    /// The world after a step. An error is a property that the step violated.
    fn next(&self, state: &Self::State, action: &Self::Action) -> Result<Self::State, String>;
    /// What makes two states the same.
    fn identify(&self, state: &Self::State, into: &mut Fingerprint);
    /// A property that the state violates.
    fn wrong(&self, state: &Self::State) -> Option<String>;
    /// What is wrong when nothing more can happen.
    fn stuck(&self, _state: &Self::State) -> Option<String> {
        None
    }
    /// A step in a person's words.
    fn tell(&self, state: &Self::State, action: &Self::Action) -> String;
}

/// What identifies a state: 128 bits, so that two of a billion states are taken for one with a
/// chance of one in 10^20.
#[derive(Debug)]
pub(super) struct Fingerprint(DefaultHasher, DefaultHasher);

impl Default for Fingerprint {
    fn default() -> Self {
        let mut second = DefaultHasher::new();
        second.write_u8(1);
        Self(DefaultHasher::new(), second)
    }
}

impl Fingerprint {
    /// Takes a part of the state.
    pub(super) fn take(&mut self, part: &impl Hash) {
        part.hash(&mut self.0);
        part.hash(&mut self.1);
    }

    fn done(&self) -> u128 {
        u128::from(self.0.finish()) << 64 | u128::from(self.1.finish())
    }
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Different states.
    pub states: u64,
    /// Steps taken from them.
    pub steps: u64,
    /// The longest of the shortest ways to a state.
    pub depth: u64,
    /// Whether every state was seen.
    pub complete: bool,
    /// The shortest way to a violation.
    pub violation: Option<Violation>,
}

/// A violation, and how it comes about.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// What is violated.
    pub what: String,
    /// The steps, in a person's words.
    pub story: Vec<String>,
}

#[expect(clippy::disallowed_types, reason = "only asked whether it has something, never iterated")]
type Seen = std::collections::HashSet<u128>;

struct Search<'m, M: Model> {
    model: &'m M,
    seen: Seen,
    /// How each state was reached: from which, by which step.
    ways: Vec<Option<(usize, M::Action)>>,
    waiting: VecDeque<(usize, u64, M::State)>,
    outcome: Outcome,
}

/// Searches until everything was seen, something is violated, or `states_max` were seen.
pub(super) fn search<M: Model>(model: &M, states_max: u64) -> Outcome {
    let outcome = Outcome { states: 0, steps: 0, depth: 0, complete: false, violation: None };
    let mut search = Search {
        model,
        seen: Seen::default(),
        ways: Vec::new(),
        waiting: VecDeque::new(),
        outcome,
    };
    search.add(model.begin(), None, 0);
    while let Some((index, depth, state)) = search.waiting.pop_front() {
        search.outcome.depth = depth;
        if let Some(what) = search.expand(index, depth, &state) {
            search.outcome.violation = Some(what);
            return search.outcome;
        }
        if search.outcome.states >= states_max {
            return search.outcome;
        }
    }
    search.outcome.complete = true;
    search.outcome
}

impl<M: Model> Search<'_, M> {
    fn expand(&mut self, index: usize, depth: u64, state: &M::State) -> Option<Violation> {
        let actions = self.model.actions(state);
        let mut moved = false;
        for action in actions {
            self.outcome.steps += 1;
            match self.model.next(state, &action) {
                Err(what) => return Some(self.violation(index, Some(action), what)),
                Ok(next) => {
                    if let Some(what) = self.model.wrong(&next) {
                        return Some(self.violation(index, Some(action), what));
                    }
                    moved |= self.add(next, Some((index, action)), depth + 1);
                }
            }
        }
        // Steps that lead back to what was seen are a way on, too, unless all lead nowhere else.
        let stuck = if moved { None } else { self.stuck(state) };
        stuck.map(|what| self.violation(index, None, what))
    }

    /// What is wrong with a state from which no step leads to another.
    fn stuck(&self, state: &M::State) -> Option<String> {
        let what = self.model.stuck(state)?;
        let identity = self.identity(state);
        let leads_on = self.model.actions(state).iter().any(|action| {
            let next = self.model.next(state, action);
            next.is_ok_and(|next| self.identity(&next) != identity)
        });
        (!leads_on).then_some(what)
    }

    fn identity(&self, state: &M::State) -> u128 {
        let mut fingerprint = Fingerprint::default();
        self.model.identify(state, &mut fingerprint);
        fingerprint.done()
    }

    fn add(&mut self, state: M::State, way: Option<(usize, M::Action)>, depth: u64) -> bool {
        if !self.seen.insert(self.identity(&state)) {
            return false;
        }
        self.outcome.states += 1;
        self.ways.push(way);
        self.waiting.push_back((self.ways.len() - 1, depth, state));
        true
    }

    /// The way to a state, told from the beginning.
    fn violation(&self, mut index: usize, last: Option<M::Action>, what: String) -> Violation {
        let mut actions: Vec<_> = last.into_iter().collect();
        while let Some((from, action)) = &self.ways[index] {
            actions.push(action.clone());
            index = *from;
        }
        let mut state = self.model.begin();
        let mut story = Vec::new();
        for action in actions.iter().rev() {
            story.push(self.model.tell(&state, action));
            match self.model.next(&state, action) {
                Ok(next) => state = next,
                Err(_) => break,
            }
        }
        Violation { what, story }
    }
}
