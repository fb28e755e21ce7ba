//! Publications: what a name shows, whoever carries them out and whatever comes late.

use palisade_core::{
    Digest, JobId, LeaseId, Number, ObjectKey,
    history::What,
    job::PublicationOutcome,
    lease::Pair,
    manifest::Manifest,
    object::{Condition, Content, Object},
    transition::{Which, Wish},
};

use crate::{
    Failure, Store, StoreExt,
    command::{
        Cancel, Command, Complete, DeleteObject, Publish, PutObject, RaiseObject, Retry, Submit,
        Submitted,
    },
    query::{Query, Resolved, View},
};

use super::{
    bench::{Bench, manifest, request},
    locks::hold,
};

const NAME: &str = "exports/film";

/// A name.
pub fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

/// A wish to have the outputs under a name.
pub fn named(wish: Wish, name: &str) -> Wish {
    Wish { publish: Some(key(name)), ..wish }
}

async fn submit_as<S: Store>(bench: &Bench<S>, name: &str) -> Submitted {
    let wish = named(bench.wish().await, name);
    bench.submit(&wish).await
}

/// Renders whatever is queued.
async fn render<S: Store>(bench: &Bench<S>) {
    let grant = bench.grant("alice").await;
    bench.store.run(bench.complete_of(&grant).await).await.expect("it completes");
}

/// Carries out what is due. Answers the submissions.
async fn publish<S: Store>(bench: &Bench<S>) -> Vec<Number> {
    let projected = bench.store.run(Publish { limit: 100 }).await.expect("anybody may");
    assert!(!projected.more);
    projected.carried_out.into_iter().map(|(_, submission)| submission).collect()
}

async fn state<S: Store>(bench: &Bench<S>, submitted: &Submitted) -> &'static str {
    let job = bench.job(submitted.job).await;
    let submission = job.submission(submitted.submission).expect("it is there");
    submission.publication_state().expect("it asked for one")
}

async fn object<S: Store>(bench: &Bench<S>, name: &str) -> Option<Object> {
    match bench.store.query(Query::Object(key(name))).await {
        Ok(View::Object(object)) => object.map(|object| *object),
        other => panic!("{other:?}"),
    }
}

async fn resolve<S: Store>(bench: &Bench<S>, text: &str) -> Option<Resolved> {
    match bench.store.query(Query::Resolve(key(text))).await {
        Ok(View::Resolve(resolved)) => resolved.map(|resolved| *resolved),
        other => panic!("{other:?}"),
    }
}

/// The job whose outputs a name shows, with the number that wrote.
async fn shown<S: Store>(bench: &Bench<S>, name: &str) -> Option<(JobId, Number)> {
    let object = object(bench, name).await?;
    match object.content? {
        Content::Manifest { job, .. } => Some((job, object.last.number)),
        Content::Blob { .. } => panic!("a holder's"),
    }
}

/// Committed, then projected; and projected again, nothing is left to do.
pub async fn a_commit_is_published_by_whoever_comes_first<S: Store>(bench: &Bench<S>) {
    let submitted = submit_as(bench, NAME).await;
    assert_eq!(publish(bench).await, []);
    render(bench).await;
    assert_eq!((state(bench, &submitted).await, shown(bench, NAME).await), ("pending", None));
    assert_eq!(publish(bench).await, [submitted.submission]);
    assert_eq!(state(bench, &submitted).await, "published");
    let job = bench.job(submitted.job).await;
    let object = object(bench, NAME).await.expect("it is there");
    assert_eq!((object.fence, object.last.number), (submitted.submission, submitted.submission));
    let outcome = job.submissions[0].publication.as_ref().and_then(|one| one.outcome);
    let version = object.last.version;
    let at = bench.store.now();
    assert_eq!(outcome, Some(PublicationOutcome::Published { version, at }));
    let read = resolve(bench, NAME).await.expect("it is read");
    assert_eq!(read.manifest, job.completion.map(|completion| completion.manifest));
    assert_eq!(publish(bench).await, [], "it is carried out once");
    let Ok(View::History(history)) = bench.store.query(Query::History(job.id)).await else {
        panic!("each query is answered by its own kind")
    };
    let told = history.iter().filter(|(_, event)| matches!(event.what, What::Published { .. }));
    assert_eq!(told.count(), 1);
}

/// Where no server runs it at once, time does; and a little at a time.
pub async fn a_tick_carries_out_what_is_due<S: Store>(bench: &Bench<S>) {
    let mut submitted = Vec::new();
    for index in 0..3 {
        submitted.push(submit_as(bench, &format!("films/{index}")).await);
        render(bench).await;
    }
    let first = bench.store.run(Publish { limit: 1 }).await.expect("anybody may");
    assert_eq!(first.carried_out, [(submitted[0].job, submitted[0].submission)]);
    assert!(first.more, "the oldest goes first, and others are waiting");
    bench.store.execute(vec![Command::Tick]).await;
    for one in &submitted {
        assert_eq!(state(bench, one).await, "published");
    }
    assert_eq!(publish(bench).await, []);
}

/// Several servers look at once.
pub async fn publications_are_carried_out_once_however_many_try<S: Store + 'static>(
    bench: &std::sync::Arc<Bench<S>>,
) {
    let mut expected = Vec::new();
    for index in 0..8 {
        expected.push(submit_as(bench, &format!("films/{}", index % 3)).await.submission);
        render(bench).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let bench = std::sync::Arc::clone(bench);
        tasks.spawn(async move {
            let mut done = Vec::new();
            for _ in 0..4 {
                let projected = bench.store.run(Publish { limit: 2 }).await.expect("anybody may");
                done.extend(projected.carried_out.into_iter().map(|(_, number)| number));
            }
            done
        });
    }
    let mut done: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    // Those that each passed over because another had them in its hands, and then let them go.
    done.extend(publish(bench).await);
    done.sort_unstable();
    assert_eq!(done, expected, "each once");
    for (index, newest) in [(0, 6), (1, 7), (2, 5)] {
        let (_, number) = shown(bench, &format!("films/{index}")).await.expect("it is shown");
        assert_eq!(number, expected[newest]);
    }
}

/// The submission owns what is projected: one rendering, three names.
pub async fn joined_and_cached_submissions_have_names_of_their_own<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let made = bench.submit(&named(wish.clone(), "one")).await;
    let joined = bench.submit(&named(wish.clone(), "two")).await;
    let nameless = bench.submit(&wish).await;
    render(bench).await;
    assert_eq!(publish(bench).await, [made.submission, joined.submission]);
    let cached = bench.submit(&named(wish, "three")).await;
    assert_eq!(state(bench, &cached).await, "pending");
    assert_eq!(publish(bench).await, [cached.submission]);
    for (name, submitted) in [("one", made), ("two", joined), ("three", cached)] {
        assert_eq!(shown(bench, name).await, Some((made.job, submitted.submission)), "{name}");
    }
    let job = bench.job(made.job).await;
    let nameless = job.submission(nameless.submission).expect("it is there");
    assert_eq!(nameless.publication_state(), None);
}

/// Monday's export fails, Tuesday's is published, Monday's is retried late; on Wednesday it is
/// asked for again.
pub async fn a_late_retry_never_overwrites_a_newer_submission<S: Store>(bench: &Bench<S>) {
    let mut wish = named(bench.wish().await, NAME);
    wish.retry.failures_allowed = 1;
    let monday = bench.submit(&wish).await;
    let grant = bench.grant("alice").await;
    bench.store.run(Bench::<S>::fail_of(&grant)).await.expect("a failure is taken");
    let tuesday = submit_as(bench, NAME).await;
    render(bench).await;
    publish(bench).await;
    let retry = Retry { job: monday.job, submission: None, request_id: None };
    bench.store.run(retry).await.expect("it may be tried again");
    render(bench).await;
    assert_eq!(publish(bench).await, [monday.submission]);
    assert_eq!(state(bench, &monday).await, "superseded");
    assert_eq!(shown(bench, NAME).await, Some((tuesday.job, tuesday.submission)));
    let wednesday = bench.submit(&wish).await;
    assert_eq!(wednesday.job, monday.job);
    publish(bench).await;
    assert_eq!(state(bench, &wednesday).await, "published");
    assert_eq!(shown(bench, NAME).await, Some((monday.job, wednesday.submission)));
    assert_eq!(state(bench, &tuesday).await, "published", "it was, once");
}

/// The publishing transaction looks. What is published already is not undone.
pub async fn what_was_withdrawn_after_the_commit_is_not_published<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let kept = bench.submit(&named(wish.clone(), "kept")).await;
    let withdrawn = bench.submit(&named(wish, "withdrawn")).await;
    render(bench).await;
    let which = Which::One(withdrawn.submission);
    let cancel = Cancel { job: withdrawn.job, which, request_id: None };
    bench.store.run(cancel).await.expect("it is withdrawn");
    assert_eq!(publish(bench).await, [kept.submission]);
    assert_eq!(state(bench, &withdrawn).await, "withdrawn");
    assert_eq!(object(bench, "withdrawn").await, None);
    let cancel = Cancel { job: kept.job, which: Which::All, request_id: None };
    bench.store.run(cancel).await.expect("it is withdrawn");
    assert_eq!(state(bench, &kept).await, "published");
    assert_eq!(shown(bench, "kept").await, Some((kept.job, kept.submission)));
}

fn put(name: &str, pair: Pair, digest: Digest) -> PutObject {
    PutObject {
        key: key(name),
        pair,
        op: 1,
        digest,
        generation: Number::ZERO,
        media_type: "text/plain".to_owned(),
        condition: Condition::None,
    }
}

/// A name that grants guard: told at the submission, and where that came too early, afterwards.
pub async fn a_holders_name_is_not_published_over<S: Store>(bench: &Bench<S>) {
    let submitted = submit_as(bench, NAME).await;
    let alice = hold(bench, "door", "alice").await;
    let digest = bench.bring("alice's").await;
    let theirs = bench.store.run(put(NAME, alice, digest)).await.expect("nobody has it").object;
    render(bench).await;
    publish(bench).await;
    assert_eq!(state(bench, &submitted).await, "wrong_kind");
    assert_eq!(object(bench, NAME).await, Some(theirs));
    let late = named(bench.wish().await, NAME);
    let refusal = bench.refused(Submit { wish: late, request_id: None }).await;
    assert_eq!(refusal.code(), "wrong_kind");
}

/// Submissions' numbers are refused from outside, and grants' numbers say nothing here.
pub async fn a_published_name_takes_no_holders_write<S: Store>(bench: &Bench<S>) {
    let submitted = submit_as(bench, NAME).await;
    render(bench).await;
    publish(bench).await;
    let published = object(bench, NAME).await;
    let alice = hold(bench, "door", "alice").await;
    let digest = bench.bring("alice's").await;
    let code = |refused: Result<_, Failure>| match refused {
        Err(Failure::Refused(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    };
    for (pair, expected) in [
        (alice, "wrong_kind"),
        (Pair { token: submitted.submission, ..alice }, "unknown_token"),
        (Pair { token: submitted.submission, lease_id: LeaseId(0) }, "unknown_token"),
    ] {
        let (key, condition) = (key(NAME), Condition::None);
        assert_eq!(code(bench.store.run(put(NAME, pair, digest)).await), expected);
        let delete = DeleteObject { key: key.clone(), pair, op: 1, condition };
        assert_eq!(code(bench.store.run(delete).await), expected);
        assert_eq!(code(bench.store.run(RaiseObject { key, pair }).await), expected);
    }
    assert_eq!(object(bench, NAME).await, published);
}

/// A complete with a folder of two files, each telling which export it is of.
async fn complete_folder<S: Store>(bench: &Bench<S>, which: &str) -> Manifest {
    let grant = bench.grant("alice").await;
    let mut folder = Manifest::default();
    for name in ["index.m3u8", "media/segment-0.ts"] {
        let content = format!("{name} of {which}");
        bench.bring(&content).await;
        let mut outputs = manifest(&content).outputs;
        outputs[0].name = name.parse().expect("a name");
        folder.outputs.append(&mut outputs);
    }
    let complete = Complete { job: grant.job.id, pair: grant.pair, manifest: folder.clone() };
    bench.store.run(complete).await.expect("it completes");
    folder
}

/// What a path below the name is read as.
async fn read<S: Store>(bench: &Bench<S>, path: &str) -> Option<Digest> {
    let resolved = resolve(bench, &format!("{NAME}/{path}")).await?;
    let manifest = resolved.manifest?;
    let output = manifest.outputs.into_iter().find(|output| output.name.as_str() == path);
    output.map(|output| output.digest)
}

/// Two submissions, two folders, one name: both files change in one step, or neither.
pub async fn a_folder_is_never_half_old_and_half_new<S: Store>(bench: &Bench<S>) {
    let both = async || [read(bench, "index.m3u8").await, read(bench, "media/segment-0.ts").await];
    let of = |folder: &Manifest| [0, 1].map(|index| Some(folder.outputs[index].digest));
    submit_as(bench, NAME).await;
    let old = complete_folder(bench, "old").await;
    assert_eq!(both().await, [None, None], "committed is not yet published");
    submit_as(bench, NAME).await;
    let new = complete_folder(bench, "new").await;
    bench.store.run(Publish { limit: 1 }).await.expect("anybody may");
    assert_eq!(both().await, of(&old));
    bench.store.run(Publish { limit: 1 }).await.expect("anybody may");
    assert_eq!(both().await, of(&new));
    assert_eq!(read(bench, "media/segment-1.ts").await, None);
}

/// Keys have slashes, and so have files of a folder.
pub async fn a_key_is_read_as_itself_before_it_is_part_of_a_folder<S: Store>(bench: &Bench<S>) {
    let whose = async |text: &str| resolve(bench, text).await.map(|one| one.object.key.to_string());
    submit_as(bench, "a").await;
    submit_as(bench, "a/b").await;
    render(bench).await;
    render(bench).await;
    publish(bench).await;
    assert_eq!(whose("a").await.as_deref(), Some("a"));
    assert_eq!(whose("a/b").await.as_deref(), Some("a/b"));
    assert_eq!(whose("a/b/c/d").await.as_deref(), Some("a/b"), "the longest");
    assert_eq!(whose("a/c").await.as_deref(), Some("a"));
    assert_eq!((whose("ab").await, whose("b/a").await), (None, None));
    let alice = hold(bench, "door", "alice").await;
    let digest = bench.bring("alice's").await;
    bench.store.run(put("a/b/c", alice, digest)).await.expect("nobody has it");
    assert_eq!(whose("a/b/c").await.as_deref(), Some("a/b/c"));
    assert_eq!(whose("a/b/c/d").await.as_deref(), Some("a/b"), "a file is no folder");
    let condition = Condition::None;
    let delete = DeleteObject { key: key("a/b/c"), pair: alice, op: 2, condition };
    bench.store.run(delete).await.expect("it is hers");
    assert_eq!(whose("a/b/c").await.as_deref(), Some("a/b"), "there is nothing of its own to read");
}

/// One id for two names is a mistake that is told; the same name is answered again.
pub async fn a_name_belongs_to_the_request<S: Store>(bench: &Bench<S>) {
    let wish = bench.wish().await;
    let submit = |name: &str| Submit {
        wish: named(wish.clone(), name),
        request_id: Some(request("submit-1")),
    };
    let first = bench.store.run(submit("one")).await.expect("a wish is taken");
    assert_eq!(bench.store.run(submit("one")).await, Ok(first));
    assert_eq!(bench.refused(submit("two")).await.code(), "invalid");
    let nameless = Submit { wish: wish.clone(), request_id: Some(request("submit-1")) };
    assert_eq!(bench.refused(nameless).await.code(), "invalid");
    assert_eq!(bench.job(first.job).await.submissions.len(), 1);
}
