//! Jobs that wait in the queue for long: because nobody comes who can run them, or because others
//! are always taken first. A queue that is merely long is no fault.

use std::collections::BTreeMap;

use palisade_core::Timestamp;

use crate::findings::{Cause, Confidence, Finding, Kind, StoryLine};
use crate::words::{count, span};

/// Waiting for less than this is no stall, in ms.
const WAIT_MIN_MS: u64 = 600_000;

/// What is known of one recipe in one definition: workers come for exactly that.
#[derive(Debug, Default)]
struct Recipe {
    /// When a job of it was granted last.
    granted_at: Option<Timestamp>,
    /// Of the jobs that were granted, when the youngest became due.
    granted_due: Option<Timestamp>,
    /// The job that has waited longest, and since when.
    oldest: Option<(Timestamp, String)>,
    waiting: u64,
}

/// Looks at every job of a store, in any order. Memory follows the number of recipes.
#[derive(Debug, Default)]
pub struct Queue {
    recipes: BTreeMap<(String, String), Recipe>,
}

/// A job, as far as its waiting goes.
#[derive(Debug, Clone, Copy)]
pub struct QueuedJob<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its recipe, and the recipe's definition.
    pub recipe: (&'a str, &'a str),
    /// Since when it may be claimed, if it is queued.
    pub waits_since: Option<Timestamp>,
    /// When it could be claimed first.
    pub due: Timestamp,
    /// When it was granted last.
    pub granted_at: Option<Timestamp>,
}

impl Queue {
    /// Takes a job.
    pub fn job(&mut self, job: QueuedJob<'_>) {
        let key = (job.recipe.0.to_owned(), job.recipe.1.to_owned());
        let recipe = self.recipes.entry(key).or_default();
        if let Some(at) = job.granted_at {
            recipe.granted_at = recipe.granted_at.max(Some(at));
            recipe.granted_due = recipe.granted_due.max(Some(job.due));
        }
        if let Some(since) = job.waits_since {
            recipe.waiting += 1;
            if recipe.oldest.as_ref().is_none_or(|(oldest, _)| since < *oldest) {
                recipe.oldest = Some((since, job.id.to_owned()));
            }
        }
    }

    /// What was found, at most one for each recipe: its oldest job stands for all.
    pub fn finish(self, now: Timestamp) -> Vec<Finding> {
        let recipes = self.recipes.into_iter();
        recipes.filter_map(|((name, _), recipe)| recipe.stall(&name, now)).collect()
    }
}

impl Recipe {
    fn stall(self, name: &str, now: Timestamp) -> Option<Finding> {
        let (since, job) = self.oldest?;
        let waited_ms = now.since_ms(since);
        if waited_ms < WAIT_MIN_MS {
            return None;
        }
        let passed_over = self.granted_due.is_some_and(|due| due.since_ms(since) >= WAIT_MIN_MS);
        let nobody = self.granted_at.is_none_or(|at| at < since);
        let (why, confidence) = match (passed_over, nobody) {
            (true, _) => {
                (format!("younger jobs of {name:?} were granted meanwhile"), Confidence::Possible)
            }
            (false, true) => (
                format!("nobody who can run {name:?} was granted anything since"),
                Confidence::Likely,
            ),
            (false, false) => return None,
        };
        let others = match self.waiting {
            1 => String::new(),
            all => format!("; {} with it", count(all - 1, "other waits", "others wait")),
        };
        let line = |at, text, mistake| StoryLine { at, text, mistake, source: None };
        Some(Finding {
            kind: Kind::Stall,
            workers: Vec::new(),
            cause: Cause::Unknown,
            confidence,
            at: since,
            until: now,
            cost_ms: 0,
            headline: format!(
                "it has waited to be claimed for {}, and {why}{others}",
                span(waited_ms)
            ),
            story: vec![
                line(since, format!("{job} may be claimed"), true),
                line(now, format!("{job} is still queued: {why}"), false),
            ],
            resource: job,
            prevented_by: if passed_over {
                "More workers, or a priority that rises with the time that a job has waited."
            } else {
                "A worker that has the recipe in this very definition; `palisade workers` shows \
                 who is there."
            },
            landed: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, QueuedJob};
    use crate::findings::{Confidence, Finding, Kind};
    use palisade_core::Timestamp;

    const MINUTE_MS: u64 = 60_000;

    fn at(minutes: u64) -> Timestamp {
        Timestamp(1_000_000 + minutes * MINUTE_MS)
    }

    fn queued(id: &str, minutes: u64) -> QueuedJob<'_> {
        let (due, waits_since) = (at(minutes), Some(at(minutes)));
        QueuedJob { id, recipe: ("hd", "d1"), waits_since, due, granted_at: None }
    }

    fn granted(id: &str, due_min: u64, at_min: u64) -> QueuedJob<'_> {
        let recipe = ("hd", "d1");
        let granted_at = Some(at(at_min));
        QueuedJob { id, recipe, waits_since: None, due: at(due_min), granted_at }
    }

    fn found(jobs: &[QueuedJob<'_>], now_min: u64) -> Vec<Finding> {
        let mut queue = Queue::default();
        for job in jobs {
            queue.job(*job);
        }
        queue.finish(at(now_min))
    }

    #[test]
    fn jobs_that_nobody_can_run_are_told_once_by_the_oldest() {
        let jobs = [queued("j2", 20), queued("j1", 10), granted("j0", 0, 5)];
        let found = found(&jobs, 60);
        let [stall] = &found[..] else { panic!("{found:#?}") };
        assert_eq!((stall.kind, stall.resource.as_str()), (Kind::Stall, "j1"));
        assert_eq!(stall.confidence, Confidence::Likely);
        assert!(stall.headline.contains("50 min, and nobody who can run \"hd\""), "{stall:?}");
        assert!(stall.headline.ends_with("1 other waits with it"), "{stall:?}");
    }

    #[test]
    fn another_definition_of_the_recipe_helps_nobody() {
        let other = QueuedJob { recipe: ("hd", "d2"), ..granted("j9", 30, 30) };
        assert_eq!(found(&[queued("j1", 10), other], 60).len(), 1);
    }

    #[test]
    fn a_job_that_is_passed_over_is_told() {
        let found = found(&[queued("j1", 10), granted("j5", 40, 41)], 60);
        assert_eq!(found[0].confidence, Confidence::Possible);
        assert!(found[0].headline.contains("younger jobs"), "{found:?}");
    }

    #[test]
    fn a_long_queue_that_moves_is_no_fault() {
        assert_eq!(found(&[queued("j5", 10), granted("j1", 5, 55)], 60), []);
        assert_eq!(found(&[queued("j5", 55)], 60), [], "it has only come");
    }
}
