//! What people say shorter than the interface has it.

use serde_json::{Map, Value, json};

/// The parameters that ask for one spoken language.
pub fn language(code: &str) -> Map<String, Value> {
    object(json!({ "language_config": { "languages": [code] } }))
}

/// The parameters that ask for these; alone, one is not looked for among others.
pub fn languages(codes: &[String]) -> Map<String, Value> {
    let mut config = json!({ "languages": codes });
    if codes.len() == 1 {
        config["code_switching"] = Value::Null;
    }
    object(json!({ "language_config": config }))
}

/// Whether parameters say which languages are spoken, be it none.
pub fn has_languages(parameters: &Value) -> bool {
    parameters.pointer("/language_config/languages").is_some_and(|languages| !languages.is_null())
}

/// The parameters that ask for these words to be heard: texts, or the interface's own objects.
pub fn vocabulary(words: Vec<Value>) -> Map<String, Value> {
    object(json!({ "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": words } }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
