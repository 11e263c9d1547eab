//! The OpenAPI document (3.1), made from the table that requests are checked against and from the types that
//! answers are written with.

use crate::wire::error::ErrorBody;
use crate::wire::page::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use crate::wire::record::{Created, Record};
use crate::wire::result::ResultBody;
use crate::wire::upload::Uploaded;
use crate::wire::{first, published, record, upload};
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A transcription as it is answered.
type Job = Record<ResultBody>;

/// The whole document.
pub fn document() -> Value {
    let mut generator = generator();
    let bodies = Bodies {
        uploaded: reference::<Uploaded>(&mut generator),
        created: reference::<Created>(&mut generator),
        job: reference::<Job>(&mut generator),
        page: reference::<Page<Job>>(&mut generator),
        error: reference::<ErrorBody>(&mut generator),
    };
    let mut schemas = generator.take_definitions(true);
    schemas.insert("CreateRequest".to_owned(), published::schema());
    let key = json!({ "type": "apiKey", "in": "header", "name": "x-service-key" });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Speech transcription service", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "key": [] }],
        "paths": paths(&bodies),
        "components": { "schemas": schemas, "securitySchemes": { "key": key } },
    })
}

fn generator() -> SchemaGenerator {
    let set = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        // What is written is whole; what is read may lack anything.
        settings.contract = Contract::Serialize;
    };
    SchemaSettings::draft2020_12().with(set).into_generator()
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

struct Bodies {
    uploaded: Value,
    created: Value,
    job: Value,
    page: Value,
    error: Value,
}

fn paths(bodies: &Bodies) -> Map<String, Value> {
    let Bodies { uploaded, job, page, error, .. } = bodies;
    let list = |parameters: Value| {
        operation("Lists transcriptions, newest first", 200, page, error, json!({ "parameters": parameters }))
    };
    let read = operation("Reads a live transcription", 200, job, error, json!({ "parameters": id() }));
    let mut upload = form(&[upload::PART]);
    upload["content"]["application/json"]["schema"] = address();
    let upload =
        operation("Uploads a file, or has one fetched", 200, uploaded, error, json!({ "requestBody": upload }));
    let first = json!({ "post": operation(
        "The first version: file and parameters in, the result out, on one connection", 200, &json!({ "type": "object" }), error,
        json!({ "requestBody": first_form(), "deprecated": true })) });
    let mut paths = Map::from_iter([
        (upload::PATH.to_owned(), json!({ "post": upload })),
        ("/file/{id}".to_owned(), json!({ "get": audio("Reads an upload", error) })),
        (record::LIVE_PATH.to_owned(), json!({ "get": list(query()) })),
        (format!("{}/{{id}}", record::LIVE_PATH), json!({ "get": read })),
        (first::AUDIO_PATH.to_owned(), first.clone()),
        (first::VIDEO_PATH.to_owned(), first),
    ]);
    paths.extend(transcriptions(record::PATH, list(query()), bodies));
    paths.extend(transcriptions(record::OLD_PATH, list(query_with_kind()), bodies));
    paths
}

/// What is done with transcriptions below one of their two paths.
fn transcriptions(path: &str, list: Value, bodies: &Bodies) -> [(String, Value); 3] {
    let Bodies { created, job, error, .. } = bodies;
    let sent =
        json!({ "required": true, "content": content(&json!({ "$ref": "#/components/schemas/CreateRequest" })) });
    let create = operation("Creates a transcription", 201, created, error, json!({ "requestBody": sent }));
    let read = operation("Reads a transcription", 200, job, error, json!({ "parameters": id() }));
    let mut delete = operation(
        "Removes a transcription that has ended, with all its data",
        202,
        &json!({}),
        error,
        json!({ "parameters": id() }),
    );
    without_body(&mut delete, "202");
    [
        (path.to_owned(), json!({ "post": create, "get": list })),
        (format!("{path}/{{id}}"), json!({ "get": read, "delete": delete })),
        (format!("{path}/{{id}}/file"), json!({ "get": audio("Reads the audio of a transcription", error) })),
    ]
}

fn id() -> Value {
    json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }])
}

/// Where the audio of an upload is that is fetched.
fn address() -> Value {
    let url = json!({ "type": "string", "format": "uri" });
    json!({ "type": "object", "properties": { "audio_url": url }, "required": ["audio_url"] })
}

/// An operation whose answer is audio, byte for byte as it came.
fn audio(summary: &str, error: &Value) -> Value {
    let mut operation = operation(summary, 200, &json!({}), error, json!({ "parameters": id() }));
    operation["responses"]["200"]["content"] = json!({ "application/octet-stream": {} });
    operation
}

fn without_body(operation: &mut Value, status: &str) {
    if let Some(answer) = operation["responses"][status].as_object_mut() {
        answer.remove("content");
    }
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn operation(summary: &str, status: u16, answer: &Value, error: &Value, more: Value) -> Value {
    let refused = json!({ "description": "Refused, and why", "content": content(error) });
    let answered = json!({ "description": "As asked for", "content": content(answer) });
    let mut operation = json!({
        "summary": summary,
        "responses": { status.to_string(): answered, "4XX": refused, "5XX": refused },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        operation[name] = value.clone();
    }
    operation
}

fn form(files: &[&str]) -> Value {
    let file = json!({ "type": "string", "contentMediaType": "application/octet-stream" });
    let properties: Map<String, Value> = files.iter().map(|name| ((*name).to_owned(), file.clone())).collect();
    let schema = json!({ "type": "object", "properties": properties });
    json!({ "required": true, "content": { "multipart/form-data": { "schema": schema } } })
}

fn first_form() -> Value {
    let mut form = form(&["audio", "video"]);
    for name in crate::wire::upgrade::PARAMS {
        form["content"]["multipart/form-data"]["schema"]["properties"][name] = json!({ "type": "string" });
    }
    form
}

/// The query of a list (interface, "Query parameters of both list endpoints").
fn query() -> Value {
    let date = json!({ "type": "string" });
    let one = |name: &str, schema: Value| json!({ "name": name, "in": "query", "required": false, "schema": schema });
    let states = json!({ "type": "array", "items": { "enum": ["queued", "processing", "done", "error"] } });
    json!([
        one("offset", json!({ "type": "integer", "minimum": 0, "default": 0 })),
        one("limit", json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT })),
        one("date", date.clone()),
        one("before_date", date.clone()),
        one("after_date", date),
        one("status", states),
        one("custom_metadata", json!({ "type": "object" })),
    ])
}

/// The query of the list that holds both kinds.
fn query_with_kind() -> Value {
    let kinds = json!({ "type": "array", "items": { "enum": ["pre-recorded", "live"] } });
    let kind = json!({ "name": "kind", "in": "query", "required": false, "schema": kinds });
    let mut query = query();
    if let Some(all) = query.as_array_mut() {
        all.push(kind);
    }
    query
}
