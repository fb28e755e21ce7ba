use palisade_store::Failure;

use super::{Weight, weight};
use crate::problems::{self, Rejection};

#[test]
fn a_stop_is_no_fault_and_a_store_that_is_away_is_one() {
    assert_eq!(weight(503, &problems::stopping()), Weight::Expected);
    let away = Rejection::from(Failure::Unavailable("connection refused".to_owned()));
    assert_eq!(weight(503, &away), Weight::Fault);
    assert_eq!(weight(404, &problems::no_route("/nowhere")), Weight::Refusal);
}
