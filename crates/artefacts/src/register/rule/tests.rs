//! The rule under random schedules of writers that read, pause, swap, repeat and are lost.

use palisade_core::{LeaseId, Number};
use proptest::prelude::*;

use super::{Decision, Op, Refusal, Request, Stamp, decide};
use crate::register::{Key, Pointer, Record};

fn key() -> Key {
    "a/register".parse().expect("a key")
}

/// What may happen next.
#[derive(Debug, Clone)]
enum Step {
    /// A writer reads the record and asks the rule; its swap is on its way.
    Begin(Request, u128),
    /// One of the swaps that are on their way arrives (which: modulo how many there are).
    Land(usize),
    /// One of them is lost.
    Lose(usize),
    /// One arrives, and stays on its way: the network sends it twice.
    LandTwice(usize),
}

fn stamps() -> impl Strategy<Value = Stamp> {
    // Few numbers, authors and ops, so that they meet. An author has its own lease id for each
    // number, but for a stranger that uses another's number.
    (1..6_u64, 0..2_u128, 1..4_u64, prop::bool::weighted(0.1)).prop_map(
        |(number, stranger, op, projects)| {
            let number = Number::new(number).expect("small");
            if projects {
                return Stamp::submission(number).expect("a stamp");
            }
            let lease = LeaseId(u128::from(number.get()) * 10 + stranger);
            Stamp::grant(number, lease, Op::new(op).expect("an op")).expect("a stamp")
        },
    )
}

fn requests() -> impl Strategy<Value = Request> {
    let pointers = prop_oneof![Just(None), "[ab]".prop_map(Some)];
    let pointers = pointers.prop_map(|text| text.map(|text| text.parse().expect("a pointer")));
    prop_oneof![
        4 => (stamps(), pointers).prop_map(|(stamp, pointer)| Request::Write { stamp, pointer }),
        1 => stamps().prop_map(|stamp| Request::Raise { stamp }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (requests(), any::<u128>()).prop_map(|(request, nonce)| Step::Begin(request, nonce)),
        4 => any::<usize>().prop_map(Step::Land),
        1 => any::<usize>().prop_map(Step::Lose),
        1 => any::<usize>().prop_map(Step::LandTwice),
    ];
    prop::collection::vec(step, 1..120)
}

/// A swap on its way: what it expects, what it brings, and what it was for.
#[derive(Debug, Clone)]
struct Swap {
    expected: Option<Vec<u8>>,
    brings: Record,
    request: Request,
    nonce: u128,
}

/// A store whose versions are the bytes themselves, as an `ETag` is.
#[derive(Debug, Default)]
struct Cell {
    record: Option<Record>,
    history: Vec<Record>,
}

impl Cell {
    fn version(&self) -> Option<Vec<u8>> {
        self.record.as_ref().map(|record| record.encode().to_vec())
    }

    fn land(&mut self, swap: &Swap) -> bool {
        let lands = swap.expected == self.version();
        if lands {
            self.record = Some(swap.brings.clone());
            self.history.push(swap.brings.clone());
        }
        lands
    }
}

/// Where a record is in the order that changes must keep.
fn place(record: &Record) -> (Number, Option<Op>) {
    (record.fence, record.op)
}

fn check_change(before: Option<&Record>, after: &Record) -> Result<(), TestCaseError> {
    prop_assert_eq!(after.revision, before.map_or(0, |before| before.revision) + 1);
    let Some(before) = before else { return Ok(()) };
    prop_assert!(place(after) > place(before), "the order was broken: {before:?} {after:?}");
    prop_assert_eq!(after.kind, before.kind, "the kind is fixed by the first write");
    if after.fence == before.fence {
        prop_assert_eq!(after.author, before.author, "one number has one author");
    }
    if let Some(written) = &before.written {
        let number = after.written.as_ref().expect("what was written is never unwritten").number;
        prop_assert!(number >= written.number, "an older number's content came back");
    }
    Ok(())
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut cell = Cell::default();
    let mut on_their_way: Vec<Swap> = Vec::new();
    for step in steps {
        let count = on_their_way.len().max(1);
        match step {
            Step::Begin(request, nonce) => {
                let record = cell.record.as_ref();
                match decide(&key(), record, &request, nonce) {
                    Ok(Decision::Change(brings)) => {
                        let expected = cell.version();
                        on_their_way.push(Swap { expected, brings, request, nonce });
                    }
                    Ok(Decision::Already(same)) => prop_assert_eq!(Some(&same), record),
                    Err(refusal) => prop_assert!(record.is_some(), "{refusal} by nobody"),
                }
            }
            Step::Lose(which) if !on_their_way.is_empty() => {
                on_their_way.remove(which % count);
            }
            Step::Land(which) | Step::LandTwice(which) if !on_their_way.is_empty() => {
                let swap = match step {
                    Step::Land(_) => on_their_way.remove(which % count),
                    _ => on_their_way[which % count].clone(),
                };
                let before = cell.record.clone();
                if cell.land(&swap) {
                    check_change(before.as_ref(), &swap.brings)?;
                    let again = decide(&key(), cell.record.as_ref(), &swap.request, swap.nonce);
                    prop_assert_eq!(again, Ok(Decision::Already(swap.brings)));
                }
            }
            _ => {}
        }
    }
    let mut bytes: Vec<_> = cell.history.iter().map(Record::encode).collect();
    bytes.sort_unstable();
    bytes.dedup();
    prop_assert_eq!(bytes.len(), cell.history.len(), "bytes, and so a version, came back");
    Ok(())
}

proptest! {
    #[test]
    fn no_schedule_of_writers_breaks_the_order(steps in steps()) {
        run(steps)?;
    }

    #[test]
    fn a_number_below_the_fence_is_always_refused_and_one_above_never(
        first in stamps(), then in requests(), nonce: u128,
    ) {
        let raise = Request::Raise { stamp: first };
        let Ok(Decision::Change(record)) = decide(&key(), None, &raise, nonce) else {
            panic!("a register that nobody has touched takes any number");
        };
        let (Request::Write { stamp, .. } | Request::Raise { stamp }) = &then else {
            unreachable!("no resets here");
        };
        let decided = decide(&key(), Some(&record), &then, nonce);
        if stamp.kind != first.kind {
            let refused = matches!(decided, Err(Refusal::WrongKind { .. }));
            prop_assert!(refused);
        } else if stamp.number < first.number {
            let refused = matches!(decided, Err(Refusal::StaleToken { .. }));
            prop_assert!(refused);
        } else if stamp.number > first.number {
            let changed = matches!(decided, Ok(Decision::Change(_)));
            prop_assert!(changed);
        }
    }

    #[test]
    fn a_record_is_read_back_as_it_was_stored(requests in prop::collection::vec(requests(), 1..8)) {
        let mut record: Option<Record> = None;
        for request in requests {
            if let Ok(Decision::Change(new)) = decide(&key(), record.as_ref(), &request, 7) {
                prop_assert_eq!(Record::decode(&key(), &new.encode()), Ok(new.clone()));
                record = Some(new);
            }
        }
    }
}

#[test]
fn what_is_no_stamp_op_or_pointer_is_refused_with_the_field_named() {
    let number = |value| Number::new(value).expect("small");
    let zero = Stamp::grant(number(0), LeaseId(1), Op::FIRST).expect_err("never drawn");
    assert_eq!(zero.field, "token");
    for value in [0, 1 << 53, u64::MAX] {
        assert_eq!(Op::new(value).expect_err("out of range").field, "op");
    }
    for text in ["", "a\nb", "x".repeat(4_097).as_str()] {
        assert_eq!(text.parse::<Pointer>().expect_err("no pointer").field, "pointer");
    }
    for text in ["", "/a", "a//b", "../a", "a/.hidden", "ä", "-x"] {
        assert_eq!(text.parse::<Key>().expect_err("no key").field, "key");
    }
}
