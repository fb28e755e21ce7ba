//! Connections that break at the worst moment: just before the commit arrives, or just before its
//! answer does. Whoever asked cannot know which, and asks again with the same ids.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use palisade_core::{history::What, job::JobState};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

use crate::{
    Failure,
    command::{Answer, BeginBlob, Command, Complete, FinishBlob, Pin, Submit},
    conformance::{
        ManualClock,
        bench::{BEGINNING, capability, manifest, request, session, wish_for},
    },
    postgres::{Address, PostgresOptions, engine::Engine, open},
    query::{Query, View},
};

use super::cluster::Cluster;

const NEVER: u8 = 0;
/// The commit does not arrive.
const BEFORE: u8 = 1;
/// The commit is done, and its answer does not arrive.
const AFTER: u8 = 2;

/// One message: its kind, and its bytes as they came.
async fn message(from: &mut (impl AsyncRead + Unpin)) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut whole = head.to_vec();
    whole.resize(1 + usize::try_from(length).unwrap(), 0);
    from.read_exact(&mut whole[5..]).await.ok()?;
    Some((head[0], whole))
}

/// The texts that a message begins with, each ended by a zero.
fn texts(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    message[5..].split(|byte| *byte == 0)
}

async fn to_the_database(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    when: &AtomicU8,
) {
    // The first message has no kind.
    let Ok(length) = from.read_u32().await else { return };
    let mut rest = vec![0; usize::try_from(length).unwrap() - 4];
    from.read_exact(&mut rest).await.unwrap();
    to.write_all(&[&length.to_be_bytes()[..], &rest].concat()).await.unwrap();
    let mut commit = None;
    while let Some((kind, bytes)) = message(&mut from).await {
        let mut texts = texts(&bytes);
        let (first, second) = (texts.next(), texts.next());
        if kind == b'P' && second == Some(b"COMMIT") {
            commit = first.map(<[u8]>::to_vec);
        }
        let commits = kind == b'B' && commit.is_some() && second == commit.as_deref();
        if commits
            && when.compare_exchange(BEFORE, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            return;
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn to_the_store(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    when: &AtomicU8,
) {
    while let Some((kind, bytes)) = message(&mut from).await {
        let done = kind == b'C' && texts(&bytes).next() == Some(b"COMMIT");
        if done && when.compare_exchange(AFTER, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return;
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Stands between a store and its database, and cuts a connection when it is told to.
fn proxy(folder: &Path, database: &Path) -> Arc<AtomicU8> {
    let when = Arc::new(AtomicU8::new(NEVER));
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    let (cut, socket) = (Arc::clone(&when), database.join(".s.PGSQL.5432"));
    tokio::spawn(async move {
        while let Ok((store, _)) = listener.accept().await {
            let database = UnixStream::connect(&socket).await.unwrap();
            let cut = Arc::clone(&cut);
            tokio::spawn(async move {
                let (from_store, to_store) = store.into_split();
                let (from_database, to_database) = database.into_split();
                // Whichever ends first takes the other with it.
                tokio::select! {
                    () = to_the_database(from_store, to_database, &cut) => {}
                    () = to_the_store(from_database, to_store, &cut) => {}
                }
            });
        }
    });
    when
}

struct Cut {
    engine: Engine,
    when: Arc<AtomicU8>,
}

impl Cut {
    async fn ask(&self, command: impl Into<Command>) -> Result<Answer, Failure> {
        self.engine.apply_batch(vec![command.into()]).await.answers.remove(0)
    }

    /// Asks while the connection breaks, and again.
    async fn ask_twice(&self, when: u8, command: impl Into<Command>) -> Answer {
        let command = command.into();
        self.when.store(when, Ordering::SeqCst);
        let first = self.ask(command.clone()).await;
        assert!(matches!(first, Err(Failure::Unknown(_))), "{first:?}");
        assert_eq!(self.when.load(Ordering::SeqCst), NEVER, "nothing was cut");
        self.ask(command).await.unwrap()
    }

    async fn bring(&self, content: &str) -> palisade_core::Digest {
        let digest = palisade_core::Digest::of(content.as_bytes());
        let begin = BeginBlob { digest, pin: Pin::Until(BEGINNING.plus_ms(1_000_000)) };
        let Answer::BeginBlob(place) = self.ask(begin).await.unwrap() else { panic!() };
        let (generation, size_bytes) = (place.generation, content.len() as u64);
        self.ask(FinishBlob { digest, generation, size_bytes }).await.unwrap();
        digest
    }
}

async fn once_whatever_is_cut(when: u8) {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let folder = tempfile::tempdir().unwrap();
    let cut = proxy(folder.path(), cluster.home());
    let host = folder.path().display();
    let url = format!("postgres:///{database}?host={host}&user=postgres");
    let clock = Arc::new(ManualClock::at(BEGINNING));
    let options = cluster.options(&database, clock);
    let options = PostgresOptions { address: Address::parse(&url).unwrap(), ..options };
    let cut = Cut { engine: open::engine(&options).await.unwrap(), when: cut };
    let input = cut.bring("input").await;

    let submit = Submit { wish: wish_for(input, 5), request_id: Some(request("once")) };
    let Answer::Submit(submitted) = cut.ask_twice(when, submit.clone()).await else { panic!() };
    assert_eq!(cut.ask(submit).await.unwrap(), Answer::Submit(submitted));
    let claim = crate::command::Claim {
        worker: "alice".parse().unwrap(),
        session: session("alice"),
        request_id: request("claim"),
        seq: 1,
        ttl_ms: 30_000,
        capabilities: vec![capability()],
        lease_ids: vec![palisade_core::LeaseId(7)],
    };
    let Answer::Claim(claimed) = cut.ask_twice(when, claim).await else { panic!() };
    assert_eq!(claimed.grants.len(), 1);
    cut.bring("output").await;
    let pair = claimed.grants[0].pair;
    let complete = Complete { job: submitted.job, pair, manifest: manifest("output") };
    let completed = cut.ask_twice(when, complete.clone()).await;
    assert_eq!(cut.ask(complete).await.unwrap(), completed);

    let View::Job(Some(job)) = cut.engine.query(&Query::Job(submitted.job)).await.unwrap() else {
        panic!()
    };
    assert_eq!((job.state, job.completed_by()), (JobState::Complete, Some(pair.token)));
    assert_eq!((job.submissions.len(), job.attempts.len()), (1, 1));
    let View::History(history) = cut.engine.query(&Query::History(job.id)).await.unwrap() else {
        panic!()
    };
    let told = |kind: fn(&What) -> bool| history.iter().filter(|(_, one)| kind(&one.what)).count();
    assert_eq!(told(|what| matches!(what, What::Submitted { .. })), 1);
    assert_eq!(told(|what| matches!(what, What::Granted { .. })), 1);
    assert_eq!(told(|what| matches!(what, What::Closed { .. })), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_did_not_arrive_is_unknown_and_done_once_when_asked_again() {
    once_whatever_is_cut(BEFORE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_unknown_and_answered_the_same_when_asked_again() {
    once_whatever_is_cut(AFTER).await;
}
