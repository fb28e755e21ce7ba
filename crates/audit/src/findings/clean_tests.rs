//! Ten thousand jobs in which nothing went wrong: crashes that a lease recovered, handed back
//! work, renewals that failed and then succeeded, waiters, restarts, odd habits of logging.

use palisade_core::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::{Entry, EventKind};

/// An entry of the generated history.
#[derive(Debug, Clone)]
struct Line {
    at_ms: u64,
    worker: String,
    resource: String,
    event: EventKind,
    ttl_ms: Option<u64>,
    token: Option<u64>,
    kind: Option<&'static str>,
    detail: Option<String>,
}

/// A small generator of numbers, so that one seed makes one history.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }
}

/// What a system logs, and what it does not.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is logged or not, in any combination")]
struct Habit {
    ttl_ms: Option<u64>,
    renewals: bool,
    progress_ms: Option<u64>,
    starts: bool,
    completions: bool,
    releases: bool,
    tokens: bool,
    waiters: bool,
    expiries: bool,
    kinds: bool,
}

fn habit(dice: &mut Dice) -> Habit {
    let ttl_ms = dice.chance(80).then(|| dice.between(5, 120) * 1_000);
    let completions = dice.chance(80);
    Habit {
        ttl_ms,
        renewals: dice.chance(70),
        progress_ms: dice.chance(60).then(|| dice.between(500, 10_000)),
        starts: dice.chance(60),
        completions,
        releases: !completions || dice.chance(70),
        tokens: dice.chance(40),
        waiters: dice.chance(40),
        expiries: dice.chance(20),
        kinds: dice.chance(70),
    }
}

/// A history on its way.
struct World {
    dice: Dice,
    habit: Habit,
    lines: Vec<Line>,
    token: u64,
}

impl World {
    fn say(&mut self, at_ms: u64, worker: &str, resource: &str, event: EventKind) -> &mut Line {
        self.lines.push(Line {
            at_ms,
            worker: worker.to_owned(),
            resource: resource.to_owned(),
            event,
            ttl_ms: None,
            token: None,
            kind: None,
            detail: None,
        });
        self.lines.last_mut().expect("just pushed")
    }

    /// One grant and the work under it; answers when the next may be granted.
    fn attempt(&mut self, start_ms: u64, worker: &str, resource: &str, end: Ending) -> u64 {
        let ttl_ms = self.habit.ttl_ms;
        let token = self.habit.tokens.then(|| {
            self.token += 1;
            self.token
        });
        self.say(start_ms.saturating_sub(3), worker, resource, EventKind::Requested);
        let grant = self.say(start_ms, worker, resource, EventKind::Acquired);
        (grant.ttl_ms, grant.token) = (ttl_ms, token);
        if self.habit.starts {
            self.say(start_ms + 50, worker, resource, EventKind::Started);
        }
        let unbounded = self.habit.renewals || ttl_ms.is_none();
        let longest_ms = if unbounded { 180_000 } else { ttl_ms.unwrap_or(0).max(4_000) - 2_000 };
        let length_ms = self.dice.between(1_000, longest_ms);
        let end_ms = start_ms + length_ms;
        if let Some(every_ms) = self.habit.progress_ms {
            // The last stretch (an upload) goes without progress.
            let until_ms = end_ms.saturating_sub(self.dice.below(3) * every_ms);
            let mut at_ms = start_ms + every_ms;
            while at_ms < until_ms {
                self.say(at_ms, worker, resource, EventKind::Progress);
                at_ms += self.dice.between(every_ms / 2, every_ms * 2);
            }
        }
        let confirmed_ms = self.renewals(start_ms, end_ms, worker, resource);
        if self.habit.waiters {
            self.waiters(start_ms, end_ms, resource);
        }
        match end {
            Ending::Crash => self.crash(end_ms, confirmed_ms, worker, resource),
            Ending::HandBack => {
                self.say(end_ms, worker, resource, EventKind::Released);
                end_ms + self.dice.between(5, 5_000)
            }
            Ending::Done => self.done(end_ms, worker, resource, token),
        }
    }

    /// Renews at a third of the ttl, sometimes at the second try.
    fn renewals(&mut self, start_ms: u64, end_ms: u64, worker: &str, resource: &str) -> u64 {
        let Some(ttl_ms) = self.habit.ttl_ms.filter(|_| self.habit.renewals) else {
            return start_ms;
        };
        let mut confirmed_ms = start_ms;
        let mut at_ms = start_ms + ttl_ms / 3;
        while at_ms < end_ms {
            if self.dice.chance(5) {
                let failed = self.say(at_ms, worker, resource, EventKind::RenewFailed);
                failed.detail = Some("connection timed out".to_owned());
                at_ms += ttl_ms / 10;
                if at_ms >= end_ms {
                    break;
                }
            }
            self.say(at_ms, worker, resource, EventKind::Renewed).ttl_ms = Some(ttl_ms);
            confirmed_ms = at_ms;
            at_ms += ttl_ms / 3;
        }
        confirmed_ms
    }

    fn waiters(&mut self, start_ms: u64, end_ms: u64, resource: &str) {
        for _ in 0..self.dice.below(4) {
            let at_ms = self.dice.between(start_ms + 1, end_ms - 1);
            let waiter = format!("waiter-{}", self.dice.below(3));
            self.say(at_ms, &waiter, resource, EventKind::Requested);
            self.say(at_ms, &waiter, resource, EventKind::Denied);
        }
    }

    /// Silence; the lease frees the resource, if there is one.
    fn crash(&mut self, end_ms: u64, confirmed_ms: u64, worker: &str, resource: &str) -> u64 {
        // Nothing is heard after the crash, the end of the work included.
        if self.dice.chance(30) {
            self.say(end_ms, worker, resource, EventKind::Exited);
        }
        let free_ms = confirmed_ms + self.habit.ttl_ms.unwrap_or(10_000);
        let free_ms = free_ms.max(end_ms);
        if self.habit.expiries {
            self.say(free_ms + 1, "", resource, EventKind::Expired);
        }
        free_ms + self.dice.between(10, 3_000)
    }

    fn done(&mut self, end_ms: u64, worker: &str, resource: &str, token: Option<u64>) -> u64 {
        let mut at_ms = end_ms;
        for number in 0..self.dice.between(1, 3) {
            let kinds = self.habit.kinds;
            let effect = self.say(at_ms, worker, resource, EventKind::Effect);
            effect.kind = kinds.then_some(if number == 0 { "write" } else { "notify" });
            effect.detail = Some(format!("exports/refused-{number}.mp4"));
            effect.token = token;
            at_ms += 100;
        }
        if self.habit.completions {
            self.say(at_ms, worker, resource, EventKind::Completed);
        }
        if self.habit.releases {
            self.say(at_ms + 20, worker, resource, EventKind::Released);
        }
        at_ms + self.dice.between(30, 20_000)
    }

    /// A resource's whole life: some attempts that come to nothing, then one that does.
    fn life(&mut self, start_ms: u64, resource: &str) {
        let mut at_ms = start_ms;
        let rounds = self.dice.between(1, 3);
        for _ in 0..rounds {
            let mut worker = self.dice.below(7);
            // Without a ttl there is nothing that would recover a crash.
            while self.habit.ttl_ms.is_some() && self.dice.chance(12) {
                at_ms = self.attempt(at_ms, &format!("w{worker}"), resource, Ending::Crash);
                worker = (worker + 1 + self.dice.below(6)) % 7;
            }
            if self.habit.releases && self.dice.chance(8) {
                at_ms = self.attempt(at_ms, &format!("w{worker}"), resource, Ending::HandBack);
                worker = self.dice.below(7);
            }
            at_ms = self.attempt(at_ms, &format!("w{worker}"), resource, Ending::Done);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    HandBack,
    Crash,
}

/// A history of so many jobs, side by side, cut off at both ends at random.
fn history(seed: u64, jobs: u64) -> (Habit, Vec<Line>) {
    let mut dice = Dice(seed);
    let habit = habit(&mut dice);
    let mut world = World { dice, habit, lines: Vec::new(), token: 0 };
    for job in 0..jobs {
        let start_ms = 1_773_478_800_000 + world.dice.below(jobs * 4_000);
        world.life(start_ms, &format!("export-{job}"));
    }
    let World { mut dice, mut lines, .. } = world;
    lines.sort_by_key(|line| line.at_ms);
    let count = lines.len() as u64;
    if dice.chance(50) {
        lines.truncate(usize::try_from(count - dice.below(count / 2)).expect("small"));
    }
    if dice.chance(30) {
        lines.drain(..usize::try_from(dice.below(count / 3)).expect("small"));
    }
    (habit, lines)
}

fn findings_of(lines: &[Line]) -> Vec<Finding> {
    let mut analyser = Analyser::new(Settings::default());
    for line in lines {
        let mut entry = Entry::new(Timestamp(line.at_ms), &line.worker, &line.resource, line.event);
        entry.ttl_ms = line.ttl_ms;
        entry.token = line.token;
        entry.kind = line.kind;
        entry.detail = line.detail.as_deref();
        analyser.push(&entry);
    }
    analyser.finish().findings
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(250),
        max_global_rejects: 50_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// 250 histories of 40 resources each: 10,000 jobs and more, as a resource is used anew.
    #[test]
    fn a_history_with_no_fault_yields_no_finding(seed: u64) {
        let (habit, lines) = history(seed, 40);
        let findings = findings_of(&lines);
        let about: Vec<String> = findings
            .iter()
            .map(|finding| format!("{} {}: {:#?}", finding.resource, finding.headline, finding.story))
            .collect();
        prop_assert!(findings.is_empty(), "{habit:?}\n{}", about.join("\n"));
    }

    /// The same histories with one effect too many: the generator does not hide faults.
    #[test]
    fn the_same_history_with_a_zombie_in_it_yields_one(seed: u64) {
        let (_, mut lines) = history(seed, 10);
        let grant = lines.iter().position(|line| line.event == EventKind::Acquired);
        prop_assume!(grant.is_some());
        let first = lines[grant.unwrap()].clone();
        let later = lines.iter().rposition(|line| {
            line.event == EventKind::Acquired
                && line.resource == first.resource
                && line.worker != first.worker
        });
        prop_assume!(later.is_some());
        let later = lines[later.unwrap()].clone();
        let ran_long = lines.iter().any(|line| {
            line.resource == first.resource
                && line.worker == later.worker
                && line.at_ms > later.at_ms + 900
                && line.event != EventKind::Acquired
        });
        let again = lines.iter().any(|line| {
            line.resource == first.resource
                && line.worker == first.worker
                && line.at_ms > first.at_ms
                && line.event == EventKind::Acquired
        });
        prop_assume!(ran_long && !again);
        let worked = lines.iter().any(|line| {
            line.resource == first.resource && line.worker == first.worker && line.event == EventKind::Completed
        });
        prop_assume!(!worked);
        let mut zombie = first;
        zombie.event = EventKind::Progress;
        zombie.at_ms = later.at_ms + 600;
        let mut effect = zombie.clone();
        effect.event = EventKind::Effect;
        effect.at_ms += 100;
        lines.extend([zombie, effect]);
        lines.sort_by_key(|line| line.at_ms);
        let findings = findings_of(&lines);
        prop_assert!(!findings.is_empty());
    }
}
