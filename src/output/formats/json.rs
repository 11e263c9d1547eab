//! The service's whole answer, with what made it.

use super::provenance::Provenance;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Returns the service's answer with one more key at its end: `scribed`, the provenance. The answer is not serialized
/// again, so that numbers, order and unknown fields stay the same.
pub(super) fn json(raw: Vec<u8>, made_by: &Provenance) -> String {
    let mut answer =
        String::from_utf8(raw).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let provenance = as_json(made_by);
    let Ok(Fields { has_fields, free_key }) = serde_json::from_str::<Fields>(&answer) else {
        return not_an_object(&answer, &provenance);
    };
    let open = answer.trim_end();
    answer.truncate(open.strip_suffix('}').unwrap_or(open).trim_end().len());
    let comma = if has_fields { "," } else { "" };
    answer.extend([comma, "\"", &free_key, "\":", &provenance, "}\n"]);
    answer
}

/// The keys of a JSON object, as far as the output needs them.
struct Fields {
    has_fields: bool,
    /// `scribed`; with underscores appended if the answer has a key of that name.
    free_key: String,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        const OURS: &str = "scribed";
        let (mut has_fields, mut taken) = (false, BTreeSet::new());
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let underscores = key.strip_prefix(OURS).filter(|rest| rest.bytes().all(|byte| byte == b'_'));
            taken.extend(underscores.map(str::len));
            map.next_value::<IgnoredAny>()?;
            has_fields = true;
        }
        let free = (0..).find(|length| !taken.contains(length)).unwrap_or_default();
        Ok(Fields { has_fields, free_key: format!("{OURS}{}", "_".repeat(free)) })
    }
}

fn not_an_object(answer: &str, provenance: &str) -> String {
    let value = match serde_json::from_str::<&RawValue>(answer) {
        Ok(value) => value.get().to_owned(),
        Err(_) => as_json(&answer),
    };
    format!("{{\"answer\":{value},\"scribed\":{provenance}}}\n")
}

/// Serializes text and optional text only, which cannot fail.
pub(super) fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
