//! Reads the answer of a chat interface: what the model wrote, and whether it was cut off. Pure.

use crate::server::http_engine::refusal::{in_one_line, message_of};
use serde_json::Value;

/// What a model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    /// Whether it ends at the limit of its length.
    pub is_truncated: bool,
}

/// Reads the body of an answer.
///
/// # Errors
/// Why it is none.
pub fn read(body: &[u8]) -> Result<Completion, String> {
    let text = String::from_utf8_lossy(body);
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("it is no JSON: {error}"))?;
    let Some(choice) = value.pointer("/choices/0") else {
        let told = value.get("error").and_then(message_of);
        return Err(told.unwrap_or_else(|| "it has no `choices`".to_owned()));
    };
    let message = choice.get("message").unwrap_or(&Value::Null);
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        return Err(format!("the model refuses: {}", in_one_line(refusal)));
    }
    let content = message.get("content").or_else(|| choice.get("text"));
    let text = content.and_then(content_text).ok_or("it has no text")?;
    let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
    if reason == "content_filter" {
        return Err("the filter of the server withheld it".to_owned());
    }
    let is_truncated = reason == "length";
    Ok(Completion { text: without_thoughts(&text).trim().to_owned(), is_truncated })
}

/// Returns the text of a message, which may be in several pieces.
fn content_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(pieces) => Some(pieces.iter().filter_map(|piece| piece.get("text")?.as_str()).collect()),
        // What it thought took all of its tokens.
        Value::Null => Some(String::new()),
        _ => None,
    }
}

/// Removes what models that reason write before their answer, where a server leaves it in the text.
fn without_thoughts(text: &str) -> &str {
    let Some(thoughts) = text.trim_start().strip_prefix("<think>") else { return text };
    thoughts.split_once("</think>").map_or("", |(_, answer)| answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(choice: Value) -> Result<Completion, String> {
        read(json!({ "choices": [choice] }).to_string().as_bytes())
    }

    fn text(content: Value) -> String {
        of(json!({ "message": { "content": content }, "finish_reason": "stop" })).unwrap().text
    }

    #[test]
    fn the_text_is_found_in_every_form_of_answer() {
        assert_eq!(text(json!(" Hello. ")), "Hello.");
        assert_eq!(text(json!([{ "type": "text", "text": "Hel" }, { "type": "text", "text": "lo." }])), "Hello.");
        assert_eq!(text(json!("<think>They greet.</think>\nHello.")), "Hello.");
        assert_eq!(text(json!("<think>They gre")), "");
        assert_eq!(of(json!({ "text": "Hello." })).unwrap().text, "Hello.");
        assert!(of(json!({ "message": { "content": null }, "finish_reason": "length" })).unwrap().is_truncated);
    }

    #[test]
    fn what_is_no_answer_says_why() {
        let why = |body: &str| read(body.as_bytes()).unwrap_err();
        assert!(why("<html>").starts_with("it is no JSON"));
        assert_eq!(why(r#"{"error":{"message":"out of memory"}}"#), "out of memory");
        assert_eq!(why("{}"), "it has no `choices`");
        assert_eq!(why(r#"{"choices":[]}"#), "it has no `choices`");
        assert_eq!(why(r#"{"choices":[{"message":{"content":7}}]}"#), "it has no text");
        assert!(
            of(json!({ "message": { "content": "", "refusal": "I will not." } })).unwrap_err().ends_with("I will not.")
        );
        assert!(read(&[b'['; 200_000]).is_err(), "depth has a limit");
    }
}
