//! A receiver of notifications: real HTTP on loopback, answering as it is told.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

use super::eventually;

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

/// What is answered next, and then for ever the last.
type Plan = Vec<(u16, Vec<(&'static str, String)>)>;

struct Shared {
    came: Mutex<Vec<Came>>,
    plan: Mutex<Plan>,
    /// While it is set, nobody is answered.
    held: Mutex<bool>,
    let_go: Notify,
}

pub(crate) struct Receiver {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared {
            came: Mutex::default(),
            plan: Mutex::new(vec![(204, Vec::new())]),
            held: Mutex::new(false),
            let_go: Notify::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, address, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn answer(&self, plan: &[(u16, &[(&'static str, String)])]) {
        let plan = plan.iter().map(|(status, headers)| (*status, headers.to_vec())).collect();
        *self.shared.plan.lock().unwrap() = plan;
    }

    pub(crate) fn hold(&self) {
        *self.shared.held.lock().unwrap() = true;
    }

    pub(crate) fn let_go(&self) {
        *self.shared.held.lock().unwrap() = false;
        self.shared.let_go.notify_waiters();
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.shared.came.lock().unwrap().clone()
    }

    /// Waits until so many have come.
    pub(crate) async fn until(&self, count: usize) -> Vec<Came> {
        eventually(async || Some(self.came()).filter(|came| came.len() >= count)).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let let_go = shared.let_go.notified();
    let held = *shared.held.lock().unwrap();
    shared.came.lock().unwrap().push(Came { path: uri.path().to_owned(), headers, body });
    if held {
        let_go.await;
    }
    let mut plan = shared.plan.lock().unwrap();
    let (status, headers) = if plan.len() > 1 { plan.remove(0) } else { plan[0].clone() };
    let mut response = StatusCode::from_u16(status).unwrap().into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
