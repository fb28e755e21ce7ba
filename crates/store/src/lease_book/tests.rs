//! The book's indexes say what its entries say, whatever happened before.

use palisade_core::{
    Digest, JobId, LeaseId, Number, SessionId, Timestamp,
    lease::{Lease, Moment, Pair},
    transition::{self, Claimant, Fresh, Wish},
};
use proptest::prelude::*;

use super::{Held, LeaseBook};
use crate::{
    conformance::bench::{request, session, wish_for},
    tables::HeldLeases,
};

/// One thing that happens to the book.
#[derive(Debug, Clone)]
enum Step {
    Claim { job: usize, worker: usize, at: u64, ttl_ms: u64 },
    Release { job: usize },
    Renew { nth: usize, at: u64 },
    Suspect { nth: usize, at: u64 },
    Mark,
    RollBack,
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..20_000_u64;
    prop_oneof![
        4 => (0..4_usize, 0..3_usize, at.clone(), 500..5_000_u64)
            .prop_map(|(job, worker, at, ttl_ms)| Step::Claim { job, worker, at, ttl_ms }),
        2 => (0..4_usize).prop_map(|job| Step::Release { job }),
        3 => (0..6_usize, at.clone()).prop_map(|(nth, at)| Step::Renew { nth, at }),
        1 => (0..6_usize, at).prop_map(|(nth, at)| Step::Suspect { nth, at }),
        1 => Just(Step::Mark),
        1 => Just(Step::RollBack),
        1 => Just(Step::Commit),
    ]
}

fn all(book: &LeaseBook) -> Vec<Held> {
    book.all().cloned().collect()
}

/// The indexes against the entries, computed the slow way.
fn assert_sound(book: &LeaseBook) {
    let entries = all(book);
    let of = |job: JobId| entries.iter().filter(move |held| held.job == job);
    for now in [0, 1_000, 5_000, 10_000, 25_000, u64::MAX] {
        let now = Timestamp(now);
        let mut jobs: Vec<_> = entries.iter().map(|held| held.job).collect();
        jobs.sort();
        jobs.dedup();
        let mut lapsed: Vec<_> = jobs
            .iter()
            .map(|job| (of(*job).map(|held| held.lease.deadline).max().unwrap(), *job))
            .filter(|(end, _)| *end <= now)
            .collect();
        lapsed.sort();
        let lapsed: Vec<_> = lapsed.into_iter().map(|(_, job)| job).collect();
        assert_eq!(book.lapsed(now, &|_| true, usize::MAX), lapsed);
        let mut backups: Vec<_> = jobs
            .iter()
            .filter(|job| of(**job).count() == 1)
            .filter_map(|job| Some((of(*job).next()?.backup_at?, *job)))
            .filter(|(at, _)| *at <= now)
            .collect();
        backups.sort();
        let backups: Vec<_> = backups.into_iter().map(|(_, job)| job).collect();
        assert_eq!(book.backup_due(now, &|_| true, usize::MAX), backups);
    }
    for worker in 0..3 {
        let session: SessionId = session(&format!("worker-{worker}"));
        let tokens: Vec<_> =
            entries.iter().filter(|held| held.session == session).map(|held| held.token).collect();
        assert_eq!(book.of_session(&session), tokens);
    }
    assert_eq!(book.is_empty(), entries.is_empty());
}

proptest! {
    #[test]
    fn the_indexes_follow_the_entries_through_every_change_and_rollback(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut book = LeaseBook::default();
        let mut jobs: Vec<_> = (1..=4)
            .map(|number| {
                let wish = wish_for(Digest::of(b"source"), 6);
                let backup_after_ms = (number % 2 == 0).then_some(1_000);
                let number = Number::new(number).unwrap();
                let wish = Wish { backup_after_ms, ..wish };
                transition::create(number, wish, Timestamp(0)).job
            })
            .collect();
        let mut drawn = 100;
        let mut mark = (0, all(&book), jobs.clone());
        let mut committed = (all(&book), jobs.clone());
        for step in steps {
            match step {
                Step::Claim { job, worker, at, ttl_ms } => {
                    drawn += 1;
                    let worker = format!("worker-{worker}");
                    let by = Claimant {
                        worker: worker.parse().unwrap(),
                        session: session(&worker),
                        request_id: request("claim"),
                        seq: 0,
                        ttl_ms,
                    };
                    let token = Number::new(drawn).unwrap();
                    let fresh = Fresh { token, lease_id: LeaseId(u128::from(drawn)) };
                    let now = Moment { at: Timestamp(at), life: 1 };
                    jobs[job] = transition::claim(jobs[job].clone(), by, fresh, now).job;
                    book.follow(&jobs[job]);
                }
                Step::Release { job } => {
                    let Some(open) = jobs[job].open_attempts().next() else { continue };
                    let pair = Pair { token: open.token, lease_id: open.lease_id };
                    let released = transition::release(jobs[job].clone(), &pair, Timestamp(0));
                    jobs[job] = released.unwrap().job;
                    book.follow(&jobs[job]);
                }
                Step::Renew { nth, at } => {
                    let Some(held) = all(&book).get(nth).cloned() else { continue };
                    let now = Moment { at: Timestamp(at), life: 1 };
                    book.set_lease(held.token, held.lease.renewed(now));
                }
                Step::Suspect { nth, at } => {
                    let Some(held) = all(&book).get(nth).cloned() else { continue };
                    let lease: Lease = held.lease.suspected(Timestamp(at), Timestamp(at));
                    book.set_lease(held.token, lease);
                }
                Step::Mark => mark = (book.mark(), all(&book), jobs.clone()),
                Step::RollBack => {
                    book.roll_back_to(mark.0);
                    jobs = mark.2.clone();
                    prop_assert_eq!(all(&book), mark.1.clone());
                }
                Step::Commit => {
                    book.commit(|_, _| {});
                    committed = (all(&book), jobs.clone());
                    mark = (0, committed.0.clone(), committed.1.clone());
                }
            }
            assert_sound(&book);
        }
        book.roll_back_to(0);
        prop_assert_eq!(all(&book), committed.0);
        assert_sound(&book);
    }
}

#[test]
fn a_rollback_takes_back_a_heartbeat_that_was_seen() {
    let mut book = LeaseBook::default();
    let session = session("alice");
    book.see_beat(&session, 4);
    book.commit(|_, _| {});
    book.see_beat(&session, 9);
    book.roll_back_to(0);
    assert_eq!(book.beat_seen(&session), 4);
    // An overtaken one does not lower it.
    book.see_beat(&session, 2);
    assert_eq!(book.beat_seen(&session), 4);
}

#[test]
fn a_pause_told_again_is_not_new_however_many_are_remembered() {
    let mut book = LeaseBook::default();
    for token in 1..=super::PAUSES_MAX as u64 {
        assert!(book.see_pause(Number::new(token).unwrap(), 40_000));
    }
    // The lowest would be the first to make room.
    assert!(!book.see_pause(Number::new(1).unwrap(), 40_000));
    assert!(!book.see_pause(Number::new(2).unwrap(), 40_000));
}
