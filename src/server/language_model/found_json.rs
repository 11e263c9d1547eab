//! Finds JSON in what a model wrote: among other words, in a code fence, or cut off in the middle. Pure.

use serde_json::Value;

/// How many places are tried at which JSON may begin.
const PLACES: usize = 20;

/// Returns the JSON in a text; what of it is whole, if it is cut off.
pub fn find_json(text: &str) -> Option<Value> {
    if let Ok(whole) = serde_json::from_str::<Value>(text)
        && is_structure(&whole)
    {
        return Some(whole);
    }
    let places = text.char_indices().filter(|(_, letter)| matches!(letter, '{' | '[')).take(PLACES);
    let begins = |(at, _): (usize, char)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok().filter(is_structure).or_else(|| completed(&text[at..]))
    };
    places.into_iter().find_map(begins)
}

/// Whether it is an object or a list that has something in it.
fn is_structure(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => list.first().is_some_and(Value::is_object),
        _ => false,
    }
}

/// Ends JSON that is cut off: after the last element of a list that is whole.
fn completed(text: &str) -> Option<Value> {
    let (mut open, mut in_text, mut escaped) = (Vec::new(), false, false);
    let mut last: Option<(usize, Vec<u8>)> = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' if open.len() >= DEEPEST => return None,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    break;
                }
                match open.last() {
                    Some(b']') => last = Some((at + 1, open.clone())),
                    Some(_) => {}
                    // It is whole, and is no JSON.
                    None => return None,
                }
            }
            _ => {}
        }
    }
    let (end, open) = last?;
    let closed = open.iter().rev().map(|byte| char::from(*byte));
    let text: String = text[..end].chars().chain(closed).collect();
    serde_json::from_str(&text).ok()
}

/// How deep the answers of a model are nested at most.
const DEEPEST: usize = 16;

/// Returns the objects of a list: of the property of this name, of the only list that there is, or of the answer itself.
pub fn items<'v>(answer: &'v Value, name: &str) -> &'v [Value] {
    let list = match answer {
        Value::Array(list) => Some(list),
        Value::Object(map) => {
            let named = map.get(name).and_then(Value::as_array);
            named.or_else(|| map.values().find_map(Value::as_array))
        }
        _ => None,
    };
    list.map_or(&[], Vec::as_slice)
}

/// Returns the number of a line: models write it as a number, as a text, or with a dot behind it.
pub fn number(item: &Value, name: &str) -> Option<usize> {
    match item.get(name)? {
        Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Value::String(text) => text.trim().trim_end_matches(['.', ':']).parse().ok(),
        _ => None,
    }
}

/// Returns the text of the first of these properties that has one.
pub fn text<'v>(item: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| item.get(name)?.as_str()).map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_found_among_words_and_in_fences() {
        let whole = json!({ "a": [{ "n": 1 }] });
        for text in [
            r#"{"a":[{"n":1}]}"#,
            "Here it is:\n```json\n{\"a\":[{\"n\":1}]}\n```\nAnything else?",
            r#"The set {x} is [not] it: {"a":[{"n":1}]} }}"#,
        ] {
            assert_eq!(find_json(text), Some(whole.clone()), "{text}");
        }
        for none in ["", "No.", "[1, 2]", "{ broken", "\"{}\"", &"[".repeat(100_000), &"{\"a\":".repeat(100_000)] {
            assert_eq!(find_json(none), None, "{}", &none[..none.len().min(20)]);
        }
    }

    #[test]
    fn of_a_list_that_is_cut_off_the_whole_elements_stay() {
        let cut = r#"{"a": [{"n": 1, "t": "x ] } \" y"}, {"n": 2, "t": "z"}, {"n": 3, "t": "ha"#;
        assert_eq!(find_json(cut), Some(json!({ "a": [{ "n": 1, "t": "x ] } \" y" }, { "n": 2, "t": "z" }] })));
        assert_eq!(find_json(r#"[{"n": 1}, {"n""#), Some(json!([{ "n": 1 }])));
        assert_eq!(find_json(r#"{"a": "text that is cut"#), None);
    }

    #[test]
    fn lists_numbers_and_texts_are_read_as_models_write_them() {
        let item = json!({ "n": "12.", "text": " a " });
        assert_eq!((number(&item, "n"), text(&item, &["t", "text"])), (Some(12), Some("a")));
        assert_eq!((number(&json!({ "n": -1 }), "n"), number(&json!({ "n": 1.5 }), "n")), (None, None));
        assert_eq!(items(&json!({ "other": [{}] }), "name").len(), 1);
        assert_eq!((items(&json!([{}, {}]), "name").len(), items(&json!("x"), "name").len()), (2, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text in "[\\[\\]{}\"\\\\:,a-z0-9é ]{0,60}") {
            let _ = find_json(&text);
        }

        #[test]
        fn every_start_of_a_list_gives_its_whole_elements(cut in 0_usize..80) {
            let whole = json!({ "a": [{ "n": 1, "t": "é\"]" }, { "n": 2, "t": "{" }, { "n": 3, "t": "" }] });
            let text: String = whole.to_string().chars().take(cut).collect();
            let found = find_json(&text).unwrap_or_default();
            let found = items(&found, "a");
            prop_assert_eq!(found, &whole["a"].as_array().unwrap()[..found.len()]);
        }
    }
}
