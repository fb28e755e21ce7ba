//! The description of every route, for programs.

use serde_json::{Value, json};

/// The OpenAPI document.
pub(crate) fn document() -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "Palisade", "version": "v1" }, "paths": {} })
}
