//! What the parameter table provides for others: defaults for a record, rows of the published page, the schema of a
//! create.

use super::languages::PII_ENTITIES;
use super::parameter_check::{FIELDS, Field, FieldKind, UNBOUNDED, join};
use serde_json::{Map, Value, json};

/// Returns the `request_params` of a record: these parameters with defaults added. Defaults are added for every toggle,
/// and within objects that were sent or belong to a toggle that is on. Keys that the table does not have are omitted;
/// values that were sent stay as they are.
pub fn with_defaults(params: &Value) -> Value {
    Value::Object(params.as_object().map(|sent| fill(FIELDS, sent)).unwrap_or_default())
}

fn fill(fields: &[Field], sent: &Map<String, Value>) -> Map<String, Value> {
    let value_of = |field: &Field| match (sent.get(field.name), &field.kind) {
        (Some(Value::Object(inner)), FieldKind::Object(fields)) => Some(Value::Object(fill(fields, inner))),
        (Some(value), _) => Some(value.clone()),
        (None, FieldKind::Object(fields)) if may_be_filled(field.name, fields, sent) => {
            Some(Value::Object(fill(fields, &Map::new())))
        }
        (None, _) => serde_json::from_str(field.default?).ok(),
    };
    fields.iter().filter_map(|field| Some((field.name.to_owned(), value_of(field)?))).collect()
}

/// Whether a missing object may be added: not if it has required fields.
fn may_be_filled(name: &str, fields: &[Field], siblings: &Map<String, Value>) -> bool {
    let is_on = name.strip_suffix("_config").is_some_and(|toggle| siblings.get(toggle) == Some(&Value::Bool(true)));
    is_on && fields.iter().all(|field| !field.required) || name == "language_config"
}

/// A parameter in the form of the published table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedParameter {
    /// The dotted path; `[]` stands for the elements of a list.
    pub path: String,
    /// "must be …", and whether the parameter is required.
    pub must: String,
    /// The default as JSON; empty if there is none.
    pub default: String,
}

/// Returns every parameter, in the order of the table; inner ones follow their object.
pub fn parameters() -> Vec<PublishedParameter> {
    let mut rows = Vec::new();
    collect_rows(FIELDS, "", &mut rows);
    rows
}

/// Returns the default of the parameter at this path as JSON; empty if there is no default or no such parameter.
pub fn default_of(path: &str) -> &'static str {
    find(FIELDS, path).and_then(|field| field.default).unwrap_or_default()
}

fn find(fields: &'static [Field], path: &str) -> Option<&'static Field> {
    let (name, inner) = path.split_once('.').map_or((path, None), |(name, inner)| (name, Some(inner)));
    let field = fields.iter().find(|field| field.name == name.trim_end_matches("[]"))?;
    let Some(inner) = inner else { return Some(field) };
    match &field.kind {
        FieldKind::Object(fields) | FieldKind::List(_, FieldKind::TextOr(fields)) => find(fields, inner),
        _ => None,
    }
}

fn collect_rows(fields: &[Field], path: &str, rows: &mut Vec<PublishedParameter>) {
    for field in fields {
        let path = join(path, field.name);
        let must = match &field.kind {
            // The published page names these lists; they would fill the table.
            FieldKind::Choice(values) if values.len() > 10 => format!("must be one of {} values", values.len()),
            kind => kind.requirement(),
        };
        let must = if field.required { format!("{must}; required") } else { must };
        rows.push(PublishedParameter {
            path: path.clone(),
            must,
            default: field.default.unwrap_or_default().to_owned(),
        });
        match &field.kind {
            FieldKind::Object(inner) => collect_rows(inner, &path, rows),
            FieldKind::List(_, FieldKind::TextOr(inner)) => collect_rows(inner, &format!("{path}[]"), rows),
            _ => {}
        }
    }
}

/// Returns the JSON Schema of a create's body.
pub fn create_schema() -> Value {
    let mut schema = FieldKind::Object(FIELDS).schema();
    schema["required"] = json!(["audio_url"]);
    // Spellings that clients are known to send: a vocabulary in place of its toggle, and one PII entity in place of a
    // list.
    let fields = &mut schema["properties"];
    fields["custom_vocabulary"]["type"] = json!(["boolean", "array", "null"]);
    let entities = &mut fields["pii_redaction_config"]["properties"]["entity_types"];
    *entities = json!({ "anyOf": [entities.take(), { "type": "string", "enum": PII_ENTITIES }] });
    schema
}

impl FieldKind {
    fn schema(&self) -> Value {
        match self {
            Self::Flag => json!({ "type": "boolean" }),
            Self::Text => json!({ "type": "string" }),
            Self::Url => url_schema(),
            Self::Choice(values) => json!({ "type": "string", "enum": values }),
            Self::Integer(least, UNBOUNDED) => json!({ "type": "integer", "minimum": least }),
            Self::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Number(least, most) if *most == f64::MAX => json!({ "type": "number", "minimum": least }),
            Self::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
            Self::List(least, of) => json!({ "type": "array", "minItems": least, "items": of.schema() }),
            Self::Object(fields) => object_schema(fields),
            Self::TextOr(fields) => json!({ "oneOf": [{ "type": "string" }, object_schema(fields)] }),
            Self::Dictionary(of) => json!({ "type": "object", "additionalProperties": of.schema() }),
            Self::Free(_) => json!({ "type": "object" }),
        }
    }
}

/// Returns the JSON Schema of an http or https URL.
pub fn url_schema() -> Value {
    json!({ "type": "string", "format": "uri", "pattern": "^[hH][tT][tT][pP][sS]?://[0-9A-Za-z]" })
}

fn object_schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Allows `null` as well, which some clients write for "not set".
fn nullable(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.push(Value::Null);
    }
    schema
}

fn field_schema(field: &Field) -> Value {
    let schema = field.kind.schema();
    // A field that may be a string or an object has no `type` of its own.
    let may_be_absent = !field.required && field.name != "audio_url" && schema.get("type").is_some();
    let mut schema = if may_be_absent { nullable(schema) } else { schema };
    if let Some(default) = field.default.and_then(|text| serde_json::from_str(text).ok()) {
        schema["default"] = default;
    }
    schema
}
