use palisade_core::Timestamp;

use super::*;
use crate::{EventKind, Source};

/// Jobs handed from one worker to another, each worker logging to a file of its own. The second
/// file's clock is `slow_ms` behind.
fn handovers(slow_ms: i64, jobs: u64, gap_ms: u64) -> Vec<Skew> {
    let mut estimator = Estimator::new(2);
    let mut say = |at_ms: u64, file: u32, resource: &str, event: EventKind| {
        let shown_ms = if file == 1 { at_ms.saturating_add_signed(-slow_ms) } else { at_ms };
        let worker = if file == 0 { "a" } else { "b" };
        let mut entry = Entry::new(Timestamp(shown_ms), worker, resource, event);
        entry.source = Source { file, line: 1 };
        entry.ttl_ms = (event == EventKind::Acquired).then_some(60_000);
        estimator.push(&entry);
    };
    for job in 0..jobs {
        let name = format!("export-{job}");
        let start = 1_773_478_800_000 + job * 100_000;
        let (first, second) = if job % 2 == 0 { (0, 1) } else { (1, 0) };
        say(start, first, &name, EventKind::Acquired);
        say(start + 5_000, second, &name, EventKind::Denied);
        say(start + 20_000, first, &name, EventKind::Released);
        say(start + 20_000 + gap_ms, second, &name, EventKind::Acquired);
        say(start + 40_000, second, &name, EventKind::Released);
    }
    estimator.finish()
}

#[test]
fn clocks_that_agree_are_left_alone() {
    let skews = handovers(0, 20, 300);
    assert_eq!(skews[0].sureness, Sureness::Reference);
    assert_eq!(skews[1].offset_ms, 0);
    assert_eq!(skews[1].sureness, Sureness::Sure);
    assert!(skews[1].uncertainty_ms.unwrap() <= 300);
}

#[test]
fn a_slow_and_a_fast_clock_are_found_to_within_a_handover() {
    for slow_ms in [-45_000, -7_000, 2_500, 12_000, 90_000] {
        let skew = handovers(slow_ms, 20, 300)[1];
        let error_ms = (skew.offset_ms - slow_ms).unsigned_abs();
        assert!(error_ms <= skew.uncertainty_ms.unwrap(), "{slow_ms}: {skew:?}");
        assert!(skew.uncertainty_ms.unwrap() <= 300, "{skew:?}");
        assert_eq!(skew.sureness, Sureness::Sure);
    }
}

#[test]
fn one_contradiction_alone_corrects_nothing() {
    let mut estimator = Estimator::new(2);
    for (at_ms, file, worker) in [(1_000_000, 0, "a"), (1_011_000, 1, "b")] {
        let mut entry = Entry::new(Timestamp(at_ms), worker, "job", EventKind::Acquired);
        entry.source = Source { file, line: 1 };
        entry.ttl_ms = Some(60_000);
        estimator.push(&entry);
    }
    let skew = estimator.finish()[1];
    assert_eq!((skew.offset_ms, skew.contradicted), (0, 1));
    assert_eq!(skew.sureness, Sureness::Unknown);
}

#[test]
fn a_clock_is_not_moved_far_to_explain_one_fault_away() {
    // One lock goes to and fro, a minute each, and once the service gives it away too early: moved
    // by two minutes more, the slow clock would contradict nothing at all.
    let mut estimator = Estimator::new(2);
    let mut lease = |from_s: u64, file: u32, length_s: u64| {
        let worker = if file == 0 { "a" } else { "b" };
        let slow_s = if file == 1 { 7 } else { 0 };
        for (at_s, event) in
            [(from_s, EventKind::Acquired), (from_s + length_s, EventKind::Released)]
        {
            let at = Timestamp((1_000_000 + at_s - slow_s) * 1_000);
            let mut entry = Entry::new(at, worker, "lock", event);
            entry.source = Source { file, line: 1 };
            entry.ttl_ms = (event == EventKind::Acquired).then_some(600_000);
            estimator.push(&entry);
        }
    };
    for turn in 0..12 {
        lease(turn * 60, u32::try_from(turn % 2).unwrap(), 55);
    }
    lease(800, 0, 90);
    lease(811, 1, 90);
    let skew = estimator.finish()[1];
    assert!((skew.offset_ms - 7_000).abs() <= 5_000, "{skew:?}");
    assert_eq!(skew.contradicted, 1);
}

#[test]
fn files_that_share_nothing_are_not_compared() {
    let mut estimator = Estimator::new(2);
    for (file, resource) in [(0, "one"), (1, "two")] {
        let mut entry = Entry::new(Timestamp(1_000), "w", resource, EventKind::Acquired);
        entry.source = Source { file, line: 1 };
        estimator.push(&entry);
    }
    let skews = estimator.finish();
    assert_eq!((skews[1].pairs, skews[1].sureness), (0, Sureness::Unknown));
}

/// Says `(file, worker, resource, second, event)`s to an estimator, each file's clock being so many
/// ms fast.
fn told(fast_ms: &[i64], lines: &[(u32, &str, String, u64, EventKind)]) -> Vec<Skew> {
    let mut estimator = Estimator::new(u32::try_from(fast_ms.len()).unwrap());
    for (file, worker, resource, at_ms, event) in lines {
        let shown_ms = (1_773_478_800_000 + at_ms).saturating_add_signed(fast_ms[*file as usize]);
        let mut entry = Entry::new(Timestamp(shown_ms), worker, resource, *event);
        entry.source = Source { file: *file, line: 1 };
        let grants = matches!(event, EventKind::Acquired | EventKind::Renewed);
        entry.ttl_ms = grants.then_some(30_000);
        estimator.push(&entry);
    }
    estimator.finish()
}

/// The lock service logs leases, each worker what it does under them.
fn service_and_workers(fast_ms: &[i64; 3], pauses: u64) -> Vec<Skew> {
    let mut lines = Vec::new();
    for job in 0..14_u64 {
        let (file, worker) = if job % 2 == 0 { (1, "w1") } else { (2, "w2") };
        let (name, start) = (format!("j{job}"), job * 70_000);
        let mut say =
            |file, at_ms, event| lines.push((file, worker, name.clone(), start + at_ms, event));
        say(0, 0, EventKind::Acquired);
        say(file, 4_000, EventKind::Progress);
        say(0, 10_000, EventKind::Renewed);
        if job < pauses {
            // Past its lease, which another was granted: no release tells when the work was over.
            say(file, 52_000, EventKind::Effect);
            continue;
        }
        say(file, 12_000, EventKind::Progress);
        say(file, 15_000, EventKind::Effect);
        say(0, 15_300, EventKind::Released);
    }
    told(fast_ms, &lines)
}

#[test]
fn a_workers_clock_is_found_from_work_under_leases_that_the_service_logs() {
    for pauses in [0, 3] {
        let skews = service_and_workers(&[0, 20_000, -13_000], pauses);
        assert_eq!(skews[0].sureness, Sureness::Reference);
        for (skew, offset_ms) in [(skews[1], -20_000), (skews[2], 13_000)] {
            assert!((skew.offset_ms - offset_ms).abs() <= 4_300, "{skew:?}");
            assert!(skew.offset_ms != 0 && skew.sureness != Sureness::Unknown, "{skew:?}");
        }
        for skew in service_and_workers(&[0, 0, 0], pauses) {
            assert_eq!(skew.offset_ms, 0, "clocks that agree are left alone: {skew:?}");
        }
    }
}

#[test]
fn clocks_that_are_bounded_only_all_together_are_found_all_together() {
    // Work goes round in one direction only, so that two files alone say little of each other.
    for fast_ms in [[0, 12_000, -4_000], [0, 0, 0], [0, 3_000, 9_000]] {
        let mut lines = Vec::new();
        for job in 0..18_u64 {
            let workers = ["w0", "w1", "w2"];
            let from = usize::try_from(job % 3).unwrap();
            let to = (from + 1) % 3;
            let (name, start) = (format!("j{job}"), job * 30_000);
            let mut say = |who: usize, at_ms, event| {
                let file = u32::try_from(who).unwrap();
                lines.push((file, workers[who], name.clone(), start + at_ms, event));
            };
            say(from, 0, EventKind::Acquired);
            say(to, 3_000, EventKind::Denied);
            say(from, 15_200, EventKind::Released);
            say(to, 15_500, EventKind::Acquired);
            say(to, 20_000, EventKind::Released);
        }
        for (skew, fast_ms) in told(&fast_ms, &lines).iter().zip(fast_ms) {
            assert!((skew.offset_ms + fast_ms).abs() <= 1_000, "{fast_ms}: {skew:?}");
        }
    }
}

#[test]
fn a_log_that_was_cut_in_the_middle_of_leases_has_one_clock() {
    let mut lines = Vec::new();
    let (old, new) = (0, 1);
    for lock in 0..6_u64 {
        let (name, start) = (format!("r{lock}"), lock * 1_000);
        lines.push((old, "w", name.clone(), start, EventKind::Acquired));
        lines.push((old, "w", name.clone(), start + 20_000, EventKind::Renewed));
        // Cut here; the lease would have run for much longer than it did.
        lines.push((new, "w", name.clone(), start + 27_000, EventKind::Released));
        lines.push((new, "v", name.clone(), start + 28_000, EventKind::Acquired));
        lines.push((new, "v", name, start + 40_000, EventKind::Released));
    }
    assert!(told(&[0, 0], &lines).iter().all(|skew| skew.offset_ms == 0));
}

#[test]
fn a_correction_is_never_beyond_all_bounds() {
    // A denial in one file, and the lease that it must fall into in another: once of a third.
    let mut lines = Vec::new();
    for job in 0..9_u64 {
        let (name, start) = (format!("j{job}"), job * 30_000);
        lines.push((0, "w0", name.clone(), start, EventKind::Acquired));
        lines.push((1, "w1", name.clone(), start + 9_000, EventKind::Denied));
        lines.push((0, "w0", name.clone(), start + 3_000, EventKind::Released));
        lines.push((2, "w2", name.clone(), start + 8_000, EventKind::Acquired));
        lines.push((2, "w2", name, start + 10_000, EventKind::Released));
    }
    for skew in told(&[0, 0, 0], &lines) {
        assert!(skew.offset_ms.abs() < 3_600_000, "{skew:?}");
    }
}

#[test]
fn tokens_tell_the_order_of_grants() {
    let mut estimator = Estimator::new(2);
    for number in 0..10_u64 {
        let file = u32::try_from(number % 2).unwrap();
        let at_ms = 1_000_000 + number * 10_000;
        let shown_ms = if file == 1 { at_ms - 25_000 } else { at_ms };
        let worker = if file == 0 { "a" } else { "b" };
        for (later_ms, event) in [(0, EventKind::Acquired), (9_000, EventKind::Released)] {
            let mut entry = Entry::new(Timestamp(shown_ms + later_ms), worker, "job", event);
            entry.source = Source { file, line: 1 };
            entry.token = Some(number + 1);
            estimator.push(&entry);
        }
    }
    let skew = estimator.finish()[1];
    assert!((skew.offset_ms - 25_000).abs() <= 1_000, "{skew:?}");
}
