//! Reads an answer that was paid for, whatever is wrong with details of it. The text is read as it is; only if that
//! fails, without the details that no reader accepts. Results of the first version are read as of the second.

use super::enrichment_parts::object;
use super::v1_params::{Upgraded, upgrade_result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The deepest nesting that is kept; readers refuse values that are nested more than 128 times.
const MAX_DEPTH: usize = 100;

/// The longest answer that is looked at for a result of the first version, in bytes: it takes many times its length in
/// memory. Ten hours of speech have less.
const MAX_FIRST_VERSION: usize = 16 << 20;

/// Reads an answer.
///
/// # Errors
/// The text is not JSON, or lacks something that `T` cannot do without.
pub fn read<T: DeserializeOwned>(raw: &[u8]) -> serde_json::Result<T> {
    let text = in_second_version(raw);
    serde_json::from_slice(&text).or_else(|error| {
        let text = last_of_each_field(&readable(&String::from_utf8_lossy(&text)));
        serde_json::from_str(&text).map_err(|_| error)
    })
}

/// Returns an answer with a result of the first version as one of the second version; any other text as it is. The
/// result is under `result`, under `payload` (as webhooks send it), or is the answer itself.
fn in_second_version(raw: &[u8]) -> Cow<'_, [u8]> {
    let may_be_old = raw.len() <= MAX_FIRST_VERSION && memchr::memmem::find(raw, b"\"prediction").is_some();
    let old = may_be_old.then(|| upgraded(&readable(&String::from_utf8_lossy(raw)))).flatten();
    old.map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn upgraded(answer: &str) -> Option<Vec<u8>> {
    let mut fields = object(answer);
    let old = match fields.get("result").map(|result| result.get()) {
        Some(result) if is_first_version(result) => result,
        _ if is_first_version(answer) => answer,
        _ => return None,
    };
    let Upgraded { value, .. } = upgrade_result(&serde_json::from_str::<Value>(old).ok()?);
    let Value::Object(mut new) = value else { return None };
    // What the answer says besides the result goes before what its version implies.
    for name in FIRST_VERSION.iter().chain(&["payload", "result", "version"]) {
        fields.remove(*name);
    }
    for (name, json) in &fields {
        new.insert(name.clone().into_owned(), serde_json::from_str(json.get()).ok()?);
    }
    serde_json::to_vec(&new).ok()
}

/// The fields of a result of the first version.
const FIRST_VERSION: [&str; 2] = ["prediction", "prediction_raw"];

/// Whether an object is a result of the first version, or has one as its `payload`.
fn is_first_version(json: &str) -> bool {
    let is_one = |json: &str| {
        let fields = object(json);
        FIRST_VERSION.iter().any(|name| fields.contains_key(*name)) && !fields.contains_key("transcription")
    };
    is_one(json) || object(json).get("payload").is_some_and(|payload| is_one(payload.get()))
}

/// Keeps the last field of each name in the answer, and in its result.
fn last_of_each_field(answer: &str) -> String {
    let mut fields: BTreeMap<Cow<'_, str>, &str> =
        object(answer).into_iter().map(|(name, value)| (name, value.get())).collect();
    let result = fields.get("result").map(|result| object(result)).filter(|result| !result.is_empty());
    let result = result.map(|result| as_object(result.iter().map(|(name, value)| (&**name, value.get()))));
    if let Some(result) = &result {
        fields.insert("result".into(), result);
    }
    match fields.is_empty() {
        true => answer.to_owned(),
        false => as_object(fields.iter().map(|(name, value)| (&**name, *value))),
    }
}

fn as_object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::from("{");
    for (name, value) in fields {
        let comma = if text.len() > 1 { "," } else { "" };
        // Writing into a string cannot fail.
        let _ = write!(text, "{comma}{}:{value}", Value::from(name));
    }
    text + "}"
}

/// Returns JSON text that readers accept: numbers that no float can hold (also `NaN` and `Infinity`, which are not
/// JSON) and values that are nested too deep become null, halves of surrogate pairs become U+FFFD, and control
/// characters in strings are escaped. Other text that is not JSON stays so.
pub fn readable(json: &str) -> Cow<'_, str> {
    let mut reader = Tokens { json, at: 0, copied: 0, out: String::new() };
    reader.run();
    if reader.copied == 0 {
        return Cow::Borrowed(json);
    }
    reader.out.push_str(&json[reader.copied..]);
    Cow::Owned(reader.out)
}

/// Goes through JSON text and replaces what readers refuse.
struct Tokens<'a> {
    json: &'a str,
    /// The token that is looked at; always at a character's first byte.
    at: usize,
    /// Up to here the text is in `out`.
    copied: usize,
    out: String,
}

impl Tokens<'_> {
    fn run(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.json.as_bytes().get(self.at) {
            match byte {
                b'"' => self.string(),
                b'{' | b'[' if depth >= MAX_DEPTH => {
                    let end = self.at + nested_length(&self.json[self.at..]);
                    self.replace(end, "null");
                }
                b'{' | b'[' => (depth, self.at) = (depth + 1, self.at + 1),
                b'}' | b']' => (depth, self.at) = (depth.saturating_sub(1), self.at + 1),
                b'-' | b'+' | b'0'..=b'9' | b'N' | b'I' => self.number(),
                _ => self.at += 1,
            }
        }
    }

    /// Replaces the text from the current token to `end`.
    fn replace(&mut self, end: usize, by: &str) {
        self.out.push_str(&self.json[self.copied..self.at]);
        self.out.push_str(by);
        (self.at, self.copied) = (end, end);
    }

    fn number(&mut self) {
        let rest = &self.json[self.at..];
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let end = self.at + length;
        match rest[..length].parse::<f64>() {
            Ok(number) if !number.is_finite() => self.replace(end, "null"),
            _ => self.at = end,
        }
    }

    fn string(&mut self) {
        let end = self.at + string_length(&self.json[self.at..]);
        self.at += 1;
        while self.at < end {
            let rest = &self.json[self.at..end];
            let Some(found) = rest.bytes().position(|byte| byte == b'\\' || byte < b' ') else { break };
            self.at += found;
            self.escape();
        }
        self.at = end;
    }

    /// Handles an escape, or a control character.
    fn escape(&mut self) {
        let byte = self.json.as_bytes()[self.at];
        let unit = |from: usize| {
            let digits = self.json.get(from..)?.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        match (unit(self.at), unit(self.at + 6)) {
            _ if byte < b' ' => self.replace(self.at + 1, &format!("\\u{byte:04x}")),
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => self.at += 12,
            (Some(0xd800..=0xdfff), _) => self.replace(self.at + 6, "\u{fffd}"),
            // The escaped character may be of several bytes if this is no JSON.
            _ => self.at += 1 + self.json[self.at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
}

/// Returns the length of the string that `json` begins with, including its quotes.
fn string_length(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |at| at + 2)
}

/// Returns the length of the object or list that `json` begins with.
fn nested_length(json: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = json.as_bytes().get(at) {
        match byte {
            b'"' => at += string_length(&json[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_no_reader_accepts_is_replaced_and_nothing_else() {
        for (json, expected) in [
            (r#"{"a":1e999,"b":[-1e400 ,1e3]}"#, r#"{"a":null,"b":[null ,1e3]}"#),
            (r"[NaN,Infinity,-Infinity, null]", "[null,null,null, null]"),
            (
                r#""\\ud800 1e999 \ud83d\ude00 \ud83d\u0041 \udc00""#,
                "\"\\\\ud800 1e999 \\ud83d\\ude00 \u{fffd}\\u0041 \u{fffd}\"",
            ),
            ("\"a\tb\n\"", "\"a\\u0009b\\u000a\""),
            (r#"{"a\"1e999":"\"","b":9}"#, r#"{"a\"1e999":"\"","b":9}"#),
        ] {
            assert_eq!(readable(json), expected);
        }
        let deep = format!(r#"{{"a":{}"]"{},"b":7}}"#, "[".repeat(1_000), "]".repeat(1_000));
        let value: Value = serde_json::from_str(&readable(&deep)).unwrap();
        assert_eq!(value["b"], 7);
    }

    #[test]
    fn the_last_field_of_a_name_counts() {
        let json = r#"{"status":"x","result":{"metadata":1,"metadata":{"a":1e999}},"status":"done"}"#;
        let value: Value = serde_json::from_str(&last_of_each_field(&readable(json))).unwrap();
        assert_eq!(value, json!({ "status": "done", "result": { "metadata": { "a": null } } }));
    }

    #[test]
    fn a_result_of_the_first_version_is_read_wherever_it_is() {
        let old = json!({ "prediction": [{ "transcription": "Hi", "time_begin": 1, "time_end": 2, "words": [] }] });
        let within = json!({ "id": "t", "version": 1, "status": "queued", "result": old });
        let webhook = json!({ "request_id": "G", "payload": old });
        let both = json!({ "status": "done", "result": webhook });
        for (answer, status) in [(&within, "queued"), (&webhook, "done"), (&old, "done"), (&both, "done")] {
            let value: Value = read(answer.to_string().as_bytes()).unwrap();
            let utterance = &value["result"]["transcription"]["utterances"][0];
            assert_eq!((&utterance["text"], &utterance["start"]), (&json!("Hi"), &json!(1)), "{answer}");
            assert_eq!((&value["status"], &value["version"]), (&json!(status), &json!(2)));
        }
        let mention = json!({ "result": { "transcription": { "full_transcript": "\"prediction" } } });
        assert_eq!(read::<Value>(mention.to_string().as_bytes()).unwrap(), mention);
    }

    proptest! {
        /// Text that readers accept stays as it is, and no text causes a panic.
        #[test]
        fn good_text_stays(text in ".*", number in any::<f64>(), noise in "[\\[\\]{}\"\\\\uNI1e9d8,:é-]*") {
            let good = json!({ "a": [text, number, { "b": text }] }).to_string();
            prop_assert_eq!(readable(&good), good.as_str());
            let _ = readable(&noise);
            let _ = last_of_each_field(&noise);
        }
    }
}
