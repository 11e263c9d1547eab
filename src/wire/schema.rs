//! Generates the OpenAPI document (3.1) from the table that requests are checked against and from the types that
//! answers are written with.

use crate::wire::error::ErrorBody;
use crate::wire::health::{self, HealthAnswer};
use crate::wire::page::{DEFAULT_LIMIT, MAX_LIMIT, RecordPage};
use crate::wire::record::{Created, Record};
use crate::wire::result::ResultBody;
use crate::wire::upload::Uploaded;
use crate::wire::{openai_schema, published, record, upload, v1};
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A pre-recorded transcription in an answer.
type Job = Record<ResultBody>;

/// A transcription of any kind in an answer: imported live records are returned as they were given.
type AnyJob = Record<Value>;

/// Returns the document; `key_headers` are the headers that may contain a key.
pub fn document(key_headers: &[String]) -> Value {
    let mut generator = generator();
    let bodies = Bodies {
        uploaded: reference::<Uploaded>(&mut generator),
        created: reference::<Created>(&mut generator),
        job: reference::<Job>(&mut generator),
        page: reference::<RecordPage<Job>>(&mut generator),
        job_of_any_kind: reference::<AnyJob>(&mut generator),
        page_of_any_kind: reference::<RecordPage<AnyJob>>(&mut generator),
        v1_response: reference::<v1::V1Response>(&mut generator),
        health: reference::<HealthAnswer>(&mut generator),
        error: reference::<ErrorBody>(&mut generator),
    };
    // Any one of them is sufficient.
    let security: Vec<Value> = key_headers.iter().map(|name| json!({ name: [] })).collect();
    let mut paths = paths(&bodies);
    paths.extend(openai_schema::paths(&mut generator, &security));
    let mut schemas = generator.take_definitions(true);
    schemas.insert("CreateRequest".to_owned(), published::create_schema());
    let key = |name: &String| (name.clone(), json!({ "type": "apiKey", "in": "header", "name": name }));
    let mut keys: Map<String, Value> = key_headers.iter().map(key).collect();
    keys.insert(openai_schema::BEARER.to_owned(), openai_schema::bearer_scheme());
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Speech transcription service", "version": env!("CARGO_PKG_VERSION") },
        "security": security,
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": keys },
    })
}

fn generator() -> SchemaGenerator {
    let configure = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        // Answers are complete when they are written, while fields may be missing when they are read.
        settings.contract = Contract::Serialize;
    };
    SchemaSettings::draft2020_12().with(configure).into_generator()
}

pub(super) fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

struct Bodies {
    uploaded: Value,
    created: Value,
    job: Value,
    page: Value,
    job_of_any_kind: Value,
    page_of_any_kind: Value,
    v1_response: Value,
    health: Value,
    error: Value,
}

fn paths(bodies: &Bodies) -> Map<String, Value> {
    let Bodies { page, page_of_any_kind: any_page, job_of_any_kind: any_job, error, .. } = bodies;
    let list = |name: &str, parameters: Value, page: &Value| {
        let extra = json!({ "operationId": name, "parameters": parameters });
        operation("Lists transcriptions, newest first", 200, page, error, extra)
    };
    let extra = json!({ "operationId": "read_live", "parameters": id() });
    let read = operation("Reads a live transcription", 200, any_job, error, extra);
    let mut paths = Map::from_iter([
        (health::PATH.to_owned(), json!({ "get": health(bodies) })),
        (upload::PATH.to_owned(), json!({ "post": upload(bodies) })),
        ("/file/{id}".to_owned(), json!({ "get": audio("read_upload", "Reads an upload", error) })),
        (record::LIVE_PATH.to_owned(), json!({ "get": list("list_live", query(), any_page) })),
        (format!("{}/{{id}}", record::LIVE_PATH), json!({ "get": read })),
        (v1::AUDIO_PATH.to_owned(), json!({ "post": v1_operation("first_version_audio", "audio", bodies) })),
        (v1::VIDEO_PATH.to_owned(), json!({ "post": v1_operation("first_version_video", "video", bodies) })),
    ]);
    let recorded = list("list_pre_recorded", query(), page);
    paths.extend(transcription_paths(record::PATH, "pre_recorded", &recorded, bodies));
    let both = list("list_transcription", query_with_kind(), any_page);
    paths.extend(transcription_paths(record::OLD_PATH, "transcription", &both, bodies));
    paths
}

/// Needs no key, and its refusal has the same body.
fn health(bodies: &Bodies) -> Value {
    let extra = json!({ "operationId": "health", "security": [] });
    let mut health =
        operation("Says whether to send requests to this service", 200, &bodies.health, &bodies.error, extra);
    health["responses"]["503"] = health["responses"]["200"].clone();
    health
}

fn upload(bodies: &Bodies) -> Value {
    let mut sent = form(&[upload::PART_NAME]);
    sent["content"]["multipart/form-data"]["schema"]["required"] = json!([upload::PART_NAME]);
    sent["content"]["application/json"]["schema"] = audio_url_schema();
    let extra = json!({ "operationId": "upload", "requestBody": sent });
    let mut upload = operation("Uploads a file, or has one fetched", 200, &bodies.uploaded, &bodies.error, extra);
    upload["responses"]["200"]["links"] = json!({
        "audio": link("read_upload", "/audio_metadata/id"),
        "create": {
            "operationId": "create_pre_recorded",
            "requestBody": { "audio_url": "$response.body#/audio_url" },
        },
    });
    upload
}

/// Links a field of one operation's answer to the path parameter of another operation.
fn link(operation: &str, id: &str) -> Value {
    json!({ "operationId": operation, "parameters": { "id": format!("$response.body#{id}") } })
}

fn v1_operation(name: &str, file: &str, bodies: &Bodies) -> Value {
    let extra = json!({ "operationId": name, "requestBody": v1_form(file), "deprecated": true });
    let summary = "The first version: file and parameters in, the result out, on one connection";
    operation(summary, 200, &bodies.v1_response, &bodies.error, extra)
}

/// Returns the operations for transcriptions below one of their two paths.
fn transcription_paths(path: &str, name: &str, list: &Value, bodies: &Bodies) -> [(String, Value); 3] {
    let Bodies { job, job_of_any_kind: any_job, error, .. } = bodies;
    let job = if path == record::PATH { job } else { any_job };
    let read = json!({ "operationId": format!("read_{name}"), "parameters": id() });
    let read = operation("Reads a transcription", 200, job, error, read);
    let delete = json!({ "operationId": format!("delete_{name}"), "parameters": id() });
    let summary = "Removes a transcription that has ended, with all its data";
    let mut delete = operation(summary, 202, &json!({}), error, delete);
    without_body(&mut delete, "202");
    let file = audio(&format!("read_{name}_audio"), "Reads the audio of a transcription, while it is kept", error);
    [
        (path.to_owned(), json!({ "post": create(name, bodies), "get": list })),
        (format!("{path}/{{id}}"), json!({ "get": read, "delete": delete })),
        (format!("{path}/{{id}}/file"), json!({ "get": file })),
    ]
}

fn create(name: &str, bodies: &Bodies) -> Value {
    let sent =
        json!({ "required": true, "content": content(&json!({ "$ref": "#/components/schemas/CreateRequest" })) });
    let extra = json!({ "operationId": format!("create_{name}"), "requestBody": sent });
    let mut create = operation("Creates a transcription", 201, &bodies.created, &bodies.error, extra);
    create["responses"]["201"]["links"] = json!({
        "read": link(&format!("read_{name}"), "/id"),
        "delete": link(&format!("delete_{name}"), "/id"),
        "audio": link(&format!("read_{name}_audio"), "/id"),
    });
    create
}

pub(super) fn id() -> Value {
    json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }])
}

/// Returns the schema of an upload by address.
fn audio_url_schema() -> Value {
    json!({ "type": "object", "properties": { "audio_url": published::url_schema() }, "required": ["audio_url"] })
}

/// Returns an operation whose answer is audio, unchanged.
fn audio(name: &str, summary: &str, error: &Value) -> Value {
    let extra = json!({ "operationId": name, "parameters": id() });
    let mut operation = operation(summary, 200, &json!({}), error, extra);
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

pub(super) fn operation(summary: &str, status: u16, answer: &Value, error: &Value, extra: Value) -> Value {
    let refused = json!({ "description": "Refused, and why", "content": content(error) });
    let answered = json!({ "description": "As asked for", "content": content(answer) });
    let mut operation = json!({
        "summary": summary,
        "responses": { status.to_string(): answered, "4XX": refused, "5XX": refused },
    });
    for (name, value) in extra.as_object().into_iter().flatten() {
        operation[name] = value.clone();
    }
    operation
}

pub(super) fn form(files: &[&str]) -> Value {
    // `format` is what tools support, `contentMediaType` what the standard defines.
    let file = json!({ "type": "string", "format": "binary", "contentMediaType": "application/octet-stream" });
    let properties: Map<String, Value> = files.iter().map(|name| ((*name).to_owned(), file.clone())).collect();
    let schema = json!({ "type": "object", "properties": properties });
    json!({ "required": true, "content": { "multipart/form-data": { "schema": schema } } })
}

/// Returns the form of the first version: a file or its address; all other fields are text.
fn v1_form(file: &str) -> Value {
    let mut form = form(&["audio", "video"]);
    let schema = &mut form["content"]["multipart/form-data"]["schema"];
    for name in crate::wire::v1_params::PARAMS {
        let is_address = name.ends_with("_url");
        schema["properties"][name] = if is_address { published::url_schema() } else { json!({ "type": "string" }) };
    }
    schema["properties"]["output_format"] = json!({ "enum": v1::OutputFormat::WORDS });
    schema["anyOf"] = json!([{ "required": [file] }, { "required": [format!("{file}_url")] }]);
    form
}

/// Returns the query parameters of a list (interface, "Query parameters of both list endpoints").
fn query() -> Value {
    // An empty value counts as absent, and some clients send one.
    let moment = json!({ "type": "string", "anyOf": [
        { "format": "date-time" }, { "format": "date" }, { "maxLength": 0 },
    ] });
    let parameter =
        |name: &str, schema: Value| json!({ "name": name, "in": "query", "required": false, "schema": schema });
    let states = json!({ "type": "array", "items": { "enum": ["queued", "processing", "done", "error"] } });
    // `custom_metadata[key]=value`; an object as JSON text is accepted too.
    let mut metadata = parameter("custom_metadata", json!({ "type": "object" }));
    metadata["style"] = json!("deepObject");
    json!([
        parameter("offset", json!({ "type": "integer", "minimum": 0, "default": 0 })),
        parameter("limit", json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT })),
        parameter("date", moment.clone()),
        parameter("before_date", moment.clone()),
        parameter("after_date", moment),
        parameter("status", states),
        metadata,
    ])
}

/// Returns the query parameters of the list that contains both kinds.
fn query_with_kind() -> Value {
    let kinds = json!({ "type": "array", "items": { "enum": ["pre-recorded", "live"] } });
    let kind = json!({ "name": "kind", "in": "query", "required": false, "schema": kinds });
    let mut query = query();
    if let Some(parameters) = query.as_array_mut() {
        parameters.push(kind);
    }
    query
}
