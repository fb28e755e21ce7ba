//! The collector: what is kept is never condemned, what is condemned is never named again, and
//! each step is done once, whoever takes it.

use palisade_core::{
    Digest, JobId, Number, Refusal,
    blob::{
        BlobState,
        collect::{Case, Stage},
    },
    history::{Joined, What},
    job::JobState,
    transition::Which,
};

use super::bench::Bench;
use crate::{
    Store, StoreExt,
    command::{
        BeginBlob, BlobPlace, Cancel, Collect, FinishBlob, ForgetBlobs, MarkCleared, Pin,
        ReleaseJobs, Retry,
    },
    query::{Cases, Query, Scan, View},
};

const GRACE_MS: u64 = 10_000;
const TOMBSTONE_MS: u64 = 50_000;
const KEEP_MS: u64 = 100_000;
/// Longer than the pins of what a bench brings.
const PAST_PINS_MS: u64 = 1_000_000_001;

/// Brings a blob that is pinned for a second.
async fn bring<S: Store>(bench: &Bench<S>, content: &str) -> BlobPlace {
    let digest = Digest::of(content.as_bytes());
    let pin = Pin::Until(bench.store.now().plus_ms(1_000));
    let begun = bench.store.run(BeginBlob { digest, pin }).await.expect("begun");
    if begun.present {
        return begun;
    }
    let size_bytes = content.len() as u64;
    let finish = FinishBlob { digest, generation: begun.generation, size_bytes };
    bench.store.run(finish).await.expect("finished")
}

fn named(place: BlobPlace) -> (Digest, Number) {
    (place.digest, place.generation)
}

/// What the walk finds, all stretches of it.
async fn unkept<S: Store>(bench: &Bench<S>, length: usize) -> Vec<(Digest, Number)> {
    let (mut found, mut after) = (Vec::new(), Number::ZERO);
    loop {
        match bench.store.query(Query::Unkept(Scan { after, length })).await {
            Ok(View::Unkept(blobs, next)) => {
                found.extend(blobs);
                let Some(next) = next else { return found };
                after = next;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// One round of the collector's: looks at all that seems unkept. Answers what it condemned.
async fn round<S: Store>(bench: &Bench<S>) -> Vec<(Digest, Number)> {
    let drop_pins = Collect { blobs: Vec::new(), grace_ms: GRACE_MS };
    bench.store.run(drop_pins).await.expect("pins are dropped");
    let blobs = unkept(bench, 100).await;
    bench.store.run(Collect { blobs, grace_ms: GRACE_MS }).await.expect("looked at").places
}

/// A round, the grace, and a round.
async fn condemned<S: Store>(bench: &Bench<S>) -> Vec<(Digest, Number)> {
    assert_eq!(round(bench).await, [], "nothing is condemned at first sight");
    bench.clock.advance_ms(GRACE_MS);
    round(bench).await
}

async fn cases<S: Store>(bench: &Bench<S>, stage: Stage) -> Vec<Case> {
    let asked = Cases { stage, until: bench.store.now(), limit: 100 };
    match bench.store.query(Query::Cases(asked)).await {
        Ok(View::Cases(cases)) => cases,
        other => panic!("{other:?}"),
    }
}

async fn state<S: Store>(bench: &Bench<S>, digest: Digest) -> Option<BlobState> {
    match bench.store.query(Query::Blob(digest)).await {
        Ok(View::Blob(blob)) => blob.map(|blob| blob.state),
        other => panic!("{other:?}"),
    }
}

/// Present or never finished: unkept for the whole grace, it is condemned.
pub async fn what_nobody_keeps_is_condemned_after_the_grace<S: Store>(bench: &Bench<S>) {
    let present = bring(bench, "present").await;
    let digest = Digest::of(b"never finished");
    let pin = Pin::Until(bench.store.now().plus_ms(1_000));
    let abandoned = bench.store.run(BeginBlob { digest, pin }).await.expect("begun");
    assert_eq!(round(bench).await, [], "they are pinned");
    assert_eq!(cases(bench, Stage::Idle).await, []);
    bench.clock.advance_ms(1_000);
    assert_eq!(condemned(bench).await, [named(present), named(abandoned)]);
    assert_eq!(state(bench, present.digest).await, Some(BlobState::Condemned));
    assert_eq!(cases(bench, Stage::Condemned).await.len(), 2);
    assert_eq!(round(bench).await, [], "it is condemned once");
}

/// Outputs, inputs and the pins of an open attempt.
pub async fn what_is_kept_is_never_condemned<S: Store>(bench: &Bench<S>) {
    let job = bench.new_job().await;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("complete");
    let waiting = bench.new_job().await;
    let open = bench.grant("alice").await;
    let pin = Pin::Attempt(open.job.id, open.pair);
    let digest = Digest::of(b"being brought");
    let begun = bench.store.run(BeginBlob { digest, pin }).await.expect("begun");
    bench.clock.advance_ms(PAST_PINS_MS);
    assert_eq!(condemned(bench).await, [], "all of it is kept");
    bench.store.run(Bench::<S>::release_of(&open)).await.expect("released");
    assert_eq!(condemned(bench).await, [named(begun)], "the pin ended with the attempt");
    for id in [job, waiting] {
        for input in bench.job(id).await.spec.inputs.values() {
            assert_eq!(state(bench, input.digest).await, Some(BlobState::Present));
        }
    }
}

/// Kept again in time, it is acquitted, and a later look begins anew.
pub async fn what_is_kept_again_in_time_is_acquitted<S: Store>(bench: &Bench<S>) {
    let place = bring(bench, "orphan").await;
    bench.clock.advance_ms(1_000);
    assert_eq!(round(bench).await, []);
    assert_eq!(cases(bench, Stage::Idle).await.len(), 1);
    bench.clock.advance_ms(GRACE_MS - 1);
    assert_eq!(named(bring(bench, "orphan").await), named(place), "it is there, and pinned");
    bench.clock.advance_ms(1);
    assert_eq!(round(bench).await, []);
    assert_eq!(cases(bench, Stage::Idle).await, [], "its case is closed");
    bench.clock.advance_ms(1_000);
    assert_eq!(condemned(bench).await, [named(place)]);
}

/// The collector decides and pauses; a writer brings the same bytes; the collector wakes.
pub async fn an_orphan_reused_while_the_collector_paused_has_a_place_of_its_own<S: Store>(
    bench: &Bench<S>,
) {
    let old = bring(bench, "orphan").await;
    bench.clock.advance_ms(1_000);
    assert_eq!(condemned(bench).await, [named(old)]);
    let new = bring(bench, "orphan").await;
    assert!(new.generation > old.generation && new.present, "{new:?}");
    let late = FinishBlob { digest: old.digest, generation: old.generation, size_bytes: 6 };
    assert_eq!(bench.refused(late).await.code(), "stale_generation");
    // What was seen before the decision is looked at again: the paused collector asks in vain.
    let stale = Collect { blobs: vec![named(old), named(new)], grace_ms: 0 };
    assert_eq!(bench.store.run(stale).await.expect("looked at").places, []);
    let clear = MarkCleared { places: vec![named(old), named(new)] };
    assert_eq!(bench.store.run(clear).await.expect("marked").places, [named(old)]);
    assert_eq!(state(bench, new.digest).await, Some(BlobState::Present));
}

/// Not before its place was cleared, and not before its time; two collectors do it once.
pub async fn a_tombstone_stands_until_its_time_is_over<S: Store>(bench: &Bench<S>) {
    let old = bring(bench, "orphan").await;
    bench.clock.advance_ms(1_000);
    condemned(bench).await;
    let places = vec![named(old)];
    let forget = ForgetBlobs { places: places.clone(), tombstone_ms: TOMBSTONE_MS };
    bench.clock.advance_ms(TOMBSTONE_MS);
    assert_eq!(bench.store.run(forget.clone()).await.expect("asked").places, [], "not cleared");
    let clear = MarkCleared { places };
    assert_eq!(bench.store.run(clear.clone()).await.expect("marked").places, [named(old)]);
    assert_eq!(bench.store.run(clear).await.expect("marked").places, [], "once");
    let early = ForgetBlobs { tombstone_ms: TOMBSTONE_MS + 1, ..forget.clone() };
    assert_eq!(bench.store.run(early).await.expect("asked").places, [], "too early");
    assert_eq!(cases(bench, Stage::Cleared).await.len(), 1);
    let new = bring(bench, "orphan").await;
    assert_eq!(bench.store.run(forget.clone()).await.expect("asked").places, [named(old)]);
    assert_eq!(bench.store.run(forget).await.expect("asked").places, [], "once");
    assert_eq!(cases(bench, Stage::Cleared).await, []);
    assert_eq!(state(bench, old.digest).await, Some(BlobState::Present), "the newer one stays");
    let again = FinishBlob { digest: old.digest, generation: old.generation, size_bytes: 6 };
    assert_eq!(bench.refused(again).await.code(), "stale_generation");
    assert!(bring(bench, "other").await.generation > new.generation);
}

/// A walk in stretches of any length finds each one once.
pub async fn a_walk_in_stretches_finds_everything_once<S: Store>(bench: &Bench<S>) {
    for number in 0..7 {
        bring(bench, &format!("orphan {number}")).await;
    }
    bench.clock.advance_ms(1_000);
    round(bench).await;
    let whole = unkept(bench, 100).await;
    assert_eq!(whole.len(), 7);
    for length in [1, 2, 7, 8] {
        assert_eq!(unkept(bench, length).await, whole, "in stretches of {length}");
    }
}

async fn past_jobs<S: Store>(bench: &Bench<S>) -> Vec<JobId> {
    let (mut found, mut after) = (Vec::new(), Number::ZERO);
    let until = bench.store.now();
    loop {
        let scan = Scan { after, length: 2 };
        match bench.store.query(Query::PastJobs { scan, until }).await {
            Ok(View::PastJobs(jobs, next)) => {
                found.extend(jobs);
                let Some(next) = next else { return found };
                after = next;
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn release<S: Store>(bench: &Bench<S>) -> Vec<JobId> {
    let jobs = past_jobs(bench).await;
    let release = ReleaseJobs { jobs, keep_ms: KEEP_MS };
    bench.store.run(release).await.expect("released").jobs
}

/// Complete, failed and cancelled ones; not those that wait or run, and each once.
pub async fn jobs_past_their_time_let_go_of_what_they_kept<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let complete = bench.submit(&wish).await.job;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("complete");
    let cancelled = bench.new_job().await;
    let cancel = Cancel { job: cancelled, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("cancelled");
    let waiting = bench.new_job().await;
    bench.clock.advance_ms(KEEP_MS - 1);
    assert_eq!(release(bench).await, [], "not yet");
    bench.clock.advance_ms(1);
    assert_eq!(release(bench).await, [complete, cancelled]);
    assert_eq!((release(bench).await, past_jobs(bench).await), (vec![], vec![]), "once");
    let output = bench.job(complete).await.completion.expect("complete").manifest.outputs[0].digest;
    bench.clock.advance_ms(PAST_PINS_MS);
    let gone = condemned(bench).await;
    assert!(gone.iter().any(|(digest, _)| *digest == output), "{gone:?}");
    let kept = bench.job(waiting).await.spec.inputs.into_values().next().expect("one").digest;
    assert_eq!(state(bench, kept).await, Some(BlobState::Present));
    let Ok(View::History(told)) = bench.store.query(Query::History(complete)).await else {
        panic!("a history is asked for")
    };
    assert!(told.iter().any(|(_, event)| event.what == What::Released), "the journal tells");
    // What is gone answers nobody: the input has to be brought again, and a new job renders.
    let source = wish.spec.inputs.values().next().expect("one").digest;
    assert_eq!(state(bench, source).await, Some(BlobState::Condemned));
}

/// Answered from the cache, the outputs are wanted again, and kept again.
pub async fn a_wish_answered_by_a_released_job_keeps_its_outputs_again<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let job = bench.submit(&wish).await.job;
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("complete");
    bench.clock.advance_ms(KEEP_MS);
    assert_eq!(release(bench).await, [job]);
    let again = bench.submit(&wish).await;
    assert_eq!((again.job, again.how), (job, Joined::Cached));
    assert_eq!(release(bench).await, [], "its time begins anew");
    bench.clock.advance_ms(PAST_PINS_MS);
    let output = bench.job(job).await.completion.expect("complete").manifest.outputs[0].digest;
    let gone = condemned(bench).await;
    assert!(gone.iter().all(|(digest, _)| *digest != output), "{gone:?}");
    assert_eq!(release(bench).await, [job], "until it is over again");
    assert!(condemned(bench).await.iter().any(|(digest, _)| *digest == output));
}

/// Its inputs are kept again when they are there; else it says which are not.
pub async fn a_retry_of_a_released_job_needs_its_inputs<S: Store>(bench: &Bench<S>) {
    let submitted = bench.submit(&bench.wish().await).await;
    let job = submitted.job;
    let cancel = Cancel { job, which: Which::All, request_id: None };
    bench.store.run(cancel.clone()).await.expect("cancelled");
    bench.clock.advance_ms(KEEP_MS);
    assert_eq!(release(bench).await, [job]);
    let retry = Retry { job, submission: Some(submitted.submission), request_id: None };
    bench.store.run(retry.clone()).await.expect("the input is still there");
    bench.clock.advance_ms(PAST_PINS_MS);
    assert_eq!(condemned(bench).await, [], "it keeps its input again");
    bench.store.run(cancel).await.expect("cancelled again");
    bench.clock.advance_ms(KEEP_MS);
    assert_eq!(release(bench).await, [job]);
    assert_eq!(condemned(bench).await.len(), 1);
    let input = bench.job(job).await.spec.inputs.into_values().next().expect("one").digest;
    let Refusal::MissingBlob { field, digests } = bench.refused(retry).await else {
        panic!("the input is gone")
    };
    assert_eq!((field.as_str(), digests), ("inputs", vec![input]));
    assert_eq!(bench.job(job).await.state, JobState::Cancelled);
}
