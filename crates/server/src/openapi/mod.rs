//! The description of every route, for programs: one table of operations, one of shapes.

mod fences;
mod operations;
mod shapes;
mod webhooks;
mod work_shapes;

use serde_json::{Map, Value, json};

use self::operations::{OPERATIONS, Operation};

/// The OpenAPI document.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS.iter().chain(fences::OPERATIONS).chain(webhooks::OPERATIONS) {
        // A path's rest is written `{*name}` where it is routed, `{name}` where it is described.
        let path = operation.path.replace('*', "");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[operation.method] = described(operation);
    }
    let shapes = shapes::SHAPES.iter().chain(work_shapes::SHAPES).chain(fences::SHAPES);
    let shapes = shapes.chain(webhooks::SHAPES);
    let schemas: Map<String, Value> =
        shapes.map(|(name, members)| ((*name).to_owned(), object(members))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Palisade",
            "version": "v1",
            "description": "Instants are ms since the Unix epoch on the store's clock; spans are \
                            ms; digests are BLAKE3, 64 hexadecimal digits; tokens are whole \
                            numbers below 2^53; lease ids are 32 hexadecimal digits. Refusals \
                            are application/problem+json with a stable `code`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "bearer": [] }],
    })
}

fn described(operation: &Operation) -> Value {
    let mut responses = Map::new();
    for (status, media_type, shape) in operation.answers {
        let content = match *shape {
            "" => json!({}),
            shape => json!({ *media_type: { "schema": schema(shape) } }),
        };
        responses.insert((*status).to_owned(), json!({ "description": "", "content": content }));
    }
    let problem = json!({ "application/problem+json": { "schema": schema("Problem") } });
    responses.insert(
        "default".to_owned(),
        json!({ "description": "Refused, or failed.", "content": problem }),
    );
    let mut described = json!({
        "summary": operation.summary,
        "parameters": parameters(operation),
        "responses": responses,
    });
    if let Some((media_type, shape)) = operation.body {
        let content = json!({ media_type: { "schema": schema(shape) } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    described
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?.trim_start_matches('*');
        let schema = schema("string");
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    let others = operation.parameters.iter().map(|(place, name, shape, description)| {
        let required = name.ends_with('!');
        let name = name.trim_end_matches('!');
        json!({ "name": name, "in": place, "required": required, "schema": schema(shape),
                "description": description })
    });
    in_path.chain(others).collect()
}

/// A member of a shape: its name (with `!` if it is always there), its shape, what it is.
type Member = (&'static str, &'static str, &'static str);

fn object(members: &[Member]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut open = false;
    for (name, shape, description) in members {
        if *name == "..." {
            open = true;
            continue;
        }
        if name.ends_with('!') {
            required.push(name.trim_end_matches('!'));
        }
        let mut property = schema(shape);
        property["description"] = json!(description);
        properties.insert(name.trim_end_matches('!').to_owned(), property);
    }
    json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": open })
}

/// A shape's schema: a plain type, `[T]` for a list, `{T}` for a map by name, `A|B` for either, or
/// the name of a shape.
fn schema(shape: &str) -> Value {
    let inside = |open, close| shape.strip_prefix(open)?.strip_suffix(close);
    if let Some(item) = inside('[', ']') {
        return json!({ "type": "array", "items": schema(item) });
    }
    if let Some(item) = inside('{', '}') {
        return json!({ "type": "object", "additionalProperties": schema(item) });
    }
    if shape.contains('|') {
        return json!({ "oneOf": shape.split('|').map(schema).collect::<Vec<_>>() });
    }
    match shape {
        "any" => json!({}),
        "bytes" => json!({ "type": "string", "format": "binary" }),
        "string" | "boolean" | "number" => json!({ "type": shape }),
        "integer" => json!({ "type": "integer" }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

#[cfg(test)]
mod tests;
