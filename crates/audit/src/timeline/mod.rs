//! One resource as a picture: a lane for each worker, with its lease windows, renewals, pauses,
//! expiry and takeover, and its effects, landed or refused.
//!
//! [`Builder`] collects what is to be seen; [`draw_text`] shows it in a terminal, [`draw_svg`] in
//! a browser; [`timeline_json`] hands it to programs.

mod axis;
mod builder;
mod collector;
mod json;
mod svg;
mod text;

pub use builder::Builder;
pub use collector::Collector;
pub use json::timeline_json;
pub use svg::draw_svg;
pub(crate) use svg::escaped;
pub use text::draw_text;

use palisade_core::Timestamp;

/// How a timeline is shown in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns to fill, 60 at least.
    pub width: usize,
    /// Whether to use colour.
    pub colour: bool,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins.
    pub from: Timestamp,
    /// Where it ends.
    pub to: Timestamp,
}

/// A lease as long as it was its worker's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// From the grant to its end.
    pub stretch: Stretch,
    /// The last that was heard of the worker in it.
    pub last_sign: Timestamp,
    /// The grant's token.
    pub token: Option<u64>,
    /// How it ended.
    pub ended: WindowEnd,
}

/// How a lease window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// Given up, or its work completed.
    GivenUp,
    /// Its time was over.
    RanOut,
    /// Another was granted the resource while it still ran.
    Cut,
    /// It still ran at the end.
    Open,
}

/// What is marked on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Progress, or a start.
    Work,
    /// A denial.
    Denied,
    /// A renewal.
    Renewed,
    /// The lease was given up.
    Released,
    /// The worker called the work complete.
    Completed,
    /// A renewal that failed.
    RenewFailed,
    /// The worker's process ended.
    Exited,
    /// The lease ran out or was taken back.
    Expired,
    /// The grant.
    Granted,
    /// An effect that landed under a lease.
    Landed,
    /// An effect that was refused.
    Refused,
    /// An effect that landed though the lease was another's.
    LandedLate,
}

/// A mark on a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// What.
    pub sign: Sign,
    /// The token, of a grant or an effect.
    pub token: Option<u64>,
    /// Which effect.
    pub label: Option<String>,
}

/// All of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Its name.
    pub worker: String,
    /// Where it waited for the resource.
    pub waits: Vec<Stretch>,
    /// Its leases.
    pub windows: Vec<Window>,
    /// Where it was at work without one.
    pub trespasses: Vec<Stretch>,
    /// Where it stood still.
    pub pauses: Vec<Stretch>,
    /// What is marked, in the order of time.
    pub marks: Vec<Mark>,
}

/// The resource passed from one worker to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takeover {
    /// When.
    pub at: Timestamp,
    /// The lane that lost it.
    pub from_lane: usize,
    /// The lane that has it now.
    pub to_lane: usize,
}

/// The lanes' names, fit for `width` characters: what all of them share at the end, then at the
/// start, is left out first.
fn short_names(lanes: &[&Lane], width: usize) -> Vec<String> {
    let mut names: Vec<String> = lanes.iter().map(|lane| lane.worker.clone()).collect();
    let longest = |names: &[String]| names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    if names.len() > 1 && longest(&names) > width {
        let suffix = shared(&names, |name| Box::new(name.chars().rev()));
        for name in &mut names {
            let keep = name.chars().count() - suffix;
            *name = name.chars().take(keep).chain((suffix > 0).then_some('…')).collect();
        }
    }
    if names.len() > 1 && longest(&names) > width {
        let prefix = shared(&names, |name| Box::new(name.chars()));
        for name in &mut names {
            let rest = name.chars().skip(prefix);
            *name = (prefix > 0).then_some('…').into_iter().chain(rest).collect();
        }
    }
    names.into_iter().map(|name| cut(&name, width)).collect()
}

/// How many characters all names share at one end, short of a whole name and of a word's middle.
fn shared(names: &[String], side: fn(&str) -> Box<dyn Iterator<Item = char> + '_>) -> usize {
    let first: Vec<char> = side(&names[0]).collect();
    let common = |name: &String| first.iter().zip(side(name)).take_while(|(a, b)| *a == b).count();
    let most = names.iter().map(common).min().unwrap_or(0);
    let boundary = |length: &usize| {
        *length == 0 || matches!(first[*length - 1], '.' | '-' | '_' | ':' | '/' | '@')
    };
    (0..=most).rev().find(boundary).unwrap_or(0)
}

/// The end of a name that is too long: names of one fleet differ at their ends.
fn cut(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    std::iter::once('…').chain(name.chars().skip(length + 1 - width)).collect()
}

/// One resource as a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Its name.
    pub resource: String,
    /// All that is shown lies within.
    pub stretch: Stretch,
    /// One for each worker, in the order of their appearance.
    pub lanes: Vec<Lane>,
    /// Where it passed on.
    pub takeovers: Vec<Takeover>,
    /// Entries beyond what a picture holds.
    pub left_out: u64,
}

#[cfg(test)]
mod tests;
