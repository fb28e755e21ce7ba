//! Publications: what is due is what the records say, and a name shows what was published under it
//! last.

use std::collections::BTreeMap;

use palisade_core::{
    JobId, Number, ObjectKey,
    job::{Job, PublicationOutcome},
    object::{Content, NumberKind, Object},
};

use super::{Checker, Rule};

/// What was asked to be published, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Names {
    due: BTreeMap<Number, JobId>,
    published: BTreeMap<Number, Publication>,
    /// The highest number that was published under each name.
    newest: BTreeMap<ObjectKey, Number>,
}

#[derive(Debug)]
struct Publication {
    job: JobId,
    key: ObjectKey,
    version: Number,
}

impl Checker {
    pub(super) fn note_publications(&mut self, job: &Job) {
        self.names.due.extend(job.publications_due().map(|number| (number, job.id)));
        for submission in &job.submissions {
            let number = submission.number;
            let Some(asked) = &submission.publication else { continue };
            match asked.outcome {
                Some(PublicationOutcome::Published { version, .. }) => {
                    let key = asked.key.clone();
                    let newest = self.names.newest.entry(key.clone()).or_insert(number);
                    *newest = (*newest).max(number);
                    let publication = Publication { job: job.id, key, version };
                    self.names.published.insert(number, publication);
                }
                Some(PublicationOutcome::Superseded { fence, .. }) if fence <= number => {
                    let text = format!("submission {number} came too late, by a fence at {fence}");
                    self.say(Rule::Publications, job.id.to_string(), text);
                }
                Some(_) | None => {}
            }
        }
    }

    /// Takes the list of publications that are due, all at once, after all jobs.
    pub fn publications_due(&mut self, listed: &BTreeMap<Number, JobId>) {
        let due = std::mem::take(&mut self.names.due);
        for (number, job) in due.iter().filter(|(number, _)| !listed.contains_key(number)) {
            let text = format!("submission {number} is to be published, and is not on the list");
            self.say(Rule::Publications, job.to_string(), text);
        }
        for (number, job) in listed.iter().filter(|(number, job)| due.get(number) != Some(job)) {
            let text = format!("submission {number} is on the list of what is to be published");
            self.say(Rule::Publications, job.to_string(), text);
        }
    }

    pub(super) fn check_name(&mut self, object: &Object) {
        if object.kind != NumberKind::Submissions {
            return;
        }
        let record = format!("object {}", object.key);
        let number = object.last.number;
        if object.fence != number {
            let text = format!("submission {number} has it, and its fence is {}", object.fence);
            self.say(Rule::Publications, record.clone(), text);
        }
        let shown = match &object.content {
            Some(Content::Manifest { job, .. }) => Some(*job),
            Some(Content::Blob { .. }) | None => None,
        };
        let stands = self.names.published.get(&number).is_some_and(|publication| {
            Some(publication.job) == shown
                && publication.key == object.key
                && publication.version == object.last.version
        });
        if !stands {
            let text = format!("submission {number} did not publish what it shows");
            self.say(Rule::Publications, record.clone(), text);
        }
        if let Some(newest) = self.names.newest.remove(&object.key).filter(|it| *it > number) {
            let text = format!("it shows submission {number}, though {newest} was published");
            self.say(Rule::Publications, record, text);
        }
    }

    /// Ends the looking at names, if all objects were shown.
    pub(super) fn finish_names(&mut self) {
        if !self.saw_objects {
            return;
        }
        for (key, number) in std::mem::take(&mut self.names.newest) {
            let text = format!("submission {number} was published, and there is no such object");
            self.say(Rule::Publications, format!("object {key}"), text);
        }
    }
}
