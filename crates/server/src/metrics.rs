//! Counters of this process, and what is asked of the store when somebody looks.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

use axum::http::Method;

/// Counts requests by method, route and status.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    // Keyed by the route as it is written in the router: paths would be without bound.
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
}

impl Metrics {
    /// Counts one request.
    pub(crate) fn count(&self, method: &Method, route: &str, status: u16) {
        // A method that no route has could be any text.
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE"].contains(&method.as_str());
        let method = if known { method.as_str() } else { "other" };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
    }

    /// The counters as Prometheus reads them.
    pub(crate) fn text(&self, gauges: &[Gauge]) -> String {
        let mut text = String::new();
        for gauge in gauges {
            head(&mut text, gauge.name, gauge.help, "gauge");
            for (labels, value) in &gauge.values {
                line(&mut text, gauge.name, labels, *value);
            }
        }
        let name = "palisade_http_requests_total";
        head(&mut text, name, "Requests answered.", "counter");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, route, status), count) in requests.iter() {
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            line(&mut text, name, &labels, *count);
        }
        text
    }
}

/// A number that goes up and down.
#[derive(Debug)]
pub(crate) struct Gauge {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it counts.
    pub(crate) help: &'static str,
    /// Each value with its labels, in braces; none for no labels.
    pub(crate) values: Vec<(String, u64)>,
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a text takes all");
}

fn line(text: &mut String, name: &str, labels: &str, value: u64) {
    writeln!(text, "{name}{labels} {value}").expect("a text takes all");
}
