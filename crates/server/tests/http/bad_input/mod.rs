//! Bad input to every route: each a refusal with a status, a stable code, and the field.

mod attempts;
mod requests;
mod submissions;

use serde_json::Value;

use crate::support::{House, raw, raw::Request};

/// What a refusal must be: its status, its code, and the field that it names.
type Expected = (u16, &'static str, &'static str);

const INVALID: u16 = 422;

async fn refused(house: &House, request: Request, expected: Expected) {
    let shown = format!("{request:?}");
    let answer = raw::ask(&house.server, request).await;
    let problem = answer.problem();
    let field = problem.facts.get("field").or(problem.facts.get("what"));
    let got = (problem.status, problem.code.as_str(), field.and_then(Value::as_str).unwrap_or(""));
    assert_eq!(got, expected, "{shown}\n{problem:?}");
}
