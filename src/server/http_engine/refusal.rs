//! Finds the message in an answer that is a refusal: engines differ in where they put it. Pure.

use serde_json::Value;

/// The most characters of an engine's message that are repeated.
const MESSAGE: usize = 300;

/// Returns the message of an answer that is a refusal, in one line.
pub fn refusal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_str::<Value>(&text).ok().and_then(|value| message_of(&value));
    in_one_line(&message.unwrap_or_else(|| text.into_owned()))
}

/// Finds the message in the error of any engine.
pub fn message_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(in_one_line(text)),
        Value::Object(fields) => {
            ["error", "message", "detail", "msg"].into_iter().find_map(|name| message_of(fields.get(name)?))
        }
        Value::Array(list) => list.iter().find_map(message_of),
        _ => None,
    }
}

/// Returns the start of a text of somebody else, in one line and without control characters.
pub fn in_one_line(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let plain: String = plain.take(MESSAGE * 4).collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_found_wherever_it_is() {
        assert_eq!(refusal(b"Invalid request"), "Invalid request");
        assert_eq!(refusal(b"{\"detail\":[]}"), "{\"detail\":[]}");
        assert_eq!(refusal(b"{\"error\":{\"message\":\"out of\\nmemory\"}}"), "out of memory");
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_short_message(body in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(refusal(&body).chars().count() <= MESSAGE);
        }
    }
}
