//! What the tests ask of a database, whichever it is.

use crate::session::{Answer, Failure, Session};

/// A holder of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) number: i64,
    pub(crate) lease: &'static str,
}

/// A: was granted the work first.
pub(crate) const A: Holder = Holder { number: 33, lease: "5c0e1d7a" };
/// B: was granted it after A's lease had run out.
pub(crate) const B: Holder = Holder { number: 34, lease: "b81f90c2" };

/// What came of a statement, as far as a holder's next step depends on it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    /// Refused by the guard, with its code.
    Refused(String),
    /// No refusal: the transaction is to be rolled back and begun again.
    Again,
    /// The statement could not even begin, because another transaction is under way.
    Busy,
}

/// One of the databases, with the kit installed and the table that [`Database::write`] writes.
pub(crate) trait Database: Sync {
    /// A session that has said `set` first.
    fn session(&self, set: &str) -> Session;

    /// How many sessions wait for a lock, in the database's own view. None where waiting is said
    /// by an error at once.
    fn waiting(&self, monitor: &mut Session) -> Option<usize>;

    fn begin(&self) -> &'static str;

    /// The guard, with its arguments as SQL literals.
    fn guard_of(&self, resource: &str, number: &str, lease: &str, kind: &str) -> String;

    /// A new holder's first act, a transaction of its own.
    fn raise(&self, resource: &str, holder: Holder) -> String;

    /// The operator's reset, with its arguments as SQL literals.
    fn reset(&self, resource: &str, number: &str, kind: &str) -> String;

    /// The kit's text.
    fn kit(&self) -> &'static str;

    /// What an error that is no refusal means.
    fn meaning(&self, failure: &Failure) -> Option<Outcome>;

    fn guard(&self, resource: &str, holder: Holder) -> String {
        let Holder { number, lease } = holder;
        let (resource, lease) = (format!("'{resource}'"), format!("'{lease}'"));
        self.guard_of(&resource, &number.to_string(), &lease, "'grants'")
    }

    /// Writes the customer's row, and notes in the order of the writes who did it.
    fn write(&self, resource: &str, holder: Holder) -> String {
        let number = holder.number;
        format!(
            "INSERT INTO writes (name, number) VALUES ('{resource}', {number}); \
             UPDATE exports SET written_by = {number} WHERE name = '{resource}';"
        )
    }

    fn outcome(&self, answer: Answer) -> Outcome {
        match answer {
            Answer::Done(_) => Outcome::Done,
            Answer::Failed(failure) if failure.code.starts_with("PF") => {
                Outcome::Refused(failure.code)
            }
            Answer::Failed(failure) => self
                .meaning(&failure)
                .unwrap_or_else(|| panic!("not an answer to expect: {}", failure.text)),
            Answer::Lost(said) => panic!("the connection was lost: {said}"),
        }
    }
}

/// The customer's row, not yet written by anybody.
pub(crate) fn fresh_export(session: &mut Session, resource: &str) {
    session.rows(&format!("INSERT INTO exports (name, written_by) VALUES ('{resource}', 0);"));
}

/// Who wrote the customer's row.
pub(crate) fn written_by(session: &mut Session, resource: &str) -> i64 {
    number(&session.rows(&format!("SELECT written_by FROM exports WHERE name = '{resource}';")))
}

/// The fence of a resource.
pub(crate) fn fence(session: &mut Session, resource: &str) -> i64 {
    let sql = format!("SELECT number FROM palisade_fence WHERE resource = '{resource}';");
    number(&session.rows(&sql))
}

/// All that wrote the row and committed, in the order of their writes.
pub(crate) fn writers(session: &mut Session, resource: &str) -> Vec<i64> {
    let sql = format!("SELECT number FROM writes WHERE name = '{resource}' ORDER BY id;");
    session.rows(&sql).iter().map(|row| row.trim().parse().expect("a number")).collect()
}

fn number(rows: &[String]) -> i64 {
    let [row] = rows else { panic!("one row was to be there: {rows:?}") };
    row.trim().parse().expect("a number")
}
