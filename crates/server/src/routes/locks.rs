//! Lease locks. Their names may have slashes, so the verb is the path's last part.

use axum::extract::{Request, State};
use palisade_api::wire::{
    AcquireRequest, AcquireResponse, LockHeldView, LockList, LockReleased, LockView,
    LockWaiterView, PairWire, RenewResponse,
};
use palisade_core::{
    Invalid, LeaseId, LockName, RequestId, limits,
    lock::{Acquire, Lock},
};
use palisade_store::{
    StoreExt,
    command::{AcquireLock, ReleaseLock, RenewLock},
    query::{Page, Query, View},
};

use super::{in_range, lock_history, ok, pair};
use crate::{
    app::App,
    duty,
    edge::{Params, Segments, Text, json_bytes, json_from_slice},
    lock_waits::{self, ALIVE_MS},
    problems::{self, Rejection, Reply},
};

/// Most things on one page.
pub(super) const PAGE_MAX: u64 = 1_000;
/// How many when no number is asked for.
pub(super) const PAGE_DEFAULT: u64 = 100;

const VERBS: &str = "POST /v1/locks/NAME/acquire, …/renew and …/release";

/// `POST /v1/locks/{name}/acquire`, `/renew` and `/release`.
pub(crate) async fn verb(State(app): State<App>, path: Segments, request: Request) -> Reply {
    let whole = path.get::<Text>("path")?.0;
    let Some((name, verb)) = whole.rsplit_once('/') else {
        return Err(problems::no_verb(request.uri().path(), VERBS));
    };
    match verb {
        "acquire" | "renew" | "release" => {}
        _ => return Err(problems::no_verb(request.uri().path(), VERBS)),
    }
    let name = name.parse::<LockName>()?;
    if name.as_str().starts_with(duty::PREFIX) {
        let allowed = "must not be one of the servers' own, which begin with palisade/duties/";
        return Err(Invalid::new("name", name.as_str(), allowed).into());
    }
    let body = json_bytes(request, &app).await?;
    match verb {
        "acquire" => acquire(&app, name, json_from_slice(&body)?).await,
        "renew" => renew(&app, name, &json_from_slice(&body)?).await,
        _ => release(&app, name, &json_from_slice(&body)?).await,
    }
}

async fn acquire(app: &App, name: LockName, asked: AcquireRequest) -> Reply {
    let received = app.store.now();
    let ttl_ms = asked.ttl_ms.unwrap_or(limits::TTL_MS_DEFAULT);
    let request_id: RequestId = match asked.request_id {
        Some(id) => id.parse()?,
        None => format!("{:032x}", app.entropy.next_u128()).parse()?,
    };
    let wish = Acquire {
        holder: asked.holder.parse()?,
        ttl_ms: in_range("ttl_ms", ttl_ms, limits::TTL_MS_MIN..=limits::TTL_MS_MAX)?,
        wait_ms: in_range("wait_ms", asked.wait_ms, 0..=limits::LOCK_WAIT_MS_MAX)?,
        request_id,
        lease_id: LeaseId(app.entropy.next_u128()),
        alive_ms: ALIVE_MS,
    };
    let held = lock_waits::acquire(app, AcquireLock { name, wish }).await?;
    Ok(ok(&AcquireResponse {
        token: held.pair.token.get(),
        lease: held.pair.lease_id.to_string(),
        ttl_ms: held.ttl_ms,
        // Never more than this request waited: its sender adds it to the time for which it trusts
        // the lease.
        waited_ms: held.granted_at.since_ms(received),
    }))
}

async fn renew(app: &App, name: LockName, shown: &PairWire) -> Reply {
    let pair = pair("", shown.token, &shown.lease)?;
    let lease = app.store.run(RenewLock { name, pair }).await?;
    Ok(ok(&RenewResponse { ttl_ms: lease.ttl_ms, deadline_ms: lease.deadline.0 }))
}

async fn release(app: &App, name: LockName, shown: &PairWire) -> Reply {
    let pair = pair("", shown.token, &shown.lease)?;
    app.store.run(ReleaseLock { name, pair }).await?;
    Ok(ok(&LockReleased { released: true }))
}

/// `GET /v1/locks/{name}`, and with `history=true` what happened to it. `…/{name}/history` asks for
/// that too, unless there is a lock that is itself called so.
pub(crate) async fn show(State(app): State<App>, path: Segments, mut params: Params) -> Reply {
    let name = path.get::<LockName>("path")?;
    let told = params.take_flag("history")?.unwrap_or(false);
    let limit = params.take_number("limit", 1..=lock_history::ENTRIES_MAX)?;
    params.finish("history, limit")?;
    if told {
        known(&app, &name).await?;
        return lock_history::reply(&app, name, limit).await;
    }
    if let Some(of) = name.as_str().strip_suffix("/history")
        && find(&app, &name).await?.is_none()
    {
        let of = of.parse::<LockName>()?;
        known(&app, &of).await?;
        return lock_history::reply(&app, of, limit).await;
    }
    if let Some(limit) = limit {
        let allowed = "goes with history=true; a lock that is shown takes none";
        return Err(Invalid::new("limit", &limit.to_string(), allowed).into());
    }
    let lock = known(&app, &name).await?;
    Ok(ok(&view(&lock)))
}

async fn find(app: &App, name: &LockName) -> Result<Option<Box<Lock>>, Rejection> {
    match app.store.query(Query::Lock(name.clone())).await? {
        View::Lock(lock) => Ok(lock),
        _ => unreachable!("each query is answered by its own kind"),
    }
}

async fn known(app: &App, name: &LockName) -> Result<Box<Lock>, Rejection> {
    find(app, name).await?.ok_or_else(|| problems::not_found("lock", name.to_string()))
}

/// `GET /v1/locks`.
pub(crate) async fn list(State(app): State<App>, params: Params) -> Reply {
    let page = page(params)?;
    let limit = page.limit - 1;
    let View::Locks(mut locks) = app.store.query(Query::Locks(page)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let more = locks.len() > limit;
    locks.truncate(limit);
    let next_cursor = locks.last().filter(|_| more).map(|lock| lock.name.to_string());
    Ok(ok(&LockList { locks: locks.iter().map(view).collect(), next_cursor }))
}

/// A page as asked for, and one thing more: it tells whether there is another page.
pub(super) fn page(mut params: Params) -> Result<Page, Invalid> {
    let prefix = params.take::<Text>("prefix")?.unwrap_or_default().0;
    let after = params.take::<Text>("cursor")?.map(|text| text.0);
    let limit = params.take_number("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    params.finish("prefix, cursor, limit")?;
    let limit = usize::try_from(limit).expect("a thousand fits") + 1;
    Ok(Page { prefix, after, limit })
}

fn view(lock: &Lock) -> LockView {
    let held = lock.holding.as_ref().map(|held| LockHeldView {
        token: held.token.get(),
        holder: held.holder.to_string(),
        granted_at_ms: held.granted_at.0,
        ttl_ms: held.lease.ttl_ms,
        deadline_ms: held.lease.deadline.0,
    });
    let waiters = lock.waiters.iter().map(|waiter| LockWaiterView {
        holder: waiter.holder.to_string(),
        since_ms: waiter.since.0,
    });
    let (name, fence) = (lock.name.to_string(), lock.fence.get());
    LockView { name, fence, held, waiters: waiters.collect() }
}
