//! The table of what each parameter may hold ([`FIELDS`]) is walked by every check, so that everything that is wrong is told at once and in the same words on both sides.

pub(super) use super::languages::TARGET_LANGUAGES;
use super::parameter_table::as_integer;
pub use super::parameter_table::text_length;
pub(super) use super::parameter_table::{
    FIELDS, Field, FieldKind, SPOKEN_LANGUAGES, TEXTS, UNBOUNDED, VOCABULARY, optional, required,
};
use serde_json::{Map, Value};

/// How long `custom_metadata` may be as JSON text, in UTF-16 units as JavaScript counts them
/// (service-notes 4: "at most 2000 characters when stringified").
pub const METADATA_LIMIT: usize = 2_000;

/// The free object that comes back unchanged; our token lies in it.
pub const METADATA: &str = "custom_metadata";

/// What is set for each request, and does not change the transcription.
pub const PER_REQUEST_FIELDS: [&str; 4] = ["audio_url", "callback", "callback_url", "callback_config"];

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Dotted path, elements by number from 0: `language_config.languages.1`.
    pub field: String,
    /// What would be right: "must be …".
    pub requirement: String,
    /// What kind of mistake it is.
    pub kind: FieldError,
    /// What would be taken here, where that is a list: the values, or for an unknown key the keys.
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for Complaint {
    /// As the service words its `validation_errors`: the field, then "must …".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.requirement)
    }
}

/// A kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldError {
    /// The field is no parameter of the interface.
    Key,
    /// The field is required and not there.
    Missing,
    /// The field's type or value.
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before sending: an unknown key is a complaint, `audio_url` may come later.
    Client,
    /// A request that came in: an unknown key is passed over and listed, `audio_url` is required,
    /// spellings that clients are known to send are understood.
    Server,
}

/// What a walk along the table found.
#[derive(Debug, Default)]
pub struct FieldFindings {
    /// All that is wrong.
    pub complaints: Vec<Complaint>,
    /// Unknown keys, when they are no complaint.
    pub ignored: Vec<String>,
}

/// Checks parameters that are still JSON against the interface. A string for which `later` is true
/// stands for one that is not known yet (a template): any single value may come of it.
pub fn inspect(value: &Value, side: Side, later: fn(&str) -> bool) -> FieldFindings {
    let mut walk = Walk { side, is_template: later, findings: FieldFindings::default() };
    walk.value("", &FieldKind::Object(FIELDS), value);
    if side == Side::Server && value.is_object() && value.get("audio_url").is_none_or(Value::is_null) {
        walk.missing("", "audio_url", &FieldKind::Url);
    }
    walk.findings
}

/// Everything in a record's parameters that is not what a table of another endpoint allows; unknown
/// keys are passed over.
pub(super) fn inspect_fields(fields: &'static [Field], path: &str, value: &Value) -> Vec<Complaint> {
    let mut walk = Walk { side: Side::Server, is_template: |_| false, findings: FieldFindings::default() };
    walk.value(path, &FieldKind::Object(fields), value);
    walk.findings.complaints
}

/// Turns text in a number or boolean field into what it says ("3", "true"); what does not parse
/// stays text and is found by the check that follows.
pub fn coerce(value: &mut Value) {
    for_each_field(&FieldKind::Object(FIELDS), value, |kind, value| {
        if let Some(parsed) = value.as_str().and_then(|text| kind.parse(text.trim())) {
            *value = parsed;
        }
    });
}

impl Complaint {
    /// A wrong value; `must` begins with "must".
    pub fn value(field: &str, must: String) -> Self {
        Self { field: field.to_owned(), requirement: must, kind: FieldError::Value, known: Vec::new() }
    }
}

/// Mistakes in a request that came in that are told, and unknown keys of it that are named in the log.
const MAX_COMPLAINTS: usize = 100;

struct Walk {
    side: Side,
    is_template: fn(&str) -> bool,
    findings: FieldFindings,
}

impl Walk {
    fn value(&mut self, path: &str, kind: &FieldKind, value: &Value) {
        // `null` is how some clients write "not set".
        let later = value.as_str().is_some_and(self.is_template);
        if value.is_null() && !path.is_empty() || later && kind.is_parsable_from_text() {
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

    /// As a value, but here `null` would stand for nothing.
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

    /// Whether one more is kept: of a request that came in, enough to answer with. The sender could choose how
    /// many there are.
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

/// Calls `change` on each value that the table knows, inner ones first.
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

/// Makes a checked value one that the types take: `3.0` in an integer field, `null` for not set.
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

    /// One request with every field of the table set to something that is allowed.
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

    /// The table and the types agree: what the table names survives the types, whole.
    #[test]
    fn every_field_goes_through() {
        let reading = Params::read(&full(), Side::Client).unwrap();
        assert_eq!(serde_json::to_value(&reading.params).unwrap(), full());
        assert_eq!(reading.params.check(), []);
    }

    /// Every allowed value is one that the types take.
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
        assert_eq!((LANGUAGES.len(), TARGET_LANGUAGES.len(), PII_ENTITIES.len()), (99, 100, 82));
        assert!(!LANGUAGES.contains(&"wo"));
    }
}
