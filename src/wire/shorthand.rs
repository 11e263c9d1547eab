//! Builds parameters from short forms that people write.

use serde_json::{Map, Value, json};

/// Returns the parameters for one spoken language.
pub fn language(code: &str) -> Map<String, Value> {
    object(json!({ "language_config": { "languages": [code] } }))
}

/// Returns the parameters for these spoken languages. For a single one, code switching is unset.
pub fn languages(codes: &[String]) -> Map<String, Value> {
    let mut config = json!({ "languages": codes });
    if codes.len() == 1 {
        config["code_switching"] = Value::Null;
    }
    object(json!({ "language_config": config }))
}

/// Whether parameters set the spoken languages, even to an empty list.
pub fn has_languages(parameters: &Value) -> bool {
    parameters.pointer("/language_config/languages").is_some_and(|languages| !languages.is_null())
}

/// Returns the parameters for a vocabulary: texts, or objects of the interface.
pub fn vocabulary(words: Vec<Value>) -> Map<String, Value> {
    object(json!({ "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": words } }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
