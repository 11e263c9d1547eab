//! Describes OpenAI's transcription interface in the OpenAPI document.

use crate::wire::openai::{
    FILE_PART, FORMATS, MODELS, MODELS_PATH, OpenAiErrorBody, OpenAiModel, OpenAiModels, OpenAiTranscript,
    TRANSCRIPTIONS_PATH, TRANSLATIONS_PATH,
};
use crate::wire::schema::{form, id, operation, reference};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// The name of the security scheme `Authorization: Bearer KEY`.
pub(super) const BEARER: &str = "bearer";

/// Returns the scheme by which clients of this interface send a key.
pub(super) fn bearer_scheme() -> Value {
    json!({ "type": "http", "scheme": "bearer" })
}

/// Returns the paths. `security` are the other ways to send a key.
pub(super) fn paths(generator: &mut SchemaGenerator, security: &[Value]) -> Map<String, Value> {
    let error = reference::<OpenAiErrorBody>(generator);
    let transcript = reference::<OpenAiTranscript>(generator);
    let (model, models) = (reference::<OpenAiModel>(generator), reference::<OpenAiModels>(generator));
    let keys: Vec<Value> = [json!({ BEARER: [] })].into_iter().chain(security.iter().cloned()).collect();
    let with = |name: &str, more: Value| {
        let mut extra = json!({ "operationId": name, "security": keys });
        more.as_object().into_iter().flatten().for_each(|(key, value)| extra[key] = value.clone());
        extra
    };
    let list = operation("Lists the models", 200, &models, &error, with("list_models", json!({})));
    let read = operation("Reads a model", 200, &model, &error, with("read_model", json!({ "parameters": id() })));
    let audio = |summary: &str, name: &str, sent: Value| {
        let mut one = operation(summary, 200, &transcript, &error, with(name, json!({ "requestBody": sent })));
        one["responses"]["200"]["content"]["text/plain; charset=utf-8"] = json!({});
        one
    };
    let mut transcribe =
        audio("Transcribes a file, as OpenAI's interface does", "openai_transcription", transcription_form());
    transcribe["responses"]["200"]["content"]["text/event-stream"] = json!({});
    let summary = "Translates a file in English into English, as OpenAI's interface does";
    let translate = audio(summary, "openai_translation", audio_form(&FORMATS[..5]));
    Map::from_iter([
        (TRANSCRIPTIONS_PATH.to_owned(), json!({ "post": transcribe })),
        (TRANSLATIONS_PATH.to_owned(), json!({ "post": translate })),
        (MODELS_PATH.to_owned(), json!({ "get": list })),
        (format!("{MODELS_PATH}/{{id}}"), json!({ "get": read })),
    ])
}

/// Returns the form of a translation: what both forms have.
fn audio_form(formats: &[&str]) -> Value {
    let mut form = form(&[FILE_PART]);
    let schema = &mut form["content"]["multipart/form-data"]["schema"];
    schema["required"] = json!([FILE_PART, "model"]);
    let fields = &mut schema["properties"];
    fields["model"] =
        json!({ "type": "string", "description": "One of the models that are listed", "examples": MODELS });
    fields["language"] = json!({ "type": "string" });
    fields["prompt"] =
        json!({ "type": "string", "description": "Accepted without effect where the recogniser takes no prompt" });
    fields["response_format"] = json!({ "enum": formats, "default": "json" });
    fields["temperature"] =
        json!({ "type": "number", "minimum": 0, "maximum": 1, "description": "Accepted without effect" });
    form
}

fn transcription_form() -> Value {
    let mut form = audio_form(&FORMATS);
    let fields = &mut form["content"]["multipart/form-data"]["schema"]["properties"];
    fields["languages[]"] = json!({ "type": "array", "items": { "type": "string" } });
    fields["keywords[]"] = json!({ "type": "array", "items": { "type": "string", "maxLength": 256 } });
    fields["timestamp_granularities[]"] = json!({ "type": "array", "items": { "enum": ["word", "segment"] } });
    fields["stream"] = json!({ "type": "boolean", "default": false });
    fields["chunking_strategy"] = json!({ "enum": ["auto"], "description": "Accepted without effect" });
    form
}
