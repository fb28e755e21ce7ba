//! Submitting: one wish, or many, each by itself.

use std::collections::BTreeMap;

use axum::{
    Json as JsonBody,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use palisade_api::wire::{
    InputWire, SubmitManyResponse, SubmitRequest, SubmitResponse, SubmitResult,
};
use palisade_core::{
    InputName, Invalid, ObjectKey, RecipeName, RequestId, Tenant, Timestamp,
    history::Joined,
    recipe::Recipe,
    spec::{InputRef, Spec},
    transition::Wish,
};
use palisade_store::{
    StoreExt,
    command::{Submit, Submitted},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{in_batch, in_range, ok};
use crate::{
    app::App,
    edge::{json_bytes, json_from_slice, json_from_value},
    problems::{Rejection, Reply},
};

/// Longest name that a customer may give an input, in bytes: what file systems allow, and room.
const INPUT_LABEL_BYTES_MAX: usize = 1_024;
/// The largest instant or span, in ms: what every JSON reader keeps exact.
const MS_MAX: u64 = (1 << 53) - 1;
/// Highest priority; the lowest is its opposite.
const PRIORITY_MAX: i16 = 100;

/// Tells one wish from many.
#[derive(Deserialize)]
struct Probe {
    jobs: Option<IgnoredAny>,
}

/// Many wishes, none of them looked into yet: each is read by itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    jobs: Vec<Value>,
}

/// `POST /v1/jobs`.
pub(crate) async fn submit(State(app): State<App>, request: Request) -> Reply {
    let bytes = json_bytes(request, &app).await?;
    let probe: Probe = json_from_slice(&bytes)?;
    if probe.jobs.is_some() {
        return submit_many(&app, json_from_slice(&bytes)?).await;
    }
    let submit = wish(&app, json_from_slice(&bytes)?)?;
    let submitted = app.store.run(submit).await?;
    let location = HeaderValue::from_str(&format!("/v1/jobs/{}", submitted.job));
    let status = if submitted.how == Joined::New { StatusCode::CREATED } else { StatusCode::OK };
    let headers = [(header::LOCATION, location.expect("a job's id is letters and digits"))];
    Ok((status, headers, JsonBody(shown(&submitted))).into_response())
}

async fn submit_many(app: &App, many: Many) -> Reply {
    in_batch("jobs", many.jobs.len())?;
    let mut results: Vec<Option<SubmitResult>> = Vec::with_capacity(many.jobs.len());
    let mut submits = Vec::new();
    for job in many.jobs {
        match json_from_value(job).and_then(|asked| wish(app, asked)) {
            Ok(submit) => {
                submits.push(submit);
                results.push(None);
            }
            Err(rejection) => results.push(Some(refused(rejection))),
        }
    }
    let mut answers = app.store.run_all(submits).await.into_iter();
    let results = results.into_iter().map(|result| {
        result.unwrap_or_else(|| match answers.next().expect("one answer a command") {
            Ok(submitted) => SubmitResult::Submitted(shown(&submitted)),
            Err(failure) => refused(failure.into()),
        })
    });
    Ok(ok(&SubmitManyResponse { results: results.collect() }))
}

fn refused(rejection: Rejection) -> SubmitResult {
    let internal = rejection.internal_text();
    if !internal.is_empty() {
        tracing::error!(internal, "fault at one of many submissions");
    }
    SubmitResult::Refused { error: rejection.into_problem() }
}

fn shown(submitted: &Submitted) -> SubmitResponse {
    SubmitResponse {
        job: submitted.job.to_string(),
        submission: submitted.submission.get(),
        deduplicated: matches!(submitted.how, Joined::Joined | Joined::Cached),
        cached: submitted.how == Joined::Cached,
    }
}

fn wish(app: &App, asked: SubmitRequest) -> Result<Submit, Rejection> {
    let name: RecipeName = asked.recipe.parse()?;
    let recipe = app.recipes.get(&name)?;
    let parameters = recipe.resolve_parameters(&asked.parameters)?;
    let inputs = inputs(recipe, asked.inputs)?;
    let spec = Spec { recipe: name, definition: recipe.definition(), inputs, parameters };
    let tenant: Option<Tenant> = asked.tenant.map(|tenant| tenant.parse()).transpose()?;
    let request_id: Option<RequestId> = asked.request_id.map(|id| id.parse()).transpose()?;
    let run_at = match asked.run_at_ms {
        Some(ms) => Timestamp(in_range("run_at_ms", ms, 0..=MS_MAX)?),
        None => app.store.now(),
    };
    let backup_after_ms =
        asked.backup_after_ms.map(|ms| in_range("backup_after_ms", ms, 1..=MS_MAX)).transpose()?;
    let wish = Wish {
        tenant: tenant.unwrap_or_else(Tenant::default_tenant),
        spec,
        retry: recipe.retry.policy(),
        backup_after_ms,
        priority: priority(asked.priority.unwrap_or(0))?,
        run_at,
        fresh: asked.fresh,
        publish: asked.publish.as_deref().map(publish).transpose()?,
    };
    Ok(Submit { wish, request_id })
}

fn publish(name: &str) -> Result<ObjectKey, Invalid> {
    name.parse().map_err(|invalid| Invalid { field: "publish".to_owned(), ..invalid })
}

fn priority(priority: i16) -> Result<i16, Invalid> {
    if (-PRIORITY_MAX..=PRIORITY_MAX).contains(&priority) {
        return Ok(priority);
    }
    let allowed = format!("must be a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}");
    Err(Invalid::new("priority", &priority.to_string(), allowed))
}

/// Exactly the inputs that the recipe declares.
fn inputs(
    recipe: &Recipe,
    given: BTreeMap<String, InputWire>,
) -> Result<BTreeMap<InputName, InputRef>, Invalid> {
    let declared = || {
        let names: Vec<_> = recipe.inputs.iter().map(|input| input.name.as_str()).collect();
        format!("the recipe's inputs are {}", names.join(", "))
    };
    if let Some(unknown) =
        given.keys().find(|name| !recipe.inputs.iter().any(|input| input.name.as_str() == *name))
    {
        return Err(Invalid::new(format!("inputs.{unknown}"), unknown, declared()));
    }
    if let Some(missing) =
        recipe.inputs.iter().find(|input| !given.contains_key(input.name.as_str()))
    {
        let allowed = format!("must be given; {}", declared());
        return Err(Invalid::new(format!("inputs.{}", missing.name), "", allowed));
    }
    given.into_iter().map(|(name, input)| Ok((name.parse()?, input_ref(&name, input)?))).collect()
}

fn input_ref(name: &str, input: InputWire) -> Result<InputRef, Invalid> {
    let path = format!("inputs.{name}");
    let digest = input.digest.parse().map_err(|invalid: Invalid| invalid.under(&path))?;
    let field = format!("{path}.size_bytes");
    let size_bytes = in_range(&field, input.size_bytes, 0..=MS_MAX)?;
    let label = input.name.as_deref().unwrap_or_default();
    if label.len() > INPUT_LABEL_BYTES_MAX || label.chars().any(char::is_control) {
        let allowed = format!(
            "must be at most {INPUT_LABEL_BYTES_MAX} bytes of text without control characters"
        );
        return Err(Invalid::new(format!("{path}.name"), label, allowed));
    }
    Ok(InputRef { digest, size_bytes, name: input.name })
}
