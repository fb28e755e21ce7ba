//! What a register must do on every store: lost replies, late arrivals, and crowds.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::Barrier;

use super::{
    cells::{Bench, key},
    faulty::{Fault, FaultyCells},
    registers::{AT_ONCE, below, holder, number, pointer, points_at, refusal, register, write_of},
};
use crate::register::{Pace, Refusal, Register, RegisterError, StaleReason, Swap};

/// Done, unheard of: the register reads again and finds its own write.
pub async fn a_lost_reply_does_not_refuse_its_own_author(bench: &Bench) {
    for (count, fault) in (1..).zip([Fault::LoseReply, Fault::DoneButConflict]) {
        let at = key(&format!("lost-{count}"));
        let lossy = FaultyCells::new(Arc::clone(&bench.cells), [fault]);
        let writer = Register::new(lossy, AT_ONCE);
        let done = writer.put(&at, holder(5), pointer("x"), 1).await.expect("done");
        assert!(done.repeated, "it is found done, not done twice");
        assert_eq!(done.record.revision, 1, "one change");
    }
}

/// Lost on the way there: done by asking again, on the same version.
pub async fn a_lost_request_is_sent_again(bench: &Bench) {
    let at = key("lost");
    let plan = [Fault::LoseRequest, Fault::LoseRequest];
    let writer = Register::new(FaultyCells::new(Arc::clone(&bench.cells), plan), AT_ONCE);
    let done = writer.put(&at, holder(5), pointer("x"), 1).await.expect("done");
    assert!(!done.repeated);
    assert_eq!(done.record.revision, 1);
}

/// The swap is done after all, when nobody expects it any more.
pub async fn a_swap_that_lands_late_changes_nothing(bench: &Bench) {
    let at = key("late");
    let cells = FaultyCells::new(Arc::clone(&bench.cells), [Fault::Delay]);
    let once = Pace { attempts_max: 1, ..AT_ONCE };
    let a = Register::new(Arc::clone(&cells) as _, once);
    let b = register(&bench.cells);
    b.put(&at, holder(32), pointer("before"), 1).await.expect("written");
    let unknown = a.put(&at, holder(33), pointer("of A"), 2).await;
    assert!(matches!(unknown, Err(RegisterError::Unknown { .. })), "{unknown:?}");
    b.raise(&at, holder(34), 3).await.expect("B raises");
    let landed = cells.land().await;
    assert!(matches!(landed[..], [Swap::Conflict]), "{landed:?}");
    assert_eq!(refusal(a.put(&at, holder(33), pointer("of A"), 4).await), below(33, 34));
    assert_eq!(points_at(&b, &at).await.as_deref(), Some("before"));
}

/// Its own repeat settles a swap that is still on its way, whichever comes first.
pub async fn a_repeat_and_the_late_first_sending_are_one_write(bench: &Bench) {
    let at = key("twice");
    let cells = FaultyCells::new(Arc::clone(&bench.cells), [Fault::Delay]);
    let writer = Register::new(Arc::clone(&cells) as _, AT_ONCE);
    writer.put(&at, holder(5), pointer("x"), 1).await.expect("the repeat is done");
    writer.put(&at, write_of(5, 2), pointer("y"), 2).await.expect("and the next");
    let landed = cells.land().await;
    assert!(matches!(landed[..], [Swap::Conflict]), "{landed:?}");
    assert_eq!(points_at(&writer, &at).await.as_deref(), Some("y"));

    let at = key("late-first");
    let cells = FaultyCells::new(Arc::clone(&bench.cells), [Fault::Delay]);
    let once = Pace { attempts_max: 1, ..AT_ONCE };
    let writer = Register::new(Arc::clone(&cells) as _, once);
    let unknown = writer.put(&at, holder(5), pointer("x"), 3).await;
    assert!(matches!(unknown, Err(RegisterError::Unknown { .. })), "{unknown:?}");
    let landed = cells.land().await;
    assert!(matches!(landed[..], [Swap::Swapped]), "{landed:?}");
    assert!(writer.put(&at, holder(5), pointer("x"), 4).await.expect("asked again").repeated);
}

/// The network goes in the middle: unknown, not "nothing was done"; later the answer is found.
pub async fn an_outcome_stays_unknown_until_the_register_is_read_again(bench: &Bench) {
    for (name, fault, was_done) in
        [("done", Fault::LoseReply, true), ("not-done", Fault::LoseRequest, false)]
    {
        let at = key(name);
        let cells = FaultyCells::new(Arc::clone(&bench.cells), [fault]);
        let writer = Register::new(Arc::clone(&cells) as _, AT_ONCE);
        cells.cut_off_after_next_swap();
        let unknown = writer.put(&at, holder(5), pointer("x"), 1).await;
        assert!(matches!(unknown, Err(RegisterError::Unknown { .. })), "{unknown:?}");
        let refused = writer.put(&at, holder(5), pointer("x"), 2).await;
        let nothing_done = matches!(refused, Err(RegisterError::Unavailable { .. }));
        assert!(nothing_done, "a call that could not even read did nothing: {refused:?}");
        cells.reconnect();
        let done = writer.put(&at, holder(5), pointer("x"), 3).await.expect("asked again");
        assert_eq!(done.repeated, was_done);
        assert_eq!(done.record.revision, 1, "one change either way");
    }
}

/// After a lost sending, even a refusal to swap does not mean that nothing was done.
pub async fn an_error_after_a_lost_reply_is_unknown_too(bench: &Bench) {
    let at = key("then-refused");
    let plan = [Fault::Delay, Fault::NotDone, Fault::NotDone];
    let cells = FaultyCells::new(Arc::clone(&bench.cells), plan);
    let writer = Register::new(Arc::clone(&cells) as _, AT_ONCE);
    let first = writer.put(&at, holder(5), pointer("x"), 1).await;
    assert!(matches!(first, Err(RegisterError::Unknown { .. })), "{first:?}");
    let second = writer.put(&at, holder(5), pointer("x"), 2).await;
    assert!(matches!(second, Err(RegisterError::Unavailable { .. })), "{second:?}");
}

/// Sixty-four at once, with numbers in no order: at the end the highest stands.
pub async fn of_sixty_four_writers_the_highest_number_stands(bench: &Bench) {
    const WRITERS: u64 = 64;
    let at = key("crowd");
    let start = Arc::new(Barrier::new(64));
    // 29 and 64 have no common factor: each number from 1 to 64 once, in no order.
    let writers = (0..WRITERS).map(|place| place * 29 % WRITERS + 1).map(|token| {
        let (writer, at, start) = (register(&bench.cells), at.clone(), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            let text = format!("of {token}");
            (token, writer.put(&at, holder(token), pointer(&text), token.into()).await)
        })
    });
    let mut revisions = Vec::new();
    for wrote in join_all(writers).await {
        let (token, result) = wrote.expect("a writer ran");
        match result {
            Ok(done) => revisions.push((done.record.revision, token)),
            Err(RegisterError::Refused {
                source: Refusal::StaleToken { fence, reason, .. },
                ..
            }) => {
                assert_eq!(reason, StaleReason::Below);
                assert!(fence > number(token), "{token} was refused by the fence {fence}");
            }
            Err(error) => panic!("{token} got {error:?}"),
        }
    }
    revisions.sort_unstable();
    assert!(
        revisions.iter().map(|(revision, _)| *revision).eq(1..=revisions.len() as u64),
        "each change is one revision: {revisions:?}"
    );
    assert!(revisions.is_sorted_by_key(|(_, token)| *token), "none overtook: {revisions:?}");
    let register = register(&bench.cells);
    assert_eq!(points_at(&register, &at).await, Some(format!("of {WRITERS}")));
    for token in 1..WRITERS {
        let late = register.put(&at, write_of(token, 9), pointer("late"), 1).await;
        assert_eq!(refusal(late), below(token, WRITERS));
    }
}
