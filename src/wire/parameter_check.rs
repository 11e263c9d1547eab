//! Checks parameters against the table of what each may hold ([`FIELDS`]). The client and the embedded service use the
//! same table, so they find every error at once and describe it in the same words.

pub(super) use super::languages::TARGET_LANGUAGES;
use super::parameter_table::as_integer;
pub use super::parameter_table::text_length;
pub(super) use super::parameter_table::{
    FIELDS, Field, FieldKind, SPOKEN_LANGUAGES, TEXTS, UNBOUNDED, VOCABULARY, optional, required,
};
use serde_json::{Map, Value};

/// The longest `custom_metadata` as JSON text, in UTF-16 code units as JavaScript counts them (service-notes 4: "at
/// most 2000 characters when stringified").
pub const METADATA_LIMIT: usize = 2_000;

/// The object that the service returns unchanged; it contains the token.
pub const METADATA: &str = "custom_metadata";

/// Fields that are set for each request and do not change the transcription.
pub const PER_REQUEST_FIELDS: [&str; 4] = ["audio_url", "callback", "callback_url", "callback_config"];

/// An error in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The dotted path; elements are numbered from 0: `language_config.languages.1`.
    pub field: String,
    /// What would be right: "must be …".
    pub requirement: String,
    /// The kind of error.
    pub kind: FieldError,
    /// The accepted values, if they are a list; for an unknown key, the known keys.
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for Complaint {
    /// Formatted like the service's `validation_errors`: the field, then "must …".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.requirement)
    }
}

/// A kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// The interface has no such field.
    Key,
    /// A required field is missing.
    Missing,
    /// The field has a wrong type or value.
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A request that is about to be sent: an unknown key is an error, and `audio_url` may be missing.
    Client,
    /// A request that was received: an unknown key is only listed, `audio_url` is required, and spellings that clients
    /// are known to use are accepted.
    Server,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct FieldFindings {
    /// The errors.
    pub complaints: Vec<Complaint>,
    /// Unknown keys, if they are not errors.
    pub ignored: Vec<String>,
}

/// Checks parameters in JSON form against the interface. A string for which `later` returns true is a template that is
/// not rendered yet: it may become any single value.
pub fn inspect(value: &Value, side: Side, later: fn(&str) -> bool) -> FieldFindings {
    let mut checker = Checker { side, is_template: later, findings: FieldFindings::default() };
    checker.value("", &FieldKind::Object(FIELDS), value);
    if side == Side::Server && value.is_object() && value.get("audio_url").is_none_or(Value::is_null) {
        checker.missing("", "audio_url", &FieldKind::Url);
    }
    checker.findings
}

/// Checks parameters in a record against the table of another endpoint, and returns the errors. Unknown keys are
/// ignored.
pub(super) fn inspect_fields(fields: &'static [Field], path: &str, value: &Value) -> Vec<Complaint> {
    let mut checker = Checker { side: Side::Server, is_template: |_| false, findings: FieldFindings::default() };
    checker.value(path, &FieldKind::Object(fields), value);
    checker.findings.complaints
}

/// Converts text in a number or boolean field into its value ("3", "true"). Text that does not parse stays, and a later
/// check reports it.
pub fn coerce(value: &mut Value) {
    for_each_field(&FieldKind::Object(FIELDS), value, |kind, value| {
        if let Some(parsed) = value.as_str().and_then(|text| kind.parse(text.trim())) {
            *value = parsed;
        }
    });
}

impl Complaint {
    /// Makes an error about a value; `must` begins with "must".
    pub fn value(field: &str, must: String) -> Self {
        Self { field: field.to_owned(), requirement: must, kind: FieldError::Value, known: Vec::new() }
    }
}

/// The most errors that are reported for a received request, and the most unknown keys that are logged.
const MAX_COMPLAINTS: usize = 100;

struct Checker {
    side: Side,
    is_template: fn(&str) -> bool,
    findings: FieldFindings,
}

impl Checker {
    fn value(&mut self, path: &str, kind: &FieldKind, value: &Value) {
        // Some clients write `null` for "not set".
        let is_template = value.as_str().is_some_and(self.is_template);
        if value.is_null() && !path.is_empty() || is_template && kind.is_parsable_from_text() {
            return;
        }
        if !kind.accepts(value) {
            return self.complain(path, kind);
        }
        match (kind, value) {
            (FieldKind::Object(fields) | FieldKind::TextOr(fields), Value::Object(map)) => {
                self.object(path, fields, map);
            }
            (FieldKind::List(_, of), Value::Array(list)) => {
                for (number, element) in list.iter().enumerate() {
                    self.element(&join(path, &number.to_string()), of, element);
                }
            }
            (FieldKind::Dictionary(of), Value::Object(map)) => {
                for (key, element) in map {
                    self.element(&join(path, key), of, element);
                }
            }
            _ => {}
        }
    }

    /// Checks an element of a list or dictionary. Unlike a field, it must not be `null`.
    fn element(&mut self, path: &str, kind: &FieldKind, value: &Value) {
        match value {
            Value::Null => self.complain(path, kind),
            _ => self.value(path, kind, value),
        }
    }

    fn object(&mut self, path: &str, fields: &[Field], map: &Map<String, Value>) {
        for (key, value) in map {
            match fields.iter().find(|field| field.name == key) {
                Some(field) => self.value(&join(path, key), &field.kind, value),
                None => self.unknown(join(path, key), fields),
            }
        }
        for field in fields.iter().filter(|field| field.required) {
            if map.get(field.name).is_none_or(Value::is_null) {
                self.missing(path, field.name, &field.kind);
            }
        }
    }

    /// Whether another error is kept. For a received request the number is limited, because its sender could choose it.
    fn has_room(&self) -> bool {
        self.side == Side::Client || self.findings.complaints.len() < MAX_COMPLAINTS
    }

    fn complain(&mut self, path: &str, kind: &FieldKind) {
        if !self.has_room() {
            return;
        }
        let known = if let FieldKind::Choice(values) = kind { values.to_vec() } else { Vec::new() };
        let field = if path.is_empty() { "body" } else { path };
        self.findings.complaints.push(Complaint { known, ..Complaint::value(field, kind.requirement()) });
    }

    fn unknown(&mut self, field: String, fields: &[Field]) {
        if self.side == Side::Server {
            if self.findings.ignored.len() < MAX_COMPLAINTS {
                self.findings.ignored.push(field);
            }
            return;
        }
        let known = fields.iter().map(|field| field.name).collect();
        let must = "must not be given: the interface has no such parameter".to_owned();
        self.findings.complaints.push(Complaint { field, requirement: must, kind: FieldError::Key, known });
    }

    fn missing(&mut self, path: &str, name: &str, kind: &FieldKind) {
        if !self.has_room() {
            return;
        }
        let field = join(path, name);
        let must = format!("must be given, and {}", kind.requirement());
        self.findings.complaints.push(Complaint {
            field,
            requirement: must,
            kind: FieldError::Missing,
            known: Vec::new(),
        });
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Calls `change` on each value that the table describes, inner ones first.
fn for_each_field(kind: &FieldKind, value: &mut Value, change: fn(&FieldKind, &mut Value)) {
    match (kind, &mut *value) {
        (FieldKind::Object(fields) | FieldKind::TextOr(fields), Value::Object(map)) => {
            for (key, inner) in map.iter_mut() {
                if let Some(field) = fields.iter().find(|field| field.name == key) {
                    for_each_field(&field.kind, inner, change);
                }
            }
        }
        (FieldKind::List(_, of), Value::Array(list)) => {
            list.iter_mut().for_each(|inner| for_each_field(of, inner, change));
        }
        (FieldKind::Dictionary(of), Value::Object(map)) => {
            map.values_mut().for_each(|inner| for_each_field(of, inner, change));
        }
        _ => {}
    }
    change(kind, value);
}

/// Converts a checked value into one that the types accept: `3.0` in an integer field becomes `3`, and `null` fields
/// are removed.
pub fn normalize(value: &mut Value) {
    for_each_field(&FieldKind::Object(FIELDS), value, |kind, value| match (kind, &mut *value) {
        (FieldKind::Integer(..), Value::Number(_)) => {
            if let Some(n) = as_integer(value) {
                *value = Value::from(n);
            }
        }
        (FieldKind::Object(_) | FieldKind::TextOr(_), Value::Object(map)) => map.retain(|_, inner| !inner.is_null()),
        _ => {}
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::languages::{LANGUAGES, PII_ENTITIES};
    use crate::wire::params::Params;
    use serde_json::json;

    /// A request with every field of the table set to an allowed value.
    fn full() -> Value {
        fn of(kind: &FieldKind) -> Value {
            match kind {
                FieldKind::Flag => json!(true),
                FieldKind::Text => json!("text"),
                FieldKind::Url => json!("https://x.example/a"),
                FieldKind::Choice(values) => json!(values[values.len() - 1]),
                FieldKind::Integer(least, _) => json!(least),
                FieldKind::Number(least, _) => json!(least + 0.5),
                FieldKind::List(_, of_what) => json!([of(of_what)]),
                FieldKind::Object(fields) | FieldKind::TextOr(fields) => {
                    fields.iter().map(|field| (field.name.to_owned(), of(&field.kind))).collect()
                }
                FieldKind::Dictionary(of_what) => json!({ "key": of(of_what) }),
                FieldKind::Free(_) => json!({ "a": 1 }),
            }
        }
        of(&FieldKind::Object(FIELDS))
    }

    /// The table and the types agree: whatever the table describes passes through the types unchanged.
    #[test]
    fn every_field_goes_through() {
        let reading = Params::read(&full(), Side::Client).unwrap();
        assert_eq!(serde_json::to_value(&reading.params).unwrap(), full());
        assert_eq!(reading.params.check(), []);
    }

    /// The types accept every allowed value.
    #[test]
    fn every_choice_goes_through() {
        for field in FIELDS {
            let FieldKind::Object(inner) = field.kind else { continue };
            for choice in inner {
                let FieldKind::Choice(values) = choice.kind else { continue };
                for value in values {
                    let mut config = full()[field.name].clone();
                    config[choice.name] = json!(value);
                    Params::read(&json!({ field.name: config }), Side::Client).unwrap();
                }
            }
        }
    }

    #[test]
    fn the_lists_have_the_documented_sizes() {
        assert_eq!((LANGUAGES.len(), TARGET_LANGUAGES.len(), PII_ENTITIES.len()), (99, 101, 82));
        assert!(!LANGUAGES.contains(&"wo"));
    }
}
