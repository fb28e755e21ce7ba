//! Who plays in the world of registers, and what they want.

use bytes::Bytes;
use palisade_artefacts::register::{
    Decision, Key, Op, Pointer, Record, Request, Stamp, rule::decide,
};
use palisade_core::{LeaseId, Number};

/// Who plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::explore) enum Scene {
    /// A holder that writes twice, and the next one, which raises first.
    Holders,
    /// Two operators that reset what they have both looked at, and the holder of a high number.
    Operators,
    /// Two who bring the same number, and are not the same.
    Strangers,
    /// Two servers that publish the same wish, and one that publishes an older one.
    Projectors,
}

fn number(value: u64) -> Number {
    Number::new(value).expect("a small number")
}

fn grant(token: u64, op: u64) -> Stamp {
    let op = Op::new(op).expect("a small number");
    Stamp::grant(number(token), LeaseId(u128::from(token) + 100), op).expect("a fine stamp")
}

fn write(stamp: Stamp, pointer: &str) -> Request {
    let pointer: Pointer = pointer.parse().expect("a fine text");
    Request::Write { stamp, pointer: Some(pointer) }
}

fn publish(wish: u64) -> Request {
    let stamp = Stamp::submission(number(wish)).expect("a fine stamp");
    write(stamp, &format!("wish {wish}"))
}

impl Scene {
    pub(super) const ALL: [Self; 4] =
        [Self::Holders, Self::Operators, Self::Strangers, Self::Projectors];

    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Holders => "a holder, and the one after it",
            Self::Strangers => "a holder, and a stranger with its number",
            Self::Operators => "two operators at one register",
            Self::Projectors => "two servers publish one wish, a third an older one",
        }
    }

    pub(super) const fn writers(self) -> usize {
        match self {
            Self::Holders | Self::Strangers => 2,
            Self::Operators | Self::Projectors => 3,
        }
    }

    /// Whether an operator may let the fence fall.
    pub(super) fn resets(self) -> bool {
        self == Self::Operators
    }

    pub(super) const fn name(writer: usize) -> &'static str {
        const NAMES: [&str; 3] = ["A", "B", "C"];
        NAMES[writer]
    }

    /// What a writer asks for, one after another.
    pub(super) fn requests(self, writer: usize) -> Vec<Request> {
        match (self, writer) {
            (Self::Holders, 0) => vec![write(grant(1, 1), "a, first"), write(grant(1, 2), "a")],
            (Self::Holders, _) => {
                vec![Request::Raise { stamp: grant(2, 1) }, write(grant(2, 1), "b")]
            }
            (Self::Strangers, 0) => vec![write(grant(2, 1), "b")],
            (Self::Strangers, _) => {
                let stranger = Stamp::grant(number(2), LeaseId(7), Op::FIRST);
                vec![write(stranger.expect("a fine stamp"), "c")]
            }
            (Self::Operators, 0) => vec![Request::Reset { seen: 1, fence: number(3) }],
            (Self::Operators, 1) => vec![Request::Reset { seen: 1, fence: number(5) }],
            (Self::Operators, _) => vec![write(grant(4, 1), "c")],
            (Self::Projectors, 0 | 1) => vec![publish(7)],
            (Self::Projectors, _) => vec![publish(6)],
        }
    }

    /// What is in the cell when they begin.
    pub(super) fn cell(self, key: &Key) -> Option<Bytes> {
        if self != Self::Operators {
            return None;
        }
        let shut = Request::Raise { stamp: grant(900, 1) };
        match decide(key, None, &shut, 1_000) {
            Ok(Decision::Change(record)) => Some(record.encode()),
            other => panic!("an empty register takes anybody: {other:?}"),
        }
    }
}

/// Whether a record is what this request makes of a register.
pub(super) fn is_in(request: &Request, record: &Record) -> bool {
    match request {
        Request::Write { stamp, pointer } => {
            let written = record.written.as_ref();
            written.is_some_and(|it| it.number == stamp.number() && it.pointer == *pointer)
        }
        Request::Raise { stamp } => record.fence == stamp.number(),
        Request::Reset { fence, .. } => record.fence == *fence && record.author.is_none(),
    }
}

/// Which of two requests is the later one.
pub(super) fn rank(request: &Request) -> (Number, u8) {
    match request {
        Request::Raise { stamp } => (stamp.number(), 0),
        Request::Write { stamp, pointer } => {
            let first = pointer.as_ref().is_some_and(|text| text.as_str().ends_with("first"));
            (stamp.number(), if first { 1 } else { 2 })
        }
        Request::Reset { .. } => (Number::ZERO, 0),
    }
}
