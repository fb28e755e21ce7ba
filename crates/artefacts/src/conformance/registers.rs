//! What a register must do on every store: one holder after another.

use std::sync::Arc;

use palisade_core::{LeaseId, Number};

use super::{
    cells::{Bench, key},
    faulty::{Fault, FaultyCells, Gate},
};
use crate::register::{
    CompareAndSwap, Done, Key, Kind, Op, Pace, Pointer, Refusal, Register, RegisterError,
    StaleReason, Stamp, Swap,
};

pub use super::registers_doubt::*;

/// Never waits: the tests' events decide who is next.
pub(super) const AT_ONCE: Pace = Pace { attempts_max: 1_000, pause_ms_first: 0, pause_ms_max: 0 };

pub(super) fn register(cells: &Arc<dyn CompareAndSwap>) -> Register {
    Register::new(Arc::clone(cells), AT_ONCE)
}

pub(super) fn number(value: u64) -> Number {
    Number::new(value).expect("a test's number is small")
}

/// The first write of the holder of `token`, whose lease id is the token's own unless said.
pub(super) fn holder(token: u64) -> Stamp {
    write_of(token, 1)
}

pub(super) fn write_of(token: u64, op: u64) -> Stamp {
    let op = Op::new(op).expect("an op");
    Stamp::grant(number(token), LeaseId(token.into()), op).expect("a stamp")
}

pub(super) fn pointer(text: &str) -> Pointer {
    text.parse().expect("a test's pointer is one")
}

pub(super) fn refusal(result: Result<Done, RegisterError>) -> Refusal {
    match result {
        Err(RegisterError::Refused { source, .. }) => source,
        other => panic!("not refused: {other:?}"),
    }
}

pub(super) fn below(token: u64, fence: u64) -> Refusal {
    let reason = StaleReason::Below;
    Refusal::StaleToken { number: number(token), fence: number(fence), reason }
}

pub(super) async fn points_at(register: &Register, at: &Key) -> Option<String> {
    let record = register.read(at).await.expect("read")?;
    record.pointer().map(|pointer| pointer.as_str().to_owned())
}

/// A reads, and is stopped before its swap; B is granted 34 and writes; A wakes and swaps.
pub async fn a_writer_paused_before_its_swap_is_refused(bench: &Bench) {
    let at = key("export");
    let gate = Gate::closed();
    let paused = FaultyCells::new(Arc::clone(&bench.cells), [Fault::Pause(Arc::clone(&gate))]);
    let a = Register::new(paused, AT_ONCE);
    let b = register(&bench.cells);
    b.put(&at, holder(32), pointer("before"), 1).await.expect("an older holder wrote");
    let a_writes = {
        let at = at.clone();
        tokio::spawn(async move { a.put(&at, holder(33), pointer("of A"), 2).await })
    };
    gate.arrived().await;
    b.put(&at, holder(34), pointer("of B"), 3).await.expect("B writes");
    gate.open();
    assert_eq!(refusal(a_writes.await.expect("A ran")), below(33, 34));
    assert_eq!(points_at(&b, &at).await.as_deref(), Some("of B"));
    let record = b.read(&at).await.expect("read").expect("there");
    assert_eq!(record.written.expect("written").number, number(34));
}

/// The same, but B raises and dies before it has written anything.
pub async fn a_holder_that_only_raised_shuts_out_the_one_before(bench: &Bench) {
    let at = key("export");
    let register = register(&bench.cells);
    register.put(&at, holder(33), pointer("of A"), 1).await.expect("A writes");
    let raised = register.raise(&at, holder(34), 2).await.expect("B raises");
    assert_eq!(raised.record.written.map(|written| written.number), Some(number(33)));
    let late = register.put(&at, write_of(33, 2), pointer("of A, late"), 3).await;
    assert_eq!(refusal(late), below(33, 34));
    assert_eq!(points_at(&register, &at).await.as_deref(), Some("of A"));
    assert!(register.raise(&at, holder(34), 4).await.expect("raised again").repeated);
    assert_eq!(refusal(register.raise(&at, holder(33), 5).await), below(33, 34));
    register.put(&at, holder(34), pointer("of B"), 6).await.expect("B's first write is op 1");
}

/// On a register that nobody has touched.
pub async fn raising_comes_before_any_write(bench: &Bench) {
    let at = key("untouched");
    let register = register(&bench.cells);
    let raised = register.raise(&at, holder(5), 1).await.expect("raised").record;
    assert_eq!((raised.fence, raised.written), (number(5), None));
    assert_eq!(refusal(register.put(&at, holder(4), pointer("x"), 2).await), below(4, 5));
    assert_eq!(points_at(&register, &at).await, None);
}

/// A stranger that has heard the number, but was not granted it.
pub async fn an_equal_number_from_another_author_is_refused(bench: &Bench) {
    let at = key("export");
    let register = register(&bench.cells);
    register.put(&at, holder(34), pointer("of B"), 1).await.expect("B writes");
    let stranger = Stamp::grant(number(34), LeaseId(999), Op::new(2).expect("an op"));
    let stranger = stranger.expect("a stamp");
    let reason = StaleReason::HeldByAnother;
    let refused = Refusal::StaleToken { number: number(34), fence: number(34), reason };
    assert_eq!(refusal(register.put(&at, stranger, pointer("x"), 2).await), refused);
    assert_eq!(refusal(register.delete(&at, stranger, 3).await), refused);
    assert_eq!(refusal(register.raise(&at, stranger, 4).await), refused);
    assert_eq!(points_at(&register, &at).await.as_deref(), Some("of B"));
}

/// Also for a register that was deleted before anything was in it.
pub async fn a_deleted_register_keeps_its_fence(bench: &Bench) {
    let register = register(&bench.cells);
    for (name, written) in [("once-written", true), ("never-written", false)] {
        let at = key(name);
        if written {
            register.put(&at, holder(7), pointer("x"), 1).await.expect("written");
        }
        let deleted = register.delete(&at, holder(9), 2).await.expect("deleted").record;
        assert_eq!((deleted.fence, deleted.pointer()), (number(9), None));
        assert_eq!(refusal(register.put(&at, holder(8), pointer("late"), 3).await), below(8, 9));
        assert_eq!(points_at(&register, &at).await, None);
        register.put(&at, holder(10), pointer("again"), 4).await.expect("a newer one may");
        assert_eq!(points_at(&register, &at).await.as_deref(), Some("again"));
    }
}

/// PUT, PUT, and the first one's late arrival; DELETE, and the same holder's late PUT.
pub async fn the_writes_of_one_holder_keep_their_order(bench: &Bench) {
    let at = key("ordered");
    let register = register(&bench.cells);
    register.put(&at, write_of(5, 2), pointer("second"), 1).await.expect("written");
    let op = |value| Op::new(value).expect("an op");
    let late = register.put(&at, write_of(5, 1), pointer("first"), 2).await;
    assert_eq!(refusal(late), Refusal::StaleOp { op: op(1), last: op(2) });
    let again = register.put(&at, write_of(5, 2), pointer("second"), 3).await.expect("again");
    assert!(again.repeated, "the same write again is the same answer");
    let other = register.put(&at, write_of(5, 2), pointer("other"), 4).await;
    assert_eq!(refusal(other), Refusal::OpRequired { op: op(2) });
    let deleted = register.delete(&at, write_of(5, 2), 5).await;
    assert_eq!(refusal(deleted), Refusal::OpRequired { op: op(2) });
    register.delete(&at, write_of(5, 4), 6).await.expect("deleted");
    let late = register.put(&at, write_of(5, 3), pointer("third"), 7).await;
    assert_eq!(refusal(late), Refusal::StaleOp { op: op(3), last: op(4) });
    assert!(register.delete(&at, write_of(5, 4), 8).await.expect("again").repeated);
    assert_eq!(points_at(&register, &at).await, None);
}

/// Two kinds of number on one register would let an old wish overtake a newer one.
pub async fn the_first_write_fixes_the_kind_of_number(bench: &Bench) {
    let register = register(&bench.cells);
    let submission = |value| Stamp::submission(number(value)).expect("a stamp");
    let (granted, projected) = (key("granted"), key("projected"));
    register.put(&granted, holder(5), pointer("x"), 1).await.expect("written");
    register.raise(&projected, submission(5), 2).await.expect("raised");
    let refused = refusal(register.put(&granted, submission(6), pointer("y"), 3).await);
    assert_eq!(refused, Refusal::WrongKind { kept: Kind::Grant });
    let refused = refusal(register.put(&projected, holder(6), pointer("y"), 4).await);
    assert_eq!(refused, Refusal::WrongKind { kept: Kind::Submission });
    // Whoever projects a submission is one author.
    register.put(&projected, submission(6), pointer("of 6"), 5).await.expect("written");
    assert!(
        register.put(&projected, submission(6), pointer("of 6"), 6).await.expect("again").repeated
    );
}

/// A wrong client's number from the future shuts everybody out; an operator opens again.
pub async fn a_number_from_the_future_is_undone_by_an_operators_reset(bench: &Bench) {
    let at = key("shut");
    let register = register(&bench.cells);
    register.put(&at, holder(5), pointer("good"), 1).await.expect("written");
    let shut = register.raise(&at, holder(1 << 52), 2).await.expect("raised").record;
    assert_eq!(refusal(register.put(&at, holder(6), pointer("x"), 3).await), below(6, 1 << 52));
    let (seen, now) = (shut.revision - 1, shut.revision);
    let unseen = register.reset(&at, seen, number(6), 4).await;
    assert_eq!(refusal(unseen), Refusal::StaleRevision { seen, now });
    let reset = register.reset(&at, now, number(6), 5).await.expect("reset");
    assert!(!reset.repeated);
    assert!(register.reset(&at, now, number(6), 5).await.expect("asked again").repeated);
    assert_eq!(points_at(&register, &at).await.as_deref(), Some("good"), "its content stays");
    assert_eq!(refusal(register.put(&at, write_of(5, 2), pointer("x"), 6).await), below(5, 6));
    register.put(&at, holder(6), pointer("fine"), 7).await.expect("the holder gets in again");
    assert_eq!(points_at(&register, &at).await.as_deref(), Some("fine"));
}

/// What is stored there is somebody else's, or broken: an operator's case, not an absence.
pub async fn a_register_that_is_none_is_corrupt(bench: &Bench) {
    let register = register(&bench.cells);
    register.put(&key("one"), holder(5), pointer("x"), 1).await.expect("written");
    let record = bench.cells.read(&key("one")).await.expect("read").expect("there").bytes;
    let newer = String::from_utf8(record.to_vec()).expect("text");
    let newer = newer.replace("\"format\": 1", "\"format\": 2");
    for (name, bytes) in [("other", record), ("noise", "{".into()), ("newer", newer.into())] {
        let at = key(name);
        let swap = bench.cells.swap(&at, None, bytes).await;
        assert!(matches!(swap, Swap::Swapped), "{swap:?}");
        let read = register.read(&at).await;
        assert!(matches!(read, Err(RegisterError::Corrupt { .. })), "{name}: {read:?}");
        let written = register.put(&at, holder(9), pointer("y"), 2).await;
        assert!(matches!(written, Err(RegisterError::Corrupt { .. })), "{name}: {written:?}");
    }
}
