//! What a seed has in store: the work, the fault rates, the clocks. All drawn before the run.

use crate::random::Dice;

use super::world::Setting;

/// One export to be wished for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// When it is submitted, in ms.
    pub at_ms: u64,
    /// How long its rendering takes, in ms. It fits a lease on a good day.
    pub render_ms: u64,
    /// Which rendering it is: two wishes for the same one share a job.
    pub rendering: u64,
    /// Whether the wish is withdrawn again, and after how long.
    pub withdrawn_after_ms: Option<u64>,
    /// Under which name it is published: a later wish takes the name over.
    pub target: u64,
    /// Whether it shares a job or a name with another: only a queue of wishes knows what to do.
    pub is_extra: bool,
}

/// Everything that is drawn from the seed before the run. Rates are in a thousand.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// How many workers there are.
    pub workers: usize,
    /// What is wished for.
    pub wanted: Vec<Wanted>,
    /// How long a lease is, in ms.
    pub ttl_ms: u64,
    /// When the faults end, in ms.
    pub heal_at_ms: u64,
    /// How long everything may take after that, in ms.
    pub bound_ms: u64,
    /// Whether two renderings of one job differ in their bytes.
    pub bytes_differ: bool,
    /// Losses put up with.
    pub losses_allowed: u32,
    /// Messages lost.
    pub loss: u64,
    /// Messages repeated.
    pub repeat: u64,
    /// Messages delayed for long.
    pub slow: u64,
    /// The longest of the long delays, in ms.
    pub slow_ms: u64,
    /// How often a partition begins, per worker and minute.
    pub partition: u64,
    /// How often a worker is paused between two instructions.
    pub pause: u64,
    /// The longest pause, in ms.
    pub pause_ms: u64,
    /// How often a worker crashes between two instructions.
    pub crash: u64,
    /// Of the crashes, how many take the host with them, so that no connection is closed.
    pub host: u64,
    /// How often the server crashes in a batch, before the commit or after it.
    pub server_crash: u64,
    /// How often the server is paused in a batch.
    pub server_pause: u64,
    /// How often a write of the server meets a full disk.
    pub disk_full: u64,
    /// How often the outcome of a commit is unknown.
    pub commit_unknown: u64,
    /// How often a call to the object store fails, or succeeds and says that it failed.
    pub blob_fault: u64,
    /// How often the server's wall clock jumps, per minute.
    pub clock_jump: u64,
    /// How far it jumps at most, either way, in ms.
    pub clock_jump_ms: u64,
    /// How far the workers' clocks drift at most, in parts per million.
    pub drift_ppm: u64,
    /// How often a rendering fails.
    pub render_fault: u64,
    /// How often a worker hands its job back.
    pub hand_back: u64,
    /// How often the dispatch layer lies, where it does.
    pub lies: u64,
    /// How often the customer's hook fails, or takes what it is told and says that it failed.
    pub receiver_fault: u64,
    /// How long people with a lock think between two steps at most, in ms. They do not renew: on a
    /// bad day their lease may run out.
    pub think_ms: u64,
}

impl Plan {
    /// Draws a plan.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed).fork("plan");
        let ttl_ms = dice.between(8, 30) * 1_000;
        let wanted = draw_wanted(&mut dice, ttl_ms);
        let heal_at_ms = dice.between(120, 240) * 1_000;
        let longest: u64 = wanted.iter().map(|wanted| wanted.render_ms).sum();
        // Some seeds know no fault of a kind at all, some know it often: swarms find more than
        // averages do.
        let mut rate = |most: u64| if dice.per_mille(400) { 0 } else { dice.between(1, most) };
        Self {
            loss: rate(150),
            repeat: rate(150),
            slow: rate(100),
            partition: rate(400),
            pause: rate(120),
            crash: rate(40),
            host: rate(600),
            server_crash: rate(20),
            server_pause: rate(10),
            disk_full: rate(20),
            commit_unknown: rate(20),
            blob_fault: rate(250),
            clock_jump: rate(300),
            drift_ppm: rate(2_000),
            render_fault: rate(100),
            hand_back: rate(60),
            lies: 150 + rate(500),
            // A stream of its own: older draws keep their meaning.
            receiver_fault: Dice::new(seed).fork("receiver").below(300),
            slow_ms: dice.between(2, 60) * 1_000,
            pause_ms: dice.between(ttl_ms / 2, ttl_ms * 4),
            clock_jump_ms: dice.between(1, 3_600) * 1_000,
            bytes_differ: dice.per_mille(700),
            losses_allowed: if dice.per_mille(300) { 3 } else { 1_000 },
            think_ms: 2_500,
            workers: usize::try_from(dice.between(2, 4)).expect("a small number"),
            bound_ms: ttl_ms * 30 + longest * 4 + 300_000,
            wanted,
            ttl_ms,
            heal_at_ms,
        }
    }

    /// What a run has in store: the seed's plan, or the same work with no fault at all.
    pub(crate) fn of(setting: Setting) -> Self {
        let drawn = Self::draw(setting.seed);
        if !setting.clean {
            return drawn;
        }
        Self {
            loss: 0,
            repeat: 0,
            slow: 0,
            partition: 0,
            pause: 0,
            crash: 0,
            host: 0,
            server_crash: 0,
            server_pause: 0,
            disk_full: 0,
            commit_unknown: 0,
            blob_fault: 0,
            clock_jump: 0,
            drift_ppm: 0,
            render_fault: 0,
            hand_back: 0,
            lies: 0,
            receiver_fault: 0,
            think_ms: 200,
            ..drawn
        }
    }
}

fn draw_wanted(dice: &mut Dice, ttl_ms: u64) -> Vec<Wanted> {
    let count = dice.between(3, 8);
    let mut wanted: Vec<Wanted> = Vec::new();
    for rendering in 0..count {
        wanted.push(Wanted {
            at_ms: dice.below(90_000),
            render_ms: dice.between(ttl_ms / 5, ttl_ms * 4 / 5),
            rendering,
            withdrawn_after_ms: None,
            target: rendering,
            is_extra: false,
        });
    }
    for _ in 0..dice.below(4) {
        let Some(first) = dice.pick(&wanted).cloned() else { break };
        let joins = dice.per_mille(500);
        wanted.push(Wanted {
            at_ms: dice.below(100_000),
            // Another export under the same name, or another wish for the same export.
            rendering: if joins { first.rendering } else { 1_000 + first.rendering },
            withdrawn_after_ms: dice.per_mille(400).then(|| dice.between(1, 30_000)),
            is_extra: true,
            ..first
        });
    }
    wanted
}
