//! Collects a resource's entries into lanes.

use palisade_core::Timestamp;

use super::{Lane, Mark, Sign, Stretch, Takeover, Timeline, Window, WindowEnd};
use crate::findings::{Finding, Kind};
use crate::{Entry, EventKind};

/// A picture holds this many entries.
const MARKS_MAX: usize = 20_000;

/// The lease of the moment.
#[derive(Debug, Clone, Copy)]
struct Held {
    lane: usize,
    window: usize,
    deadline: Option<Timestamp>,
}

/// Collects a resource's entries, in the order of time.
#[derive(Debug)]
pub struct Builder {
    timeline: Timeline,
    held: Option<Held>,
    /// The last window that ended by itself, from which the next grant takes over.
    lapsed: Option<usize>,
    ttls_ms: Vec<Option<u64>>,
    /// Since when each lane has been waiting.
    waiting: Vec<Option<Timestamp>>,
    ends_are_told: bool,
    count: usize,
}

impl Builder {
    /// For the resource of this name. `ends_are_told` says that a lease or a wait lasts until an
    /// entry says otherwise; else a lease ends with its time, and a wait that nobody ends is none.
    pub fn new(resource: &str, ends_are_told: bool) -> Self {
        Self {
            timeline: Timeline {
                resource: resource.to_owned(),
                stretch: Stretch { from: Timestamp(u64::MAX), to: Timestamp(0) },
                lanes: Vec::new(),
                takeovers: Vec::new(),
                left_out: 0,
            },
            held: None,
            lapsed: None,
            ttls_ms: Vec::new(),
            waiting: Vec::new(),
            ends_are_told,
            count: 0,
        }
    }

    /// Takes an entry of this resource.
    pub fn push(&mut self, entry: &Entry<'_>) {
        if self.count >= MARKS_MAX {
            self.timeline.left_out += 1;
            return;
        }
        self.count += 1;
        let stretch = &mut self.timeline.stretch;
        stretch.from = stretch.from.min(entry.at);
        stretch.to = stretch.to.max(entry.at);
        self.let_lapse(entry.at);
        let known = self.timeline.lanes.iter().position(|lane| lane.worker == entry.worker);
        if known.is_none() && entry.event == EventKind::Expired {
            self.expire(entry.at);
            return;
        }
        let lane = known.unwrap_or_else(|| self.new_lane(entry));
        match entry.event {
            EventKind::Acquired => self.grant(lane, entry),
            EventKind::Renewed => self.renew(lane, entry),
            EventKind::Released | EventKind::Completed => self.give_up(lane, entry),
            EventKind::Expired => self.expire(entry.at),
            EventKind::Effect | EventKind::Refused => self.effect(lane, entry),
            EventKind::Started | EventKind::Progress => self.work(lane, entry, Sign::Work),
            EventKind::Denied => self.deny(lane, entry),
            EventKind::RenewFailed => self.mark(lane, entry, Sign::RenewFailed),
            EventKind::Exited => self.mark(lane, entry, Sign::Exited),
            EventKind::Requested => self.wait(lane, entry.at),
            EventKind::Paused => {}
        }
        if !matches!(entry.event, EventKind::Requested | EventKind::Denied) {
            self.note_life(lane, entry.at);
        }
    }

    /// Ends the collecting; the pauses are those that were found.
    pub fn finish(mut self, findings: &[Finding]) -> Timeline {
        let end = self.timeline.stretch.to;
        if let Some(held) = self.held {
            let over = held.deadline.is_some_and(|deadline| deadline < end);
            let window = &mut self.timeline.lanes[held.lane].windows[held.window];
            window.stretch.to = held.deadline.filter(|_| over).unwrap_or(end);
            window.ended = if over { WindowEnd::RanOut } else { WindowEnd::Open };
        }
        for (lane, since) in self.waiting.iter().enumerate() {
            if let Some(from) = since.filter(|_| self.ends_are_told) {
                self.timeline.lanes[lane].waits.push(Stretch { from, to: end });
            }
        }
        for finding in findings {
            if finding.kind != Kind::Pause || finding.resource != self.timeline.resource {
                continue;
            }
            let stretch = Stretch { from: finding.at, to: finding.until };
            for lane in &mut self.timeline.lanes {
                if finding.workers.contains(&lane.worker) {
                    lane.pauses.push(stretch);
                }
            }
        }
        for lane in &mut self.timeline.lanes {
            for pause in &lane.pauses {
                for trespass in &mut lane.trespasses {
                    // Who stands still does not work.
                    if trespass.from < pause.to && pause.from < trespass.to {
                        trespass.from = trespass.from.max(pause.to).min(trespass.to);
                    }
                }
            }
            lane.marks.sort_by_key(|mark| (mark.at, mark.sign));
            let heard =
                lane.marks.iter().filter(|mark| !matches!(mark.sign, Sign::Expired | Sign::Denied));
            let heard_last = heard.map(|mark| mark.at).max().unwrap_or_default();
            for window in &mut lane.windows {
                // Only whoever is not heard of again is silent; others were just quiet.
                if heard_last > window.last_sign {
                    window.last_sign = window.stretch.to;
                }
            }
        }
        self.put_holders_first();
        if self.timeline.stretch.from > self.timeline.stretch.to {
            self.timeline.stretch = Stretch { from: Timestamp(0), to: Timestamp(0) };
        }
        self.timeline
    }

    /// Puts the lanes in the order of their first leases; who was only denied comes last.
    fn put_holders_first(&mut self) {
        let mut order: Vec<usize> = (0..self.timeline.lanes.len()).collect();
        order.sort_by_key(|lane| {
            let first = self.timeline.lanes[*lane].windows.first();
            first.map_or(Timestamp(u64::MAX), |window| window.stretch.from)
        });
        let place = |lane: usize| order.iter().position(|other| *other == lane).unwrap_or(lane);
        for takeover in &mut self.timeline.takeovers {
            takeover.from_lane = place(takeover.from_lane);
            takeover.to_lane = place(takeover.to_lane);
        }
        let lanes = &self.timeline.lanes;
        self.timeline.lanes = order.iter().map(|lane| lanes[*lane].clone()).collect();
    }

    /// Notes a sign of life within the lease that covers it.
    fn note_life(&mut self, lane: usize, at: Timestamp) {
        let held = self.held.is_some_and(|held| held.lane == lane);
        if let Some(window) = self.timeline.lanes[lane].windows.last_mut()
            && (held || at <= window.stretch.to)
        {
            window.last_sign = window.last_sign.max(at);
        }
    }

    fn new_lane(&mut self, entry: &Entry<'_>) -> usize {
        self.timeline.lanes.push(Lane {
            worker: entry.worker.to_owned(),
            waits: Vec::new(),
            windows: Vec::new(),
            trespasses: Vec::new(),
            pauses: Vec::new(),
            marks: Vec::new(),
        });
        self.ttls_ms.push(None);
        self.waiting.push(None);
        self.timeline.lanes.len() - 1
    }

    fn mark(&mut self, lane: usize, entry: &Entry<'_>, sign: Sign) {
        let label = entry.kind.filter(|_| sign >= Sign::Landed).map(ToOwned::to_owned);
        let token = entry.token;
        self.timeline.lanes[lane].marks.push(Mark { at: entry.at, sign, token, label });
    }

    fn deadline(&self, from: Timestamp, ttl_ms: Option<u64>) -> Option<Timestamp> {
        ttl_ms.filter(|_| !self.ends_are_told).map(|ttl_ms| from.plus_ms(ttl_ms))
    }

    /// Notes since when a worker has been waiting. A holder that asks again does not wait.
    fn wait(&mut self, lane: usize, at: Timestamp) {
        if self.held.is_none_or(|held| held.lane != lane) {
            self.waiting[lane].get_or_insert(at);
        }
    }

    /// A denial ends a wait with nothing; in our own journal, where one that begins to wait is
    /// denied at once, it may begin one.
    fn deny(&mut self, lane: usize, entry: &Entry<'_>) {
        self.mark(lane, entry, Sign::Denied);
        if self.waiting[lane].is_some() {
            self.end_wait(lane, entry.at);
        } else if self.ends_are_told {
            self.wait(lane, entry.at);
        }
    }

    fn end_wait(&mut self, lane: usize, to: Timestamp) {
        if let Some(from) = self.waiting[lane].take() {
            self.timeline.lanes[lane].waits.push(Stretch { from, to });
        }
    }

    /// Ends the lease of the moment if its time was over before `at`.
    fn let_lapse(&mut self, at: Timestamp) {
        if let Some(held) = self.held
            && let Some(deadline) = held.deadline.filter(|deadline| *deadline < at)
        {
            self.close(held, deadline, WindowEnd::RanOut);
        }
    }

    fn close(&mut self, held: Held, at: Timestamp, ended: WindowEnd) {
        let lane = &mut self.timeline.lanes[held.lane];
        let window = &mut lane.windows[held.window];
        window.stretch.to = at;
        window.ended = ended;
        if ended == WindowEnd::RanOut {
            lane.marks.push(Mark { at, sign: Sign::Expired, token: None, label: None });
        }
        self.lapsed = Some(held.lane);
        self.held = None;
    }

    fn grant(&mut self, lane: usize, entry: &Entry<'_>) {
        let before = self.held.map(|held| held.lane).or(self.lapsed);
        if let Some(held) = self.held {
            if held.lane == lane {
                self.renew(lane, entry);
                return;
            }
            self.close(held, entry.at, WindowEnd::Cut);
        }
        if let Some(from_lane) = before.filter(|before| *before != lane) {
            let takeover = Takeover { at: entry.at, from_lane, to_lane: lane };
            self.timeline.takeovers.push(takeover);
        }
        self.mark(lane, entry, Sign::Granted);
        self.end_wait(lane, entry.at);
        let windows = &mut self.timeline.lanes[lane].windows;
        windows.push(Window {
            stretch: Stretch { from: entry.at, to: entry.at },
            last_sign: entry.at,
            token: entry.token,
            ended: WindowEnd::Open,
        });
        let window = windows.len() - 1;
        self.ttls_ms[lane] = entry.ttl_ms;
        let deadline = self.deadline(entry.at, entry.ttl_ms);
        self.held = Some(Held { lane, window, deadline });
    }

    fn renew(&mut self, lane: usize, entry: &Entry<'_>) {
        self.mark(lane, entry, Sign::Renewed);
        let ttl_ms = entry.ttl_ms.or(self.ttls_ms[lane]);
        let deadline = self.deadline(entry.at, ttl_ms);
        match &mut self.held {
            Some(held) if held.lane == lane => held.deadline = deadline,
            Some(_) => self.trespass(lane, entry.at),
            None => {
                // It had run out, and nobody had taken it.
                if let Some(window) = self.timeline.lanes[lane].windows.len().checked_sub(1) {
                    self.held = Some(Held { lane, window, deadline });
                }
            }
        }
    }

    fn give_up(&mut self, lane: usize, entry: &Entry<'_>) {
        let completed = entry.event == EventKind::Completed;
        self.work(lane, entry, if completed { Sign::Completed } else { Sign::Released });
        match self.held {
            Some(held) if held.lane == lane && !completed => {
                self.close(held, entry.at, WindowEnd::GivenUp);
                self.lapsed = None;
            }
            Some(held) if !completed => {
                // Somebody else's lock was given up.
                self.close(held, entry.at, WindowEnd::Cut);
            }
            _ => {}
        }
    }

    fn expire(&mut self, at: Timestamp) {
        if let Some(held) = self.held {
            self.close(held, at, WindowEnd::RanOut);
        }
    }

    fn effect(&mut self, lane: usize, entry: &Entry<'_>) {
        let owner = self.held.is_some_and(|held| held.lane == lane);
        // Also after the next holder is through: the lease had gone to it all the same.
        let granted_at = self.timeline.lanes[lane].windows.last().map(|window| window.stretch.from);
        let passed_on = self.timeline.takeovers.iter().any(|takeover| {
            takeover.from_lane == lane && granted_at.is_some_and(|at| takeover.at > at)
        });
        let anothers = !owner && (self.held.is_some() || passed_on);
        let sign = match entry.event {
            EventKind::Refused => Sign::Refused,
            _ if anothers => Sign::LandedLate,
            _ => Sign::Landed,
        };
        self.work(lane, entry, sign);
    }

    /// Work, which should happen under a lease.
    fn work(&mut self, lane: usize, entry: &Entry<'_>, sign: Sign) {
        self.mark(lane, entry, sign);
        if self.held.is_some_and(|held| held.lane != lane) && sign != Sign::Released {
            self.trespass(lane, entry.at);
        }
    }

    /// Draws out the stretch in which a worker was at work without a lease.
    fn trespass(&mut self, lane: usize, at: Timestamp) {
        let since = self
            .held
            .map_or(at, |held| self.timeline.lanes[held.lane].windows[held.window].stretch.from);
        let lane = &mut self.timeline.lanes[lane];
        if lane.windows.is_empty() {
            return;
        }
        match lane.trespasses.last_mut() {
            Some(last) if last.to >= since => last.to = at,
            _ => lane.trespasses.push(Stretch { from: since, to: at }),
        }
    }
}
