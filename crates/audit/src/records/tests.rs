use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, LeaseId, Number, Timestamp,
    history::{Event, What},
    job::{CloseReason, Completion, DeadLetter, Job, JobState},
    lease::{Moment, Pair},
    manifest::{Manifest, Output},
    retry::RetryPolicy,
    spec::Spec,
    transition::{self, Claimant, Fresh, Present, Wish},
};

use super::{Checker, Rule, Violation};

/// The records of a small store, and its journal.
struct Store {
    jobs: Vec<Job>,
    journal: Vec<Event>,
    counter: u64,
    now_ms: u64,
}

fn number(value: u64) -> Number {
    Number::new(value).expect("a small number")
}

impl Store {
    /// One job that was completed by its second attempt, one that runs, one that waits, one that
    /// was cancelled.
    fn lived_in() -> Self {
        let mut store =
            Self { jobs: Vec::new(), journal: Vec::new(), counter: 0, now_ms: 1_000_000 };
        for recipe in ["complete", "running", "queued", "cancelled"] {
            store.submit(recipe);
        }
        store.claim(0);
        store.now_ms += 60_000;
        store.claim(0);
        store.complete(0);
        store.claim(1);
        store.claim(3);
        let applied = transition::cancel(
            store.jobs[3].clone(),
            transition::Which::All,
            Timestamp(store.now_ms),
        );
        let applied = applied.expect("it has submissions");
        store.keep(3, applied.job, applied.history);
        store
    }

    fn draw(&mut self) -> Number {
        self.counter += 1;
        number(self.counter)
    }

    fn keep(&mut self, index: usize, job: Job, history: Vec<Event>) {
        self.jobs[index] = job;
        self.journal.extend(history);
    }

    fn submit(&mut self, recipe: &str) {
        let spec = Spec {
            recipe: recipe.parse().expect("a name"),
            definition: Digest::of(recipe.as_bytes()),
            inputs: BTreeMap::new(),
            parameters: BTreeMap::new(),
        };
        let wish = Wish {
            tenant: "films".parse().expect("a name"),
            spec,
            retry: RetryPolicy::default(),
            backup_after_ms: None,
            priority: 0,
            run_at: Timestamp(0),
            fresh: false,
            publish: None,
        };
        let applied = transition::create(self.draw(), wish, Timestamp(self.now_ms));
        self.jobs.push(applied.job);
        self.journal.extend(applied.history);
    }

    fn claim(&mut self, index: usize) {
        let fresh = Fresh { token: self.draw(), lease_id: LeaseId(u128::from(self.counter)) };
        let by = Claimant {
            worker: "w".parse().expect("a name"),
            session: "s".parse().expect("a session"),
            request_id: "r".parse().expect("an id"),
            seq: 0,
            ttl_ms: 30_000,
        };
        let now = Moment { at: Timestamp(self.now_ms), life: 1 };
        let applied = transition::claim(self.jobs[index].clone(), by, fresh, now);
        assert_eq!(applied.answer, transition::Granted::Yes);
        self.keep(index, applied.job, applied.history);
    }

    fn complete(&mut self, index: usize) {
        let last = self.jobs[index].attempts.last().expect("it was claimed");
        let pair = Pair { token: last.token, lease_id: last.lease_id };
        let digest = Digest::of(b"film");
        let output = Output {
            name: "film.mp4".parse().expect("a name"),
            digest,
            size_bytes: 4,
            media_type: "video/mp4".to_owned(),
            facts: BTreeMap::new(),
        };
        let manifest = Manifest { outputs: vec![output], ..Manifest::default() };
        let present = Present::from([(digest, number(1))]);
        let job = self.jobs[index].clone();
        let now = Timestamp(self.now_ms);
        let applied = transition::complete(job, &pair, manifest, &present, now).expect("open");
        self.keep(index, applied.job, applied.history);
    }

    fn check(&self) -> Vec<Violation> {
        self.check_by(Checker::new(number(self.counter)).with_one_writer(true))
    }

    fn check_by(&self, mut checker: Checker) -> Vec<Violation> {
        for job in &self.jobs {
            checker.job(job);
        }
        for (position, event) in (1..).zip(&self.journal) {
            checker.event(position, event);
        }
        checker.finish()
    }
}

/// Harms a store that was in order, and asserts what is found.
fn check_harm(harm: impl FnOnce(&mut Store), expected: &[(Rule, &str)]) {
    let mut store = Store::lived_in();
    harm(&mut store);
    let found = store.check();
    let told: Vec<_> = found.iter().map(|found| (found.rule, found.record.as_str())).collect();
    assert_eq!(told, expected, "{found:#?}");
}

#[test]
fn records_in_order_yield_nothing() {
    check_harm(|_| {}, &[]);
}

#[test]
fn a_journal_that_lost_its_beginning_is_in_order() {
    check_harm(|store| drop(store.journal.drain(..8)), &[]);
    check_harm(|store| store.journal.clear(), &[]);
}

#[test]
fn a_lowered_fence_is_found() {
    check_harm(|store| store.jobs[0].fence = number(1), &[(Rule::Fence, "j1")]);
    check_harm(|store| store.jobs[1].fence = number(1), &[(Rule::Fence, "j2")]);
    let to_the_last = |store: &mut Store| store.jobs[0].fence = number(6);
    check_harm(to_the_last, &[(Rule::Fence, "j1")]);
}

#[test]
fn a_completion_by_a_token_below_the_fence_is_found() {
    check_harm(
        |store| {
            let completion = store.jobs[0].completion.as_mut().expect("it is complete");
            completion.token = number(5);
        },
        &[(Rule::Fence, "j1"), (Rule::OneCompletion, "j1"), (Rule::Journal, "journal 10")],
    );
}

#[test]
fn a_second_completion_is_found_in_the_record_and_in_the_journal() {
    let record = |store: &mut Store| {
        let first = store.jobs[0].attempts[0].closed.as_mut().expect("it was superseded");
        first.reason = CloseReason::Completed;
    };
    check_harm(record, &[(Rule::OneCompletion, "j1")]);
    let journal = |store: &mut Store| {
        let completed = store.journal[9].clone();
        store.journal.push(completed);
    };
    check_harm(journal, &[(Rule::OneCompletion, "journal 19")]);
}

#[test]
fn a_job_whose_record_is_gone_is_missed_by_the_journal() {
    check_harm(|store| drop(store.jobs.remove(0)), &[(Rule::Journal, "journal 10")]);
}

#[test]
fn a_second_live_job_with_the_key_is_found() {
    let twin = |store: &mut Store| {
        let mut twin = store.jobs[2].clone();
        twin.id = JobId(number(4_000));
        store.jobs.push(twin);
    };
    check_harm(twin, &[(Rule::OneLiveJob, "j4000")]);
}

#[test]
fn tokens_that_do_not_rise_are_found() {
    check_harm(|store| store.jobs[0].attempts.swap(0, 1), &[(Rule::RisingTokens, "j1")]);
    let behind = |store: &mut Store| store.counter = 7;
    check_harm(behind, &[(Rule::RisingTokens, "j4")]);
    let journal = |store: &mut Store| {
        let granted = store.journal[4].clone();
        store.journal.push(granted);
    };
    check_harm(journal, &[(Rule::RisingTokens, "journal 19")]);
}

#[test]
fn many_writers_grant_in_another_order_than_they_draw_but_not_for_one_job() {
    let mut store = Store::lived_in();
    for (index, recipe) in [(4, "one"), (5, "other")] {
        store.submit(recipe);
        store.claim(index);
    }
    let granted = |event: &Event| matches!(event.what, What::Granted { .. });
    let places = (0..store.journal.len()).filter(|place| granted(&store.journal[*place]));
    let places: Vec<_> = places.collect();
    let [.., first, other] = places[..] else { panic!("they were granted") };
    store.journal.swap(first, other);
    let many = store.check_by(Checker::new(number(store.counter)));
    assert!(many.iter().all(|one| one.rule != Rule::RisingTokens), "{many:?}");
    assert!(store.check().iter().any(|one| one.rule == Rule::RisingTokens));
    let again = store.journal[first].clone();
    store.journal.push(again);
    let found = store.check_by(Checker::new(number(store.counter)));
    assert!(found.iter().any(|one| one.rule == Rule::RisingTokens), "{found:?}");
}

#[test]
fn attempts_that_do_not_fit_the_state_are_found() {
    let nothing_open = |store: &mut Store| {
        let closed = store.jobs[0].attempts[0].closed.clone();
        store.jobs[1].attempts[0].closed = closed;
    };
    check_harm(nothing_open, &[(Rule::AttemptsFitState, "j2")]);
    let still_open = |store: &mut Store| store.jobs[3].attempts[0].closed = None;
    check_harm(still_open, &[(Rule::AttemptsFitState, "j4")]);
}

#[test]
fn an_outcome_that_does_not_fit_the_state_is_found() {
    let letter = DeadLetter { reason: "r".to_owned(), message: "m".to_owned() };
    let dead = |store: &mut Store| store.jobs[2].dead_letter = Some(letter);
    check_harm(dead, &[(Rule::OutcomeFitsState, "j3")]);
    let forgotten = |store: &mut Store| store.jobs[0].state = JobState::Failed;
    check_harm(forgotten, &[(Rule::OutcomeFitsState, "j1")]);
    let completion = |store: &mut Store| {
        let completion: Option<Completion> = store.jobs[0].completion.take();
        assert!(completion.is_some());
    };
    check_harm(
        completion,
        &[
            (Rule::OneCompletion, "j1"),
            (Rule::OutcomeFitsState, "j1"),
            (Rule::Journal, "journal 10"),
        ],
    );
}

mod effects;
mod told;
