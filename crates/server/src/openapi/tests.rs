use std::collections::BTreeSet;

use palisade_api::wire::{
    AcquireRequest, CancelRequest, CapabilityWire, ClaimRequest, CompleteRequest, FailRequest,
    HeartbeatRequest, InputWire, PauseWire, PinRequest, ProgressRequest, ReleaseRequest,
    RetryRequest, RotateRequest, SubmitMany, SubmitRequest, WebhookRequest,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::document;

/// The members that the type takes, by its own words: it names them when it meets another.
fn members_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let error = serde_json::from_value::<T>(json!({ "?": 0 })).err().unwrap().to_string();
    let names = error.split("expected").nth(1).unwrap().split('`');
    names.skip(1).step_by(2).map(str::to_owned).collect()
}

fn described(shape: &str) -> BTreeSet<String> {
    let document = document();
    let properties = &document["components"]["schemas"][shape]["properties"];
    properties.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn requests_are_described_with_exactly_the_members_that_they_take() {
    assert_eq!(described("SubmitRequest"), members_of::<SubmitRequest>());
    assert_eq!(described("SubmitMany"), members_of::<SubmitMany>());
    assert_eq!(described("InputWire"), members_of::<InputWire>());
    assert_eq!(described("CancelRequest"), members_of::<CancelRequest>());
    assert_eq!(described("RetryRequest"), members_of::<RetryRequest>());
    assert_eq!(described("CompleteRequest"), members_of::<CompleteRequest>());
    assert_eq!(described("FailRequest"), members_of::<FailRequest>());
    assert_eq!(described("ReleaseRequest"), members_of::<ReleaseRequest>());
    assert_eq!(described("ClaimRequest"), members_of::<ClaimRequest>());
    assert_eq!(described("CapabilityWire"), members_of::<CapabilityWire>());
    assert_eq!(described("HeartbeatRequest"), members_of::<HeartbeatRequest>());
    assert_eq!(described("PauseWire"), members_of::<PauseWire>());
    assert_eq!(described("AcquireRequest"), members_of::<AcquireRequest>());
    assert_eq!(described("ProgressRequest"), members_of::<ProgressRequest>());
    assert_eq!(described("WebhookRequest"), members_of::<WebhookRequest>());
    assert_eq!(described("RotateRequest"), members_of::<RotateRequest>());
    assert_eq!(described("PinRequest"), members_of::<PinRequest>());
}

#[test]
fn every_path_in_the_router_is_described_and_no_other() {
    let routed: BTreeSet<_> =
        crate::router::routes().iter().map(|(path, _)| path.replace('*', "")).collect();
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.keys().cloned().collect::<BTreeSet<_>>(), routed);
}

#[test]
fn every_shape_that_is_named_is_there() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                let name = members.get("$ref").and_then(Value::as_str);
                found.extend(name.map(|name| name.rsplit('/').next().unwrap().to_owned()));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert_eq!(found, schemas.keys().cloned().collect(), "all are there, and all are used");
}
