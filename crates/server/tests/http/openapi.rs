//! The description of the routes, compared with what they do.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{House, complete_of, raw, raw::Request};

async fn document(house: &House) -> Value {
    raw::ask(&house.server, Request::new("GET", "/openapi.json")).await.json()
}

#[tokio::test]
async fn each_path_answers_exactly_the_methods_that_are_described() {
    let house = House::start().await;
    let document = document(&house).await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let mut described: BTreeSet<String> =
            methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if described.contains("GET") {
            described.insert("HEAD".to_owned());
        }
        let path = path.replace(['{', '}'], "");
        let answer = raw::ask(&house.server, Request::new("BREW", &path)).await;
        assert_eq!(answer.status, 405, "{path}");
        let allowed = answer.headers["allow"].split(',').map(|method| method.trim().to_owned());
        assert_eq!(allowed.collect::<BTreeSet<_>>(), described, "{path}");
    }
}

#[tokio::test]
async fn what_is_answered_is_what_is_described() {
    let house = House::start().await;
    let document = document(&house).await;
    let seen = &mut BTreeSet::new();
    let wish = serde_json::to_value(house.wish(b"film").await).unwrap();
    let mut check = async |method: &str, path: &str, body: Value| {
        let request = match method {
            "POST" => Request::json(path, &body.to_string()),
            _ => Request::new(method, path),
        };
        let answer = raw::ask(&house.server, request).await;
        let operation = operation(&document, method, path);
        let status = answer.status.to_string();
        let responses = &operation["responses"];
        let described =
            if answer.status < 300 { &responses[&status] } else { &responses["default"] };
        let media_type = answer.headers["content-type"].split(';').next().unwrap();
        let schema = &described["content"][media_type]["schema"];
        assert!(!schema.is_null(), "{method} {path}: {status} {media_type} is not described");
        fits(&document, schema, &answer.json(), &format!("{method} {path}"));
        seen.insert(operation["summary"].as_str().unwrap().to_owned());
        answer.json()
    };
    let job = check("POST", "/v1/jobs", wish.clone()).await["job"].as_str().unwrap().to_owned();
    check("POST", "/v1/jobs", wish.clone()).await;
    check("POST", "/v1/jobs", json!({ "jobs": [wish, 7] })).await;
    check("GET", &format!("/v1/jobs/{job}"), Value::Null).await;
    let at = |verb: &str| format!("/v1/jobs/{job}/{verb}");
    let claim = |id: &str| serde_json::to_value(house.claim("s1", id, 0)).unwrap();
    let granted = check("POST", "/v1/claims", claim("c1")).await["grants"][0].clone();
    check("POST", "/v1/jobs/j1/complete", json!({ "token": 1 })).await;
    let lease =
        json!({ "job": granted["job"], "token": granted["token"], "lease": granted["lease"] });
    let pair = json!({ "token": granted["token"], "lease": granted["lease"] });
    let beat = json!({ "session": "s1", "seq": 1, "leases": [lease] });
    check("POST", "/v1/heartbeats", beat).await;
    check("GET", "/v1/workers", Value::Null).await;
    check("POST", &at("release"), pair).await;
    check("POST", "/v1/claims", claim("c1")).await;
    let grant = house.grant("s1", "c2").await;
    check("POST", &at("fail"), final_failure(grant.token, &grant.lease)).await;
    check("GET", &format!("/v1/jobs/{job}"), Value::Null).await;
    check("POST", &at("retry"), json!({})).await;
    let grant = house.grant("s1", "c3").await;
    let blob = format!("/v1/blobs/{}", palisade_core::Digest::of(b"out"));
    check("POST", &format!("{blob}/pin"), json!({})).await;
    house.put(b"out", &[]).await;
    check("POST", &format!("{blob}/pin"), json!({})).await;
    check("PUT", &blob, Value::Null).await;
    let written = json!({ "generation": 1, "size_bytes": 3 });
    check("POST", &format!("{blob}/finish"), written).await;
    check("GET", "/v1/artefacts", Value::Null).await;
    let complete = serde_json::to_value(complete_of(&grant, b"out")).unwrap();
    check("POST", &at("complete"), complete.clone()).await;
    check("POST", &at("cancel"), json!({ "all": true })).await;
    check("GET", &at("wait?timeout_ms=0"), Value::Null).await;
    check("GET", &at("history"), Value::Null).await;
    check("GET", "/v1/jobs?limit=1", Value::Null).await;
    let hook = json!({ "url": "https://receiver.example/", "events": ["job.cancelled"] });
    let hook = check("POST", "/v1/webhooks", hook).await["id"].as_str().unwrap().to_owned();
    let hook = format!("/v1/webhooks/{hook}");
    check("POST", &format!("{hook}/rotate"), json!({})).await;
    check("POST", "/v1/deliveries/evt_0000000000000001_1/redeliver", Value::Null).await;
    let rows = format!("{hook}/deliveries");
    let looks = [&hook, &rows, "/v1/webhooks", "/v1/locks", "/v1/objects", "/v1/recipes"];
    for path in looks.into_iter().chain(["/healthz", "/readyz", "/openapi.json"]) {
        check("GET", path, Value::Null).await;
    }
    // What is left are streams, files, pages, progress, verbs of locks and objects, and a webhook's
    // removal, which have tests of their own.
    let all = document["paths"].as_object().unwrap().values();
    let all = all.flat_map(|methods| methods.as_object().unwrap().values());
    assert_eq!(all.count() - seen.len(), 14);
}

fn final_failure(token: u64, lease: &str) -> Value {
    let reason = "bad_input";
    json!({ "token": token, "lease": lease, "reason": reason, "message": "no", "final": true })
}

fn operation<'a>(document: &'a Value, method: &str, path: &str) -> &'a Value {
    let path = path.split('?').next().unwrap();
    let paths = document["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) =
            (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len()
            && template.iter().zip(&path).all(|(a, b)| a == b || a.starts_with('{'))
    };
    let found = paths.iter().find(|(template, _)| fits(template)).unwrap().1;
    &found[method.to_lowercase()]
}

/// Checks a value against a schema, as far as the document uses the language of schemas.
fn fits(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Err(why) = checked(document, schema, value, at) {
        panic!("{why}\n{value:#}");
    }
}

fn checked(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = document.pointer(name.trim_start_matches('#')).unwrap();
        return checked(document, schema, value, at);
    }
    if let Some(either) = schema["oneOf"].as_array() {
        let fitting =
            either.iter().filter(|schema| checked(document, schema, value, at).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { Err(format!("{at}: {fitting} shapes fit")) };
    }
    let right = match schema["type"].as_str() {
        None => true,
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some(_) => value.is_object(),
    };
    if !right {
        return Err(format!("{at}: is no {}", schema["type"]));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        checked(document, &schema["items"], item, &format!("{at}[{index}]"))?;
    }
    let Some(members) = value.as_object().filter(|_| schema["type"] == "object") else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !members.contains_key(name.as_str().unwrap()) {
            return Err(format!("{at}.{name}: is missing"));
        }
    }
    for (name, member) in members {
        let at = format!("{at}.{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(schema), _) => checked(document, schema, member, &at)?,
            (None, Value::Bool(false)) => return Err(format!("{at}: is not described")),
            (None, Value::Bool(true)) => {}
            (None, others) => checked(document, others, member, &at)?,
        }
    }
    Ok(())
}
