//! The JSON Schema of `jobs.toml` (draft 2020-12), for editors. The keys are those that are checked; descriptions and
//! defaults come from the manual, `jobs.example.toml`.

use super::keys::{ConfigKey, FILE, Holds, described_path};
use super::shape::shape;
use crate::wire::published;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// The manual: each setting with its default and a line of description above it.
pub const MANUAL: &str = include_str!("../../../jobs.example.toml");

/// Parameters that scribed sets for each job, so that templates may not.
const NOT_IN_TEMPLATES: [&str; 4] = ["audio_url", "callback", "callback_url", "callback_config"];

/// Returns the schema of the whole file.
pub fn schema() -> Value {
    let manual = Manual::read(MANUAL);
    let mut schema = table_schema(FILE, "", &manual);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("jobs.toml of scribed");
    schema["required"] = json!(["source"]);
    schema
}

fn table_schema(keys: &[ConfigKey], path: &str, manual: &Manual) -> Value {
    let honoured = keys.iter().filter(|key| !matches!(key.holds, Holds::NotYet));
    let properties: Map<String, Value> =
        honoured.map(|key| (key.name.to_owned(), key_schema(key, &join(path, key.name), manual))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { described_path(&format!("{path}.{name}")) }
}

fn key_schema(key: &ConfigKey, path: &str, manual: &Manual) -> Value {
    let mut schema = match &key.holds {
        Holds::Value | Holds::NotYet => shape(path).map_or(json!({}), super::shape::Shape::schema),
        Holds::Table(keys) => table_schema(keys, path, manual),
        Holds::Tables(keys) => json!({ "type": "array", "minItems": 1, "items": table_schema(keys, path, manual) }),
        Holds::ValueOrTable(keys) => {
            let value = shape(path).map_or(json!({}), super::shape::Shape::schema);
            json!({ "anyOf": [value, table_schema(keys, path, manual)] })
        }
        Holds::TableOrTables(keys) => {
            let table = table_schema(keys, path, manual);
            json!({ "anyOf": [table, { "type": "array", "minItems": 1, "items": table }] })
        }
        // The descriptions of [service] apply to each of [services.NAME].
        Holds::NamedTables(keys) => {
            let pattern = json!({ "pattern": "^[A-Za-z0-9_-]{1,40}$" });
            let table = table_schema(keys, path.trim_end_matches('s'), manual);
            json!({ "type": "object", "propertyNames": pattern, "additionalProperties": table })
        }
        Holds::Named => json!({ "type": "object", "additionalProperties": parameters() }),
    };
    if let Some(remark) = manual.0.get(path) {
        schema["description"] = json!(remark.words);
        remark.default.iter().for_each(|default| schema["default"] = default.clone());
    }
    schema
}

/// Returns the schema of request parameters as a template may write them: each may also be a text with variables.
fn parameters() -> Value {
    let mut schema = published::create_schema();
    if let Some(all) = schema.as_object_mut() {
        all.remove("required");
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !NOT_IN_TEMPLATES.contains(&name.as_str()));
    }
    allow_variables(schema)
}

/// Refuses unknown names, and allows texts with variables.
fn allow_variables(mut schema: Value) -> Value {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| *property = or_variables(allow_variables(property.take())));
        schema["additionalProperties"] = json!(false);
    }
    for inner in ["items", "additionalProperties"] {
        if schema.get(inner).is_some_and(Value::is_object) {
            schema[inner] = or_variables(allow_variables(schema[inner].take()));
        }
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(list) = schema.get_mut(choice).and_then(Value::as_array_mut) {
            list.iter_mut().for_each(|one| *one = allow_variables(one.take()));
        }
    }
    schema
}

fn or_variables(schema: Value) -> Value {
    let is_any_text = schema["type"] == "string" && schema.get("enum").is_none() && schema.get("pattern").is_none();
    if is_any_text || schema["type"] == "object" {
        return schema;
    }
    let text = json!({ "type": "string", "pattern": r"\{[{%]" });
    let mut outer = json!({ "anyOf": [schema, text] });
    if let Some(default) = outer["anyOf"][0].as_object_mut().and_then(|schema| schema.remove("default")) {
        outer["default"] = default;
    }
    outer
}

/// The manual's description of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// The description.
    pub words: String,
    /// The default, if the manual shows it.
    pub default: Option<Value>,
}

/// The manual's descriptions, by dotted path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manual(pub BTreeMap<String, Remark>);

impl Manual {
    /// Reads a commented `jobs.toml`. A text that cannot be parsed has no descriptions.
    pub fn read(text: &str) -> Self {
        let mut manual = Self::default();
        if let Ok(top) = DeTable::parse(text) {
            manual.table(text, top.get_ref(), "");
        }
        manual
    }

    fn table(&mut self, text: &str, table: &DeTable<'_>, path: &str) {
        for (name, value) in table {
            let path = join(path, name.get_ref());
            // Tables with names that the user chooses have the settings of the general table.
            let inner = match path.rsplit_once('.') {
                Some(("services", _)) => "service".to_owned(),
                Some(("serve.recognisers", _)) => "serve.recogniser".to_owned(),
                Some(("web.users", _)) => "web.user".to_owned(),
                Some(("notify", event)) if event.starts_with("on_") => "notify.target".to_owned(),
                _ => path.clone(),
            };
            self.remark(&path, comment_above(text, name.span().start), value.get_ref());
            match value.get_ref() {
                DeValue::Table(under) => self.table(text, under, &inner),
                DeValue::Array(list) => {
                    for element in list {
                        if let DeValue::Table(under) = element.get_ref() {
                            self.table(text, under, &inner);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn remark(&mut self, path: &str, comment: Option<&str>, value: &DeValue<'_>) {
        let Some(comment) = comment else { return };
        let (words, default) = match comment.split_once(DEFAULT) {
            Some((words, _)) => (words, json_of(value)),
            None => (comment, None),
        };
        let words = words.trim().to_owned();
        self.0.entry(path.to_owned()).or_insert(Remark { words, default });
    }
}

/// The end of a comment if the value below it is the default.
const DEFAULT: &str = "(default)";

/// Returns the comment in the line above a place.
fn comment_above(text: &str, at: usize) -> Option<&str> {
    let (above, _) = text.get(..at)?.rsplit_once('\n')?;
    above.lines().next_back()?.strip_prefix('#').map(str::trim)
}

fn json_of(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Integer(number) => json!(number.as_str().replace('_', "").parse::<i64>().ok()?),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().ok()?),
        DeValue::Array(list) => list.iter().map(|element| json_of(element.get_ref())).collect::<Option<Value>>()?,
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read::parse;
    use std::path::Path;
    use std::sync::LazyLock;

    /// Every setting, by its path.
    fn settings(keys: &[ConfigKey], path: &str, found: &mut Vec<String>) {
        for key in keys {
            let path = join(path, key.name);
            match &key.holds {
                Holds::Value | Holds::ValueOrTable(_) => found.push(path),
                Holds::Table(keys) | Holds::Tables(keys) | Holds::TableOrTables(keys) => settings(keys, &path, found),
                // Those of [services.NAME] are those of [service].
                Holds::NamedTables(keys) if path != "services" => settings(keys, path.trim_end_matches('s'), found),
                Holds::NamedTables(_) | Holds::Named | Holds::NotYet => {}
            }
        }
    }

    fn all() -> Vec<String> {
        let mut found = Vec::new();
        settings(FILE, "", &mut found);
        found
    }

    #[test]
    fn every_setting_has_a_form_and_a_line_in_the_manual() {
        let manual = Manual::read(MANUAL);
        let formless: Vec<String> = all().into_iter().filter(|path| shape(path).is_none()).collect();
        assert_eq!(formless, [""; 0], "give it one in config/shape.rs");
        let silent = |path: &String| !manual.0.contains_key(path);
        let silent: Vec<String> = all().into_iter().filter(silent).collect();
        assert_eq!(silent, [""; 0], "say what it means in jobs.example.toml, in a comment above it");
    }

    #[test]
    fn the_manual_is_read_line_by_line() {
        let manual = Manual::read(MANUAL);
        let of = |path: &str| manual.0[path].clone();
        assert_eq!(of("service.limits.running").default, Some(json!(25)));
        assert_eq!(of("state.store").default, Some(json!("sled:state")));
        assert_eq!(of("source.outputs").default, Some(json!(["txt", "srt", "vtt", "json"])));
        assert_eq!(of("service.url").default, None);
        assert!(of("source.budget.day").words.contains("midnight"));
        assert!(of("service").words.contains("embedded"));
        assert!(!manual.0.values().any(|remark| remark.words.is_empty() || remark.words.contains(DEFAULT)));
    }

    /// One line for each setting and each table, right above it, and no longer than a terminal is wide.
    #[test]
    fn the_manual_has_one_line_for_each_setting() {
        let lines: Vec<&str> = MANUAL.lines().collect();
        let head = lines.iter().position(|line| line.is_empty()).unwrap();
        for (at, line) in lines.iter().enumerate().skip(head) {
            assert!(!line.starts_with('#') || line.chars().count() <= 110, "line {}: {line}", at + 1);
            if !line.is_empty() && !line.starts_with('#') {
                assert!(lines[at - 1].starts_with("# "), "line {} has no comment above it: {line}", at + 1);
                assert!(!lines[at - 2].starts_with('#'), "line {} has two lines of comment: {line}", at + 1);
            }
        }
    }

    static VALIDATOR: LazyLock<(boon::Schemas, boon::SchemaIndex)> = LazyLock::new(|| {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("jobs.json", schema()).unwrap();
        let index = compiler.compile("jobs.json", &mut schemas).unwrap();
        (schemas, index)
    });

    fn valid(text: &str) -> Result<(), String> {
        let (schemas, index) = &*VALIDATOR;
        let table: toml::Table = text.parse().unwrap();
        schemas.validate(&serde_json::to_value(table).unwrap(), *index).map_err(|error| error.to_string())
    }

    #[test]
    fn the_manual_and_the_starter_are_as_the_schema_has_it() {
        valid(MANUAL).unwrap();
        valid(crate::config::starter::starter()).unwrap();
        valid("[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\ndiarization = \"{{ ext == 'mp4' }}\"\n")
            .unwrap();
    }

    #[test]
    fn what_the_schema_refuses_the_reading_refuses_too() {
        let source = "[[source]]\nfolder = \"inbox\"\n";
        for wrong in [
            "",
            "[[source]]\nfolder = \"inbox\"\nsettel = \"1s\"\n",
            "[[source]]\nfolder = \"inbox\"\nsettle = 10\n",
            "[[source]]\nfolder = \"inbox\"\noutputs = [\"doc\"]\n",
            "[[source]]\nfolder = \"inbox\"\ninclude = []\n",
            "[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\naudio_url = \"https://x.example/a\"\n",
            "[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\ndiarisation = true\n",
            "[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\ndiarization = \"yes\"\n",
            &format!("{source}[state]\nspool = \"much\"\n"),
            &format!("{source}[service.limits]\nrunning = 0\n"),
            &format!("{source}[services.\"a b\"]\nlag = \"1s\"\n"),
            &format!("{source}[callback]\npublic_url = \"ftp://x\"\n"),
            &format!("{source}[serve]\nkeys = [\"plain\"]\n"),
            &format!("{source}[serve]\nlisten = \"here\"\n"),
        ] {
            assert!(valid(wrong).is_err(), "{wrong}");
            assert!(parse(Path::new("jobs.toml"), wrong, &|_| Some("x".into())).is_err(), "{wrong}");
        }
    }

    /// What every form says of values of other types is what the reading says of them.
    #[test]
    fn no_setting_takes_another_type_than_its_form_says() {
        for path in all() {
            let wrong = match shape(&path).unwrap() {
                crate::config::load::shape::Shape::Flag => "\"yes\"",
                _ => "{ a = 1 }",
            };
            let (table, key) = path.rsplit_once('.').unwrap_or(("", &path));
            let table = match table {
                "serve.recogniser" => "serve.recognisers.house",
                "web.user" => "web.users.ann",
                "notify.target" => "notify.on_failed",
                "notify.target.matrix" => "notify.on_failed.matrix",
                table => table,
            };
            let text = match table.strip_prefix("source") {
                None if table.is_empty() => format!("{key} = {wrong}\n[[source]]\nfolder = \"inbox\"\n"),
                Some("") => format!("[[source]]\nfolder = \"inbox\"\n{key} = {wrong}\n")
                    .replace("folder = \"inbox\"\nfolder", "folder"),
                Some(below) => format!("[[source]]\nfolder = \"inbox\"\n[source{below}]\n{key} = {wrong}\n"),
                None => format!("[[source]]\nfolder = \"inbox\"\n[{table}]\n{key} = {wrong}\n"),
            };
            assert!(valid(&text).is_err(), "{path}");
            assert!(parse(Path::new("jobs.toml"), &text, &|_| Some("x".into())).is_err(), "{path}");
        }
    }
}
