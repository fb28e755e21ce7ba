//! Who is told, and what became of what was told.

use axum::{Json as Written, extract::State, http::StatusCode, response::IntoResponse};
use palisade_api::wire::{
    DeliveryList, DeliveryView, RotateRequest, WebhookList, WebhookRequest, WebhookView,
};
use palisade_core::{
    Invalid, Tenant, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, EventId, EventType, Secret, Standing, checked_url},
};
use palisade_store::{
    StoreExt,
    command::{CreateEndpoint, DeleteEndpoint, Redeliver, RotateSecret},
    query::{DeliveryFilter, Query, View},
};

use super::{
    in_range,
    locks::{PAGE_DEFAULT, PAGE_MAX},
    ok,
};
use crate::{
    app::App,
    edge::{Json, Params, Segments, Text},
    problems::{self, Rejection, Reply},
    webhooks,
};

/// How long an old secret signs beside its successor when nothing is said, in ms: a day.
const KEEP_MS_DEFAULT: u64 = 24 * 60 * 60 * 1000;
/// The longest that can be said, in ms: a week.
const KEEP_MS_MAX: u64 = 7 * KEEP_MS_DEFAULT;

/// `POST /v1/webhooks`.
pub(crate) async fn add(State(app): State<App>, Json(asked): Json<WebhookRequest>) -> Reply {
    let secret = fresh_secret(&app);
    let endpoint = Endpoint {
        id: EndpointId(u64::try_from(app.entropy.next_u128() >> 64).expect("the upper half fits")),
        tenant: match asked.tenant {
            Some(tenant) => tenant.parse()?,
            None => Tenant::default_tenant(),
        },
        url: allowed_url(&app, asked.url)?,
        events: if asked.events.is_empty() {
            [EventType::Completed, EventType::Failed, EventType::Cancelled].into()
        } else {
            asked.events.iter().map(|event| event.parse()).collect::<Result<_, Invalid>>()?
        },
        secret,
        previous: None,
        created_at: Timestamp(0),
    };
    let endpoint = app.store.run(CreateEndpoint { endpoint }).await?;
    app.webhooks.learn(&endpoint);
    app.webhooks.look();
    let view = with_secret(&app, &endpoint);
    Ok((StatusCode::CREATED, Written(view)).into_response())
}

/// An address, as far as it can be judged before a name is looked up.
fn allowed_url(app: &App, url: String) -> Result<String, Invalid> {
    checked_url(&url)?;
    let parsed = reqwest::Url::parse(&url)
        .map_err(|error| Invalid::new("url", &url, format!("must be a web address: {error}")))?;
    let allowed = &app.config.webhook_addresses;
    if webhooks::literal(&parsed).is_some_and(|address| !allowed.allows(address)) {
        let allowed = "must be a public address; the server's operator can allow others";
        return Err(Invalid::new("url", &url, allowed));
    }
    Ok(url)
}

fn fresh_secret(app: &App) -> Secret {
    let mut bytes = [0; 32];
    for half in bytes.chunks_exact_mut(16) {
        half.copy_from_slice(&app.entropy.next_u128().to_be_bytes());
    }
    Secret::new(bytes)
}

/// `GET /v1/webhooks`.
pub(crate) async fn list(State(app): State<App>, params: Params) -> Reply {
    params.finish("")?;
    let endpoints = all(&app).await?;
    let webhooks = endpoints.iter().map(|endpoint| view(&app, endpoint)).collect();
    Ok(ok(&WebhookList { webhooks }))
}

/// `GET /v1/webhooks/{id}`.
pub(crate) async fn show(State(app): State<App>, path: Segments, params: Params) -> Reply {
    let id = path.get::<EndpointId>("id")?;
    params.finish("")?;
    Ok(ok(&view(&app, &one(&app, id).await?)))
}

/// `DELETE /v1/webhooks/{id}`.
pub(crate) async fn remove(State(app): State<App>, path: Segments) -> Reply {
    app.store.run(DeleteEndpoint { endpoint: path.get("id")? }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /v1/webhooks/{id}/rotate`.
pub(crate) async fn rotate(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<RotateRequest>,
) -> Reply {
    let endpoint = path.get::<EndpointId>("id")?;
    let keep_ms = asked.keep_ms.unwrap_or(KEEP_MS_DEFAULT);
    let keep_ms = in_range("keep_ms", keep_ms, 0..=KEEP_MS_MAX)?;
    let secret = fresh_secret(&app);
    let endpoint = app.store.run(RotateSecret { endpoint, secret, keep_ms }).await?;
    Ok(ok(&with_secret(&app, &endpoint)))
}

/// `GET /v1/webhooks/{id}/deliveries`.
pub(crate) async fn deliveries(
    State(app): State<App>,
    path: Segments,
    mut params: Params,
) -> Reply {
    let endpoint = path.get::<EndpointId>("id")?;
    let standing = params.take::<Text>("state")?.map(|text| standing(&text.0)).transpose()?;
    let before = params.take::<EventId>("cursor")?.map(|id| id.number);
    let limit = params.take_number("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    params.finish("state, cursor, limit")?;
    one(&app, endpoint).await?;
    let limit = usize::try_from(limit).expect("a thousand fits");
    let filter = DeliveryFilter { endpoint, standing, before, limit: limit + 1 };
    let View::Deliveries(mut rows) = app.store.query(Query::Deliveries(filter)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|row| row.id().to_string());
    Ok(ok(&DeliveryList { deliveries: rows.iter().map(delivery_view).collect(), next_cursor }))
}

fn standing(text: &str) -> Result<&'static str, Invalid> {
    let found = Standing::WORDS.into_iter().find(|word| *word == text);
    let allowed = || format!("must be one of {}", Standing::WORDS.join(", "));
    found.ok_or_else(|| Invalid::new("state", text, allowed()))
}

/// `POST /v1/deliveries/{id}/redeliver`.
pub(crate) async fn redeliver(State(app): State<App>, path: Segments) -> Reply {
    let row = app.store.run(Redeliver { id: path.get("id")? }).await?;
    Ok(ok(&delivery_view(&row)))
}

async fn all(app: &App) -> Result<Vec<Endpoint>, Rejection> {
    match app.store.query(Query::Endpoints).await? {
        View::Endpoints(endpoints) => Ok(endpoints),
        _ => unreachable!("each query is answered by its own kind"),
    }
}

async fn one(app: &App, id: EndpointId) -> Result<Endpoint, Rejection> {
    let found = all(app).await?.into_iter().find(|endpoint| endpoint.id == id);
    found.ok_or_else(|| problems::not_found("webhook", id.to_string()))
}

/// Without the secret: it is shown once.
fn view(app: &App, endpoint: &Endpoint) -> WebhookView {
    let now = app.store.now();
    let old_until = endpoint.previous.map(|previous| previous.until).filter(|until| now < *until);
    WebhookView {
        id: endpoint.id.to_string(),
        url: endpoint.url.clone(),
        events: endpoint.events.iter().map(ToString::to_string).collect(),
        tenant: endpoint.tenant.to_string(),
        created_at_ms: endpoint.created_at.0,
        secret: None,
        old_secret_until_ms: old_until.map(|until| until.0),
    }
}

fn with_secret(app: &App, endpoint: &Endpoint) -> WebhookView {
    WebhookView { secret: Some(webhooks::shown(&endpoint.secret)), ..view(app, endpoint) }
}

fn delivery_view(row: &Delivery) -> DeliveryView {
    let notice = &row.notice;
    DeliveryView {
        id: row.id().to_string(),
        webhook: row.endpoint.to_string(),
        event: notice.event.to_string(),
        job: notice.job.to_string(),
        submission: notice.submission.get(),
        token: notice.token.map(palisade_core::Number::get),
        seq: notice.seq.get(),
        at_ms: notice.at.0,
        state: row.standing.as_str().to_owned(),
        tries: row.tries,
        due_at_ms: row.due_at.0,
        last_status: row.last.as_ref().and_then(|last| last.status),
        last_error: row.last.as_ref().map(|last| last.error.clone()),
    }
}
