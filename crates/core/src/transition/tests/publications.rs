//! Publications: whose outputs a name shows, whatever comes when. The oracle remembers the highest
//! submission that each name was given to.

use crate::{
    Digest, JobId, LeaseId, Number, ObjectKey,
    history::What,
    job::{JobState, PublicationOutcome},
    lease::Pair,
    object::{Condition, Content, NumberKind, Object, Standing, Write, write},
    transition::{Which, publish},
};

use super::world::{Told, Verb, World};

impl World {
    /// Carries out a publication, due or not, and checks what it came to. Answers the word.
    pub(super) fn publish(&mut self, id: JobId, number: Number) -> Option<&'static str> {
        let before = self.job(id).clone();
        let submission = before.submission(number).unwrap();
        let Some(asked) = submission.publication.clone() else {
            let applied = publish(before.clone(), number, None, (Number::MAX, self.now.at));
            assert!(applied.history.is_empty() && applied.answer.is_none());
            return None;
        };
        let due = before.completion.is_some()
            && submission.withdrawn_at.is_none()
            && asked.outcome.is_none();
        assert_eq!(before.publications_due().any(|one| one == number), due);
        let named = self.names.get(&asked.key).cloned();
        let fresh = (self.draw(), self.now.at);
        let applied = publish(before.clone(), number, named.as_ref(), fresh);
        assert_eq!(applied.history.is_empty(), !due, "it is carried out when due, and once");
        let after = self.settle(&before, applied);
        if let Some(object) = after.as_deref() {
            self.names.insert(asked.key.clone(), object.clone());
        }
        let state = self.job(id).submission(number).unwrap().publication_state();
        if !due {
            assert_eq!(after, None, "nothing is written that is not due");
            return state;
        }
        let highest = self.shown.get(&asked.key).copied();
        let of_grants = named.as_ref().is_some_and(|object| object.kind == NumberKind::Grants);
        match self.job(id).submission(number).unwrap().publication.as_ref().unwrap().outcome {
            Some(PublicationOutcome::WrongKind { .. }) => assert!(of_grants && after.is_none()),
            Some(PublicationOutcome::Superseded { fence, .. }) => {
                assert!(after.is_none() && highest == Some(fence) && number < fence);
            }
            Some(PublicationOutcome::Published { version, .. }) => {
                let object = after.expect("it is written");
                assert!(highest.is_none_or(|highest| highest < number), "none newer was there");
                assert_eq!((object.fence, object.last.number), (number, number));
                assert_eq!(object.last.version, version);
                let token = before.completed_by().unwrap();
                assert_eq!(object.content, Some(Content::Manifest { job: id, token }));
                self.shown.insert(asked.key, number);
            }
            None => panic!("what was due is decided"),
        }
        state
    }

    fn shows(&self, name: &str) -> JobId {
        match &self.names[&key(name)].content {
            Some(Content::Manifest { job, .. }) => *job,
            other => panic!("{other:?}"),
        }
    }

    fn wish_for(&mut self, rendering: u8, name: &str) -> (JobId, Number) {
        self.publish = Some(key(name));
        let (job, number, _) = self.submit(rendering, false);
        (job, number)
    }

    fn render(&mut self, job: JobId) {
        let pair = self.claim(job, "a").1.unwrap();
        let told = self.say(job, pair, Verb::Complete { outputs: 1, present: true });
        assert!(matches!(told, Ok(Told::Completed(_))));
    }
}

fn key(name: &str) -> ObjectKey {
    name.parse().unwrap()
}

#[test]
fn a_late_retry_of_mondays_export_never_overwrites_tuesdays() {
    let mut world = World::new();
    let (monday, first) = world.wish_for(0, "film");
    let pair = world.claim(monday, "a").1.unwrap();
    let kind = crate::job::FailureKind::Final;
    world.say(monday, pair, Verb::Fail { kind, chance: 0 }).unwrap();
    let (tuesday, second) = world.wish_for(1, "film");
    world.render(tuesday);
    assert_eq!(world.publish(tuesday, second), Some("published"));
    world.retry(monday, None).unwrap();
    world.render(monday);
    // Its grant is newer than all of Tuesday's, its wish is not.
    assert!(world.job(monday).completed_by() > world.job(tuesday).completed_by());
    assert_eq!(world.publish(monday, first), Some("superseded"));
    assert_eq!(world.shows("film"), tuesday);
    // Asked for again on Wednesday it is a newer wish, answered from what is there.
    let (same, third) = world.wish_for(0, "film");
    assert_eq!(same, monday);
    assert_eq!(world.publish(monday, third), Some("published"));
    assert_eq!(world.shows("film"), monday);
    assert_eq!(world.publish(tuesday, second), Some("published"), "it was, once");
    assert_eq!(world.shows("film"), monday);
}

#[test]
fn what_was_withdrawn_is_not_published_and_what_was_published_is_not_undone() {
    let mut world = World::new();
    let (job, first) = world.wish_for(0, "film");
    let (_, second) = world.wish_for(0, "clip");
    assert_eq!(world.publish(job, first), Some("pending"), "the job is not complete");
    world.render(job);
    assert_eq!(world.publish(job, first), Some("published"));
    world.cancel(job, Which::All).unwrap();
    assert_eq!(world.publish(job, second), Some("withdrawn"));
    assert_eq!(world.publish(job, first), Some("published"));
    assert!(world.names.contains_key(&key("film")) && !world.names.contains_key(&key("clip")));
}

#[test]
fn a_revived_wish_is_published_under_its_old_number() {
    let mut world = World::new();
    let (job, first) = world.wish_for(0, "film");
    world.cancel(job, Which::All).unwrap();
    assert_eq!(world.job(job).submissions[0].publication_state(), Some("withdrawn"));
    let (other, second) = world.wish_for(1, "film");
    world.render(other);
    world.publish(other, second);
    world.retry(job, Some(first)).unwrap();
    assert_eq!(world.job(job).state, JobState::Queued);
    world.render(job);
    assert_eq!(world.publish(job, first), Some("superseded"));
}

#[test]
fn a_name_that_grants_guard_is_not_published_over() {
    let mut world = World::new();
    let (job, number) = world.wish_for(0, "film");
    let content = Content::Blob {
        digest: Digest::of(b"theirs"),
        generation: Number::ZERO,
        size_bytes: 6,
        media_type: "text/plain".to_owned(),
    };
    let pair = Pair { token: world.draw(), lease_id: LeaseId(1) };
    let asked = Write { pair, op: 1, content: Some(content), condition: Condition::None };
    let fresh = (world.draw(), world.now.at);
    let theirs = write(&key("film"), None, asked, &Standing::Open, fresh).unwrap().object;
    world.names.insert(key("film"), theirs.clone());
    world.render(job);
    assert_eq!(world.publish(job, number), Some("wrong_kind"));
    assert_eq!(world.names[&key("film")], theirs);
}

#[test]
fn an_object_written_whose_outcome_was_not_told_is_told_its_own_version() {
    let mut world = World::new();
    let (job, number) = world.wish_for(0, "film");
    world.render(job);
    let before = world.job(job).clone();
    let first = (Number::new(700).unwrap(), world.now.at);
    let written = publish(before.clone(), number, None, first).answer.unwrap();
    let later = (Number::new(701).unwrap(), world.now.at);
    let again = publish(before, number, Some(&written), later);
    assert_eq!(again.answer, None, "the name is written once");
    let What::Published { version, .. } = again.history[0].what else { panic!("{again:?}") };
    assert_eq!(version, written.last.version);
}

#[test]
fn a_tombstone_keeps_out_what_is_older_and_takes_what_is_newer() {
    let mut world = World::new();
    let (job, old) = world.wish_for(0, "film");
    let (_, new) = world.wish_for(0, "film");
    world.render(job);
    world.publish(job, new);
    let tombstone = Object { content: None, ..world.names[&key("film")].clone() };
    world.names.insert(key("film"), tombstone);
    assert_eq!(world.publish(job, old), Some("superseded"));
    assert_eq!(world.names[&key("film")].content, None);
    let (_, newest) = world.wish_for(0, "film");
    assert_eq!(world.publish(job, newest), Some("published"));
}
