//! Runs the real register's call up to its next question to the store, given the answers that it
//! has had so far. The same answers lead to the same question, so what a writer is at is told by
//! its answers alone: a state of the world can be copied although a call under way cannot.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use bytes::Bytes;
use palisade_artefacts::register::{
    Cell, CellError, CompareAndSwap, Done, Key, Pace, Register, RegisterError, Request, Swap,
    Version,
};

/// What the store answered to one question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Said {
    /// To a read: bytes, or that there is no cell.
    Cell(Option<Bytes>),
    /// To a read: nothing.
    Unreadable,
    /// To a swap: done.
    Swapped,
    /// To a swap: another version.
    Conflict,
    /// To a swap: not done, and will not be.
    NotDone,
    /// To a swap: nothing.
    Unknown,
}

/// What a call asks the store next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Question {
    /// What is in the cell?
    Read,
    /// Write this, if the cell is still this.
    Swap { expected: Option<Bytes>, bytes: Bytes },
}

/// What a call has come to.
#[derive(Debug)]
pub(super) enum Call {
    /// It waits for an answer.
    Asks(Question),
    /// It is over.
    Over(Result<Done, RegisterError>),
}

#[derive(Debug, Default)]
struct Script {
    said: Mutex<VecDeque<Said>>,
    asked: Mutex<Option<Question>>,
}

impl Script {
    /// The next answer; without one, the question is noted, and nobody answers it.
    async fn ask(&self, question: Question) -> Said {
        let said = self.said.lock().expect("one thread").pop_front();
        if let Some(said) = said {
            return said;
        }
        *self.asked.lock().expect("one thread") = Some(question);
        std::future::pending().await
    }
}

fn failed(doing: &'static str) -> CellError {
    CellError::new("the lab".to_owned(), doing, "the lab says so")
}

/// Equal bytes have equal versions, as with a store whose tags are hashes.
pub(super) fn version_of(bytes: &Bytes) -> Version {
    Version { e_tag: Some(String::from_utf8_lossy(bytes).into_owned()), version: None }
}

#[async_trait]
impl CompareAndSwap for Script {
    fn name(&self) -> String {
        "the lab".to_owned()
    }

    async fn read(&self, _key: &Key) -> Result<Option<Cell>, CellError> {
        match self.ask(Question::Read).await {
            Said::Cell(bytes) => Ok(bytes.map(|bytes| {
                let version = version_of(&bytes);
                Cell { bytes, version }
            })),
            _ => Err(failed("read")),
        }
    }

    async fn swap(&self, _key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let expected = expected.and_then(|version| version.e_tag.clone()).map(Bytes::from);
        match self.ask(Question::Swap { expected, bytes }).await {
            Said::Swapped => Swap::Swapped,
            Said::Conflict => Swap::Conflict,
            Said::NotDone => Swap::NotDone(failed("swap")),
            _ => Swap::Unknown(failed("swap")),
        }
    }
}

/// Runs a call on these answers.
pub(super) fn run(key: &Key, request: &Request, nonce: u128, said: &[Said]) -> Call {
    let script = Arc::new(Script::default());
    script.said.lock().expect("one thread").extend(said.iter().cloned());
    let cells: Arc<dyn CompareAndSwap> = Arc::<Script>::clone(&script);
    // Waiting is a step that is not taken yet; here nobody sleeps.
    let pace = Pace { attempts_max: 3, pause_ms_first: 0, pause_ms_max: 0 };
    let register = Register::new(cells, pace);
    let mut call = pin!(register.apply(key, request, nonce));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(over) = call.as_mut().poll(&mut context) {
            return Call::Over(over);
        }
        if let Some(question) = script.asked.lock().expect("one thread").take() {
            return Call::Asks(question);
        }
    }
}
