//! Waiting for a resource that nobody in the history holds.

use palisade_core::Timestamp;

use super::attempt::{Attempt, Mark};
use super::resource::{Context, Resource, who};
use super::{Cause, Confidence, Finding, Kind, StoryLine};
use crate::words::{count, span};

/// Waiting for less than this is no stall, in ms.
const WAIT_MIN_MS: u64 = 600_000;
/// Fewer denials than this say nothing.
const DENIALS_MIN: u32 = 3;

/// Requests that had no answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered {
    pub(crate) first: Mark,
    pub(crate) worker: u32,
    pub(crate) count: u32,
}

impl Resource {
    /// At the end of the history: denials though no holder was ever seen, or requests that nobody
    /// answered though nobody held it.
    pub(crate) fn find_waits(&self, now: Timestamp, context: &Context<'_>) -> Option<Finding> {
        if !self.attempts.iter().all(Attempt::finished) {
            return None;
        }
        let denied = self.waiting.first.zip(self.waiting.last).filter(|(first, last)| {
            self.attempts.is_empty()
                && self.ghost.is_none()
                && self.waiting.count >= DENIALS_MIN
                && last.at.since_ms(first.at) >= WAIT_MIN_MS
        });
        if let Some((first, last)) = denied {
            let denials = count(u64::from(self.waiting.count), "time", "times");
            let headline = format!(
                "it was denied {denials} in {}, and no holder gave a sign of life",
                span(last.at.since_ms(first.at))
            );
            let story = vec![
                line(first, format!("{} is denied to others", context.name), true),
                line(last, format!("it is still denied, {denials} by now"), false),
            ];
            return Some(Self::wait(context, now, (headline, story)));
        }
        let unanswered = self.unanswered.filter(|unanswered| {
            now.since_ms(unanswered.first.at) >= WAIT_MIN_MS && self.holder.is_none()
        })?;
        let who = who(unanswered.worker, context.workers);
        let headline = format!(
            "{who} asked for it and had no answer in {}, though nobody held it",
            span(now.since_ms(unanswered.first.at))
        );
        let times = count(u64::from(unanswered.count), "request", "requests");
        let text = format!("{who} asks for {}; no answer follows ({times})", context.name);
        let mut finding =
            Self::wait(context, now, (headline, vec![line(unanswered.first, text, true)]));
        finding.workers = vec![who];
        Some(finding)
    }

    fn wait(
        context: &Context<'_>,
        now: Timestamp,
        (headline, story): (String, Vec<StoryLine>),
    ) -> Finding {
        Finding {
            kind: Kind::Stall,
            resource: context.name.to_owned(),
            workers: Vec::new(),
            cause: Cause::Unknown,
            confidence: Confidence::Possible,
            at: story.first().map_or(now, |line| line.at),
            until: now,
            cost_ms: 0,
            headline,
            story,
            prevented_by: "A lease that expires unless it is renewed, and a queue whose waiters \
                           are woken when it does.",
            landed: None,
        }
    }
}

fn line(mark: Mark, text: String, mistake: bool) -> StoryLine {
    StoryLine { at: mark.at, text, mistake, source: Some(mark.source) }
}
