//! Three workers make the same bytes for three jobs, while a collector runs that may pause between its
//! decision and its delete. Object stores delete without a condition.

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, Number,
    blob::{BlobState, collect::Stage},
    job::{Failure as Report, FailureKind},
    lease::Pair,
};
use palisade_store::command::{
    Answer, BeginBlob, Collect, Command, Fail, FinishBlob, ForgetBlobs, MarkCleared, Pin,
};
use palisade_store::tables::Keeper;

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench,
    search::{Fingerprint, Model},
};

/// How often the collector looks: a generation has to be seen unkept twice.
const COLLECTIONS_MAX: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Rendered,
    Told { generation: Number, present: bool },
    Uploaded(Number),
    Ready,
    Over,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    people: [(JobId, Pair, At); 3],
    /// The object store: which places have the bytes.
    places: BTreeSet<Number>,
    /// Deletes that the collector has decided, and not carried out.
    condemned: BTreeSet<Number>,
    /// Uploads of workers that gave up, which may still arrive.
    late: BTreeSet<Number>,
    /// Pins whose time was over before their attempt was.
    pins_ended: u8,
    collections: u8,
    begins: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Begin(usize),
    Upload(usize),
    Finish(usize),
    Complete(usize),
    GiveUp(usize),
    /// The collector looks.
    Collect,
    Delete(Number),
    /// It clears the place of a generation once more, and forgets it.
    Forget(Number),
    Late(Number),
    PinEnds(usize),
}

/// The model.
pub(super) struct Blobs {
    pub(super) broken: Option<Sabotage>,
}

fn digest() -> Digest {
    bench::content_of(0)
}

impl Blobs {
    /// Where a generation's bytes are.
    fn place(&self, generation: Number) -> Number {
        let reused = self.broken == Some(Sabotage::GenerationReused);
        if reused { Number::ZERO } else { generation }
    }

    /// A worker asks where its bytes go.
    fn begin_blob(&self, state: &mut State, worker: usize) -> Result<(), String> {
        let (job, pair, _) = state.people[worker];
        let begin = BeginBlob { digest: digest(), pin: Pin::Attempt(job, pair) };
        let Some(Answer::BeginBlob(place)) = state.apply(&Command::BeginBlob(begin)) else {
            return Ok(());
        };
        let (generation, present) = (place.generation, place.present);
        let pin = (Keeper::Attempt(pair.token), digest(), generation);
        if self.broken == Some(Sabotage::UploadNotPinned) {
            state.engine.live.keepers.remove(&pin);
        }
        if !state.engine.live.keepers.contains(&pin) {
            return Err(format!("token {} was told a place, unpinned", pair.token));
        }
        state.people[worker].2 = At::Told { generation, present };
        Ok(())
    }
}

impl State {
    fn apply(&mut self, command: &Command) -> Option<Answer> {
        let answer = self.engine.apply(command, bench::BEGIN).ok();
        self.engine.commit();
        self.engine.forget_journal();
        answer
    }

    /// The collector's transaction: it looks at the newest generation, notes that nothing keeps it
    /// or, at the next look, condemns it.
    fn collect(&mut self) {
        let Some(blob) = self.engine.live.newest_blob(digest()) else { return };
        let collect = Collect { blobs: vec![(blob.digest, blob.generation)], grace_ms: 0 };
        if let Some(Answer::Collect(done)) = self.apply(&Command::Collect(collect)) {
            self.condemned.extend(done.places.iter().map(|(_, generation)| *generation));
        }
    }

    /// Generations whose place was cleared, and which are not forgotten.
    fn cleared(&self) -> impl Iterator<Item = Number> {
        let cases = self.engine.live.cases.values().filter(|case| case.stage == Stage::Cleared);
        cases.map(|case| case.generation)
    }
}

impl Model for Blobs {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        let people = [0, 1, 2].map(|worker| {
            bench::submitted(&mut engine, worker as u64);
            let claim = Command::Claim(bench::claim(worker, 1, 0));
            let Ok(Answer::Claim(claimed)) = engine.apply(&claim, bench::BEGIN) else {
                panic!("a queued job can be claimed")
            };
            let grant = &claimed.grants[0];
            (grant.job.id, grant.pair, At::Rendered)
        });
        engine.commit();
        engine.forget_journal();
        State {
            engine,
            people,
            places: BTreeSet::new(),
            condemned: BTreeSet::new(),
            late: BTreeSet::new(),
            pins_ended: 0,
            collections: 0,
            begins: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, (_, _, at)) in state.people.iter().enumerate() {
            match at {
                At::Rendered if state.begins < 5 => actions.push(Action::Begin(worker)),
                At::Rendered | At::Over => {}
                At::Told { present: false, .. } => actions.push(Action::Upload(worker)),
                At::Uploaded(_) => actions.push(Action::Finish(worker)),
                At::Told { present: true, .. } | At::Ready => {
                    actions.push(Action::Complete(worker));
                }
            }
            if *at != At::Over {
                actions.push(Action::GiveUp(worker));
            }
            if state.pins_ended < 1 && matches!(at, At::Told { .. } | At::Ready) {
                actions.push(Action::PinEnds(worker));
            }
        }
        if state.collections < COLLECTIONS_MAX {
            actions.push(Action::Collect);
        }
        actions.extend(state.cleared().map(Action::Forget));
        actions.extend(state.condemned.iter().copied().map(Action::Delete));
        actions.extend(state.late.iter().copied().map(Action::Late));
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Begin(worker) => {
                state.begins += 1;
                self.begin_blob(&mut state, worker)?;
            }
            Action::Upload(worker) => {
                let At::Told { generation, .. } = state.people[worker].2 else { return Ok(state) };
                state.places.insert(self.place(generation));
                state.people[worker].2 = At::Uploaded(generation);
            }
            Action::Finish(worker) => {
                let At::Uploaded(generation) = state.people[worker].2 else { return Ok(state) };
                let finish = FinishBlob { digest: digest(), generation, size_bytes: 1 };
                let done = state.apply(&Command::FinishBlob(finish)).is_some();
                // Refused: the upload starts again.
                state.people[worker].2 = if done { At::Ready } else { At::Rendered };
            }
            Action::Complete(worker) => {
                let (job, pair, _) = state.people[worker];
                let done = state.apply(&bench::complete(job, pair, digest())).is_some();
                state.people[worker].2 = if done { At::Over } else { At::Rendered };
            }
            Action::GiveUp(worker) => {
                let (job, pair, _) = state.people[worker];
                let failure = Report {
                    reason: "disk_full".to_owned(),
                    message: "no room".to_owned(),
                    kind: FailureKind::Final,
                };
                state.apply(&Command::Fail(Fail { job, pair, failure, chance: 0 }));
                if let At::Told { generation, present: false } = state.people[worker].2 {
                    state.late.insert(generation);
                }
                state.people[worker].2 = At::Over;
            }
            Action::PinEnds(worker) => {
                state.pins_ended += 1;
                let token = state.people[worker].1.token;
                let pin = Keeper::Attempt(token);
                state.engine.live.keepers.retain(|(keeper, _, _)| *keeper != pin);
                state.engine.commit_anyway();
            }
            Action::Late(generation) => {
                state.late.remove(&generation);
                state.places.insert(self.place(generation));
            }
            Action::Collect => {
                state.collections += 1;
                state.collect();
            }
            Action::Delete(generation) => {
                state.condemned.remove(&generation);
                state.places.remove(&self.place(generation));
                let places = vec![(digest(), generation)];
                state.apply(&Command::MarkCleared(MarkCleared { places }));
            }
            Action::Forget(generation) => {
                state.places.remove(&self.place(generation));
                let (places, tombstone_ms) = (vec![(digest(), generation)], 0);
                state.apply(&Command::ForgetBlobs(ForgetBlobs { places, tombstone_ms }));
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(&state.people, &state.places, &state.condemned, &state.late));
        into.take(&(state.pins_ended, state.collections, state.begins));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let pinned = state.engine.live.keepers.iter().find(|(keeper, digest, generation)| {
            let row = state.engine.live.blobs.get(&(*digest, *generation));
            let condemned = row.is_some_and(|blob| blob.state == BlobState::Condemned);
            matches!(keeper, Keeper::Attempt(_)) && condemned
        });
        if let Some((_, _, generation)) = pinned {
            return Some(format!("generation {generation} is pinned, and condemned"));
        }
        let complete = state.engine.live.jobs.values().find(|job| job.completion.is_some())?;
        let blob = state.engine.live.newest_blob(digest());
        let there = blob.is_some_and(|blob| {
            blob.state == BlobState::Present && state.places.contains(&self.place(blob.generation))
        });
        (!there).then(|| format!("{} is complete, and its bytes are not there", complete.id))
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        const NAMES: [&str; 3] = ["A", "B", "C"];
        match *action {
            Action::Begin(worker) => format!("{} asks for the blob's place", NAMES[worker]),
            Action::Upload(worker) => format!("{} brings the bytes", NAMES[worker]),
            Action::Finish(worker) => format!("{} says that they are there", NAMES[worker]),
            Action::Complete(worker) => format!("{} commits", NAMES[worker]),
            Action::GiveUp(worker) => format!("{} gives up", NAMES[worker]),
            Action::PinEnds(worker) => format!("{}'s pin ends early", NAMES[worker]),
            Action::Late(generation) => format!("a late upload brings generation {generation}"),
            Action::Collect => "the collector looks, decides, and pauses".to_owned(),
            Action::Delete(generation) => format!("the collector deletes generation {generation}"),
            Action::Forget(generation) => format!("the collector forgets generation {generation}"),
        }
    }
}
