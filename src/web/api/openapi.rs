//! The OpenAPI document (3.1), made from the table of endpoints and the types of their bodies.

use super::answer::{ApiProblem, PROBLEM_TYPE};
use super::routes::{BASE, Endpoint};
use crate::control::job_object::JobObject;
use axum::http::Method;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Returns the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// The schema of `T`.
pub fn of<T: JsonSchema>() -> SchemaOf {
    |generator| generator.subschema_for::<T>().to_value()
}

/// The status codes of refusals that every endpoint may give.
const REFUSALS: [(&str, &str); 10] = [
    ("401", "No credentials, or wrong ones"),
    ("403", "The role of the user does not allow it, or a page of another origin asks"),
    ("404", "There is no such job"),
    ("408", "The body did not come in time"),
    ("409", "It does not make sense in the present state, or would do harm"),
    ("413", "The body is too long"),
    ("421", "Addressed to another host"),
    ("422", "A parameter is not valid"),
    ("429", "Too many wrong credentials"),
    ("507", "The queue cannot be written"),
];

/// Returns the document.
pub fn document(endpoints: &[Endpoint]) -> Value {
    let mut answers = generator(Contract::Serialize);
    let mut requests = generator(Contract::Deserialize);
    let problem = answers.subschema_for::<ApiProblem>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut answers, &mut requests, &problem);
        let method = endpoint.method.as_str().to_ascii_lowercase();
        let path = paths.entry(format!("{BASE}{}", endpoint.path)).or_insert_with(|| json!({}));
        path[method] = operation;
    }
    paths.insert(format!("{BASE}/events"), json!({ "get": events(&problem) }));
    answers.subschema_for::<JobObject>();
    let mut schemas = answers.take_definitions(true);
    schemas.extend(requests.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": { "title": "scribed", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "token": [] }, { "password": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" }, "password": { "type": "http", "scheme": "basic" },
            },
        },
    })
}

fn generator(contract: Contract) -> SchemaGenerator {
    let configure = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.contract = contract;
    };
    SchemaSettings::draft2020_12().with(configure).into_generator()
}

fn operation(
    endpoint: &Endpoint,
    answers: &mut SchemaGenerator,
    requests: &mut SchemaGenerator,
    problem: &Value,
) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    if endpoint.path.contains("{id}") {
        parameters.push(json!({
            "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 1, "maximum": u64::MAX },
        }));
    }
    if let Some(query) = endpoint.query {
        let schema = query(requests);
        parameters.extend(query_parameters(&resolved(requests, schema)));
    }
    let mut operation = json!({
        "operationId": endpoint.name, "summary": endpoint.summary, "parameters": parameters,
        "responses": responses(json!({ "application/json": { "schema": (endpoint.answer)(answers) } }), problem),
    });
    if let Some(body) = endpoint.body {
        let required = endpoint.method == Method::POST && endpoint.name == "add_job";
        operation["requestBody"] =
            json!({ "required": required, "content": { "application/json": { "schema": body(requests) } } });
    }
    operation
}

fn responses(content: Value, problem: &Value) -> Value {
    let mut responses = json!({ "200": { "description": "Done", "content": content } });
    for (status, description) in REFUSALS {
        responses[status] = json!({ "description": description, "content": { PROBLEM_TYPE: { "schema": problem } } });
    }
    responses
}

fn events(problem: &Value) -> Value {
    let content = json!({ "text/event-stream": { "schema": { "type": "string" } } });
    json!({
        "operationId": "events", "summary": "Streams the steps of jobs as server-sent events, from now on",
        "responses": responses(content, problem),
    })
}

/// Follows a reference to its definition.
fn resolved(generator: &SchemaGenerator, schema: Value) -> Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    match name.and_then(|name| generator.definitions().get(name)) {
        Some(definition) => definition.clone(),
        None => schema,
    }
}

fn query_parameters(schema: &Value) -> Vec<Value> {
    let required = |name: &String| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, property): (&String, &Value)| {
        let mut property = property.clone();
        // A query has no null: what is absent is absent.
        if let Some(types) = property["type"]
            .as_array()
            .map(|types| types.iter().filter(|kind| *kind != "null").cloned().collect::<Vec<_>>())
            && let [one] = types.as_slice()
        {
            property["type"] = one.clone();
        }
        json!({ "name": name, "in": "query", "required": required(name), "schema": property })
    };
    properties.map(parameter).collect()
}
