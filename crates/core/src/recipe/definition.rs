//! The identity of a recipe: a digest of everything in it that decides what comes out.

use serde_json::{Value, json};

use super::Recipe;
use crate::Digest;

impl Recipe {
    /// The canonical definition, for other implementations to compute the same digest: one JSON
    /// object, UTF-8, no white space, members sorted by their names' bytes, whole numbers in
    /// decimal, no fractions, strings escaped as RFC 8785 does. Its members are `version` (1),
    /// `name`, `tool`, `inputs`, `outputs`, `parameters`, `steps` (each its `argv` alone) and
    /// `fit`, as a recipe is written, members that say nothing left out and defaults filled in.
    ///
    /// Descriptions, limits, progress, exit codes, scratch and retry are not in it: they change
    /// nothing about the bytes, and an operator who raises a time limit should not lose the cache.
    pub fn canonical(&self) -> Vec<u8> {
        let steps: Vec<Value> =
            self.steps.iter().map(|step| json!({ "argv": step.argv })).collect();
        let mut inputs = json!(self.inputs);
        let mut parameters = json!(self.parameters);
        for list in [&mut inputs, &mut parameters] {
            for item in list.as_array_mut().into_iter().flatten() {
                if let Some(members) = item.as_object_mut() {
                    members.remove("description");
                }
            }
        }
        let mut definition = json!({
            "version": 1,
            "name": self.name,
            "tool": self.tool,
            "inputs": inputs,
            "outputs": self.outputs,
            "parameters": parameters,
            "steps": steps,
        });
        if let Some(fit) = &self.fit {
            definition["fit"] = json!(fit);
        }
        let mut text = String::new();
        write(&definition, &mut text);
        text.into_bytes()
    }

    /// BLAKE3 of the [canonical definition](Recipe::canonical).
    pub fn definition(&self) -> Digest {
        Digest::of(&self.canonical())
    }
}

/// Writes sorted by hand: whether `serde_json` sorts depends on a feature that any other crate in
/// the build can switch.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_bytes());
            text.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(&Value::String(name.clone()), text);
                text.push(':');
                write(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}
