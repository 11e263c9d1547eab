//! `structured_data_extraction`: for each class that the client names, what the transcript says of it.

use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use serde_json::{Map, Value, json};

/// The most characters of a value, and the most values of a class.
const VALUE: usize = 1_000;
const VALUES: usize = 1_000;

/// Returns an object with a list of texts for each class.
///
/// # Errors
/// The model fails.
pub async fn make(
    model: &LanguageModel,
    lines: &NumberedLines,
    classes: &[String],
) -> Result<Map<String, Value>, ModelError> {
    let question = LineQuestion::new(prompt(classes), "", AnswerSize::Short);
    let parts = ask_each_part(model, lines, &question, |answer, _| read(answer, classes)).await?;
    Ok(merged(&parts, classes))
}

fn prompt(classes: &[String]) -> Prompt {
    let instructions = "For each property of the answer, list what the transcript says of it, as short texts without \
                        the numbers of lines. A list is empty if the transcript says nothing of it."
        .to_owned();
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let properties: Map<String, Value> = classes.iter().map(|class| (class.clone(), list.clone())).collect();
    Prompt { instructions, text: String::new(), shape: AnswerShape::object("data", Value::Object(properties)) }
}

/// Reads the values of each class; an answer that has none of the classes is about something else.
fn read(answer: &Value, classes: &[String]) -> Result<Vec<Vec<String>>, String> {
    let values = |class: &String| answer.get(class).map(values_of);
    let found: Vec<Option<Vec<String>>> = classes.iter().map(values).collect();
    match found.iter().all(Option::is_none) {
        true => Err("it has none of the classes".to_owned()),
        false => Ok(found.into_iter().map(Option::unwrap_or_default).collect()),
    }
}

/// Reads values: texts and numbers, in a list or alone.
fn values_of(value: &Value) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(plain(text, VALUE, false)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    let list = match value {
        Value::Array(list) => list.as_slice(),
        alone => std::slice::from_ref(alone),
    };
    list.iter().filter_map(one).filter(|text| !text.is_empty()).take(VALUES).collect()
}

/// Joins what the parts of a transcript have, each value once.
fn merged(parts: &[Vec<Vec<String>>], classes: &[String]) -> Map<String, Value> {
    let of_class = |at: usize| {
        let mut values: Vec<&String> = Vec::new();
        for value in parts.iter().filter_map(|part| part.get(at)).flatten() {
            if values.len() < VALUES && !values.contains(&value) {
                values.push(value);
            }
        }
        json!(values)
    };
    classes.iter().enumerate().map(|(at, class)| (class.clone(), of_class(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_the_values_of_all_parts_once() {
        let classes = ["name", "amount"].map(str::to_owned);
        let first = read(&json!({ "name": ["Anna", "", 7], "other": ["x"] }), &classes).unwrap();
        let second = read(&json!({ "amount": "5 \u{7}euros", "name": ["Anna", "Bob", { "x": 1 }] }), &classes).unwrap();
        let all = Value::Object(merged(&[first, second], &classes));
        assert_eq!(all, json!({ "name": ["Anna", "7", "Bob"], "amount": ["5  euros"] }));
        assert!(read(&json!({ "other": ["x"] }), &classes).is_err());
        assert!(prompt(&classes).system().contains("\"amount\""));
    }
}
