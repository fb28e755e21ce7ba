//! Story: A holds 33 and B was granted 34; whatever the order of their steps, B's work stands.

use crate::{
    database::{A, B, Database, fence, fresh_export, written_by},
    interleaving::{Actor, Event, Run, Stage, Step, TRANSACTION, orders},
};

/// What came of all orders together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Orders in which A was refused.
    pub(crate) refused: usize,
    /// Steps that had to wait for the other holder.
    pub(crate) waits: usize,
    /// Transactions that the database asked to begin again.
    pub(crate) again: usize,
}

/// Both write. Checks each order, and returns what is to be expected of all together.
pub(crate) fn both_write(database: &dyn Database, set: &str) -> Tally {
    let (mut monitor, mut first, mut second) =
        (database.session(""), database.session(set), database.session(set));
    let mut tally = Tally::default();
    for (index, order) in orders(TRANSACTION.len(), TRANSACTION.len()).iter().enumerate() {
        let resource = format!("both-{index}");
        fresh_export(&mut monitor, &resource);
        let actors = [
            Actor { holder: A, steps: &TRANSACTION, session: &mut first },
            Actor { holder: B, steps: &TRANSACTION, session: &mut second },
        ];
        let run = Stage::set(database, &mut monitor, &resource, actors).play(order);

        let committed = commits(&run);
        assert_eq!(committed.last(), Some(&1), "B is never refused: {order:?} {run:?}");
        let a_refused = check_a(&run, order, &mut tally);
        assert_eq!(committed.len(), if a_refused { 1 } else { 2 }, "{order:?} {run:?}");
        assert_eq!(written_by(&mut monitor, &resource), B.number, "{order:?} {run:?}");
        assert_eq!(fence(&mut monitor, &resource), B.number, "{order:?} {run:?}");
    }
    tally
}

/// B raises the fence, and is killed in the middle of its transaction.
pub(crate) fn b_dies(database: &dyn Database, set: &str) -> Tally {
    let steps = [Step::Raise, Step::Hold, Step::Die];
    let (mut monitor, mut first) = (database.session(""), database.session(set));
    let mut tally = Tally::default();
    for (index, order) in orders(TRANSACTION.len(), steps.len()).iter().enumerate() {
        let resource = format!("dies-{index}");
        fresh_export(&mut monitor, &resource);
        let mut second = database.session(set);
        let actors = [
            Actor { holder: A, steps: &TRANSACTION, session: &mut first },
            Actor { holder: B, steps: &steps, session: &mut second },
        ];
        let run = Stage::set(database, &mut monitor, &resource, actors).play(order);

        let a_refused = check_a(&run, order, &mut tally);
        let row = if a_refused { 0 } else { A.number };
        assert_eq!(written_by(&mut monitor, &resource), row, "{order:?} {run:?}");
        assert_eq!(fence(&mut monitor, &resource), B.number, "{order:?} {run:?}");
    }
    tally
}

/// A is refused if, and only if, B's number was committed before A's guard was answered; with the
/// stable code, and with no commit after it.
fn check_a(run: &Run, order: &[usize], tally: &mut Tally) -> bool {
    let at = |event: &Event| run.events.iter().position(|other| other == event);
    let last = |event: &Event| run.events.iter().rposition(|other| other == event);
    let asked = last(&Event::Asked(0)).expect("A asks");
    let refused = at(&Event::Refused(0, "PF001".to_owned()));
    let raised = at(&Event::Committed(1)).expect("B's number is committed");
    assert!(!run.events.iter().any(|event| matches!(event, Event::Refused(1, _))), "{run:?}");
    if let Some(refused) = refused {
        assert!(raised < refused, "a refusal has its reason: {order:?} {run:?}");
        assert!(!commits(run).contains(&0), "{order:?} {run:?}");
    } else {
        assert!(asked < raised, "B's number was there before A asked: {order:?} {run:?}");
        let committed = at(&Event::Committed(0)).expect("who is not refused commits");
        assert!(committed < raised, "numbers fell: {order:?} {run:?}");
    }
    tally.refused += usize::from(refused.is_some());
    tally.waits += run.waits;
    tally.again += run.again;
    refused.is_some()
}

/// Who committed, in that order.
fn commits(run: &Run) -> Vec<usize> {
    let who = |event: &Event| if let Event::Committed(who) = event { Some(*who) } else { None };
    run.events.iter().filter_map(who).collect()
}
