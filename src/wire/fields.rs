//! What each parameter of a create request may hold: one table, [`FIELDS`], that every check walks,
//! so that everything that is wrong is told at once and in the same words on both sides.

pub(super) use super::languages::TARGET_LANGUAGES;
use super::languages::{LANGUAGES, PII_ENTITIES};
use serde_json::{Map, Value};

/// How long `custom_metadata` may be as JSON text, in UTF-16 units as JavaScript counts them
/// (service-notes 4: "at most 2000 characters when stringified").
pub const METADATA_LIMIT: usize = 2_000;

/// The free object that comes back unchanged; our token lies in it.
pub const METADATA: &str = "custom_metadata";

/// What is set for each request, and does not change the transcription.
pub const PER_REQUEST: [&str; 4] = ["audio_url", "callback", "callback_url", "callback_config"];

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Dotted path, elements by number from 0: `language_config.languages.1`.
    pub field: String,
    /// What would be right: "must be …".
    pub must: String,
    /// What kind of mistake it is.
    pub wrong: Wrong,
    /// What would be taken here, where that is a list: the values, or for an unknown key the keys.
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for Complaint {
    /// As the service words its `validation_errors`: the field, then "must …".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.must)
    }
}

/// A kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The field is no parameter of the interface.
    Key,
    /// The field is required and not there.
    Missing,
    /// The field's type or value.
    Value,
}

/// Who reads.
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
pub struct Found {
    /// All that is wrong.
    pub complaints: Vec<Complaint>,
    /// Unknown keys, when they are no complaint.
    pub ignored: Vec<String>,
}

/// Checks parameters that are still JSON against the interface. A string for which `later` is true
/// stands for one that is not known yet (a template): any single value may come of it.
pub fn inspect(value: &Value, side: Side, later: fn(&str) -> bool) -> Found {
    let mut walk = Walk { side, later, found: Found::default() };
    walk.value("", &Kind::Object(FIELDS), value);
    if side == Side::Server && value.is_object() && value.get("audio_url").is_none_or(Value::is_null) {
        walk.missing("", "audio_url", &Kind::Url);
    }
    walk.found
}

/// Everything in a record's parameters that is not what a table of another endpoint allows; unknown
/// keys are passed over.
pub(super) fn inspect_other(fields: &'static [Field], path: &str, value: &Value) -> Vec<Complaint> {
    let mut walk = Walk { side: Side::Server, later: |_| false, found: Found::default() };
    walk.value(path, &Kind::Object(fields), value);
    walk.found.complaints
}

/// Turns text in a number or boolean field into what it says ("3", "true"); what does not parse
/// stays text and is found by the check that follows.
pub fn coerce(value: &mut Value) {
    each(&Kind::Object(FIELDS), value, |kind, value| {
        if let Some(parsed) = value.as_str().and_then(|text| kind.parse(text.trim())) {
            *value = parsed;
        }
    });
}

/// What a field may hold.
#[derive(Debug)]
pub(super) enum Kind {
    Flag,
    Text,
    Url,
    Choice(&'static [&'static str]),
    /// From least to most, both allowed.
    Integer(u32, u32),
    /// From least to most, both allowed.
    Number(f64, f64),
    /// At least so many elements.
    List(usize, &'static Kind),
    Object(&'static [Field]),
    /// A string, or an object with these fields.
    TextOr(&'static [Field]),
    /// An object of any keys whose values are these.
    Dictionary(&'static Kind),
    /// Any object, at most so long as text.
    Free(usize),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// As JSON text; what a record shows where nothing was sent.
    pub(super) default: Option<&'static str>,
}

pub(super) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false, default: None }
}

pub(super) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true, default: None }
}

const fn or(name: &'static str, kind: Kind, default: &'static str) -> Field {
    Field { name, kind, required: false, default: Some(default) }
}

/// A toggle, off unless it is sent.
const fn off(name: &'static str) -> Field {
    or(name, Kind::Flag, "false")
}

pub(super) const ANY: u32 = u32::MAX;
pub(super) const TEXTS: Kind = Kind::List(0, &Kind::Text);
pub(super) const SPOKEN: Kind = Kind::List(0, &Kind::Choice(LANGUAGES));

/// Every parameter. Bounds and values are service-notes 4; names and types the interface's.
pub(super) const FIELDS: &[Field] = &[
    may("audio_url", Kind::Url),
    may("model", Kind::Text),
    may("language_config", Kind::Object(&[or("languages", SPOKEN, "[]"), off("code_switching")])),
    off("custom_vocabulary"),
    may(
        "custom_vocabulary_config",
        Kind::Object(&[
            must("vocabulary", Kind::List(0, &Kind::TextOr(VOCABULARY))),
            or("default_intensity", Kind::Number(0.0, 1.0), "0.5"),
        ]),
    ),
    off("callback"),
    may("callback_url", Kind::Url),
    may(
        "callback_config",
        Kind::Object(&[must("url", Kind::Url), or("method", Kind::Choice(&["POST", "PUT"]), "\"POST\"")]),
    ),
    off("subtitles"),
    may(
        "subtitles_config",
        Kind::Object(&[
            or("formats", Kind::List(1, &Kind::Choice(&["srt", "vtt"])), "[\"srt\"]"),
            may("minimum_duration", Kind::Number(0.0, f64::MAX)),
            may("maximum_duration", Kind::Number(1.0, 30.0)),
            may("maximum_characters_per_row", Kind::Integer(1, ANY)),
            may("maximum_rows_per_caption", Kind::Integer(1, 5)),
            or("style", Kind::Choice(&["default", "compliance"]), "\"default\""),
        ]),
    ),
    off("diarization"),
    may(
        "diarization_config",
        Kind::Object(&[
            may("number_of_speakers", Kind::Integer(1, ANY)),
            may("min_speakers", Kind::Integer(0, ANY)),
            may("max_speakers", Kind::Integer(0, ANY)),
            may("enhanced", Kind::Flag),
        ]),
    ),
    off("translation"),
    may(
        "translation_config",
        Kind::Object(&[
            must("target_languages", Kind::List(1, &Kind::Choice(TARGET_LANGUAGES))),
            or("model", Kind::Choice(&["base", "enhanced", "batch"]), "\"base\""),
            or("match_original_utterances", Kind::Flag, "true"),
            or("lipsync", Kind::Flag, "true"),
            or("context_adaptation", Kind::Flag, "true"),
            may("context", Kind::Text),
            off("informal"),
        ]),
    ),
    off("summarization"),
    may(
        "summarization_config",
        Kind::Object(&[or("type", Kind::Choice(&["general", "bullet_points", "concise"]), "\"general\"")]),
    ),
    off("named_entity_recognition"),
    off("custom_spelling"),
    may("custom_spelling_config", Kind::Object(&[must("spelling_dictionary", Kind::Dictionary(&TEXTS))])),
    off("sentiment_analysis"),
    off("audio_to_llm"),
    may("audio_to_llm_config", Kind::Object(&[must("prompts", Kind::List(1, &Kind::Text)), may("model", Kind::Text)])),
    off("pii_redaction"),
    may(
        "pii_redaction_config",
        Kind::Object(&[
            may("entity_types", Kind::List(0, &Kind::Choice(PII_ENTITIES))),
            or("processed_text_type", Kind::Choice(&["MARKER", "MASK"]), "\"MARKER\""),
        ]),
    ),
    off("sentences"),
    off("punctuation_enhanced"),
    may(METADATA, Kind::Free(METADATA_LIMIT)),
    may("detect_language", Kind::Flag),
    may("enable_code_switching", Kind::Flag),
    may("code_switching_config", Kind::Object(&[may("languages", SPOKEN)])),
    may("language", Kind::Choice(LANGUAGES)),
    may("context_prompt", Kind::Text),
    off("chapterization"),
    off("name_consistency"),
    off("speaker_reidentification"),
    off("structured_data_extraction"),
    may("structured_data_extraction_config", Kind::Object(&[may("classes", TEXTS)])),
    off("display_mode"),
    off("moderation"),
    may("audio_enhancer", Kind::Flag),
    may("accurate_words_timestamps", Kind::Flag),
    may("diarization_enhanced", Kind::Flag),
    may("skip_channel_deduplication", Kind::Flag),
    may("languages_guidance", SPOKEN),
];

pub(super) const VOCABULARY: &[Field] = &[
    must("value", Kind::Text),
    may("pronunciations", TEXTS),
    may("intensity", Kind::Number(0.0, 1.0)),
    may("language", Kind::Choice(LANGUAGES)),
];

impl Complaint {
    /// A wrong value; `must` begins with "must".
    pub fn value(field: &str, must: String) -> Self {
        Self { field: field.to_owned(), must, wrong: Wrong::Value, known: Vec::new() }
    }
}

impl Kind {
    /// What a value of this kind must be.
    pub(super) fn must(&self) -> String {
        match self {
            Self::Flag => "must be true or false".to_owned(),
            Self::Text => "must be a string".to_owned(),
            Self::Url => "must be an http or https URL".to_owned(),
            Self::Choice(values) => format!("must be one of: {}", values.join(", ")),
            Self::Integer(least, ANY) => format!("must be an integer of at least {least}"),
            Self::Integer(least, most) => format!("must be an integer from {least} to {most}"),
            Self::Number(least, most) if *most == f64::MAX => format!("must be a number of at least {least}"),
            Self::Number(least, most) => format!("must be a number from {least} to {most}"),
            Self::List(0, _) => "must be an array".to_owned(),
            Self::List(least, _) => format!("must be an array of at least {least} element"),
            Self::Object(_) | Self::Dictionary(_) => "must be an object".to_owned(),
            Self::TextOr(_) => "must be a string or an object".to_owned(),
            Self::Free(most) => format!("must be an object of at most {most} characters as JSON"),
        }
    }

    /// Whether one piece of text, once it is known, may become such a value.
    fn may_come_of_text(&self) -> bool {
        !matches!(self, Self::List(..) | Self::Object(_) | Self::Dictionary(_) | Self::Free(_))
    }

    /// What text says in a number or boolean field; `None` elsewhere, and where it does not parse.
    fn parse(&self, text: &str) -> Option<Value> {
        match self {
            // A template prints a boolean as Python does: True, False.
            Self::Flag => text.to_ascii_lowercase().parse::<bool>().ok().map(Value::Bool),
            Self::Integer(..) => text.parse::<i64>().ok().map(Value::from),
            // What JSON cannot hold (infinity, not-a-number) becomes null, which is no number.
            Self::Number(..) => text.parse::<f64>().ok().map(Value::from).filter(Value::is_number),
            _ => None,
        }
    }

    /// Whether the value itself is right; what is inside it is looked at afterwards.
    fn takes(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Flag, Value::Bool(_)) | (Self::Text, Value::String(_)) => true,
            (Self::Url, Value::String(text)) => is_web_url(text),
            (Self::Choice(values), Value::String(text)) => values.contains(&text.as_str()),
            (Self::Integer(least, most), value) => {
                whole(value).is_some_and(|n| (i64::from(*least)..=i64::from(*most)).contains(&n))
            }
            (Self::Number(least, most), value) => value.as_f64().is_some_and(|n| *least <= n && n <= *most),
            (Self::List(least, _), Value::Array(list)) => list.len() >= *least,
            (Self::Object(_) | Self::Dictionary(_), Value::Object(_)) => true,
            (Self::TextOr(_), Value::String(_) | Value::Object(_)) => true,
            (Self::Free(most), Value::Object(_)) => text_length(value) <= *most,
            _ => false,
        }
    }
}

/// The length of a value as JSON text, in UTF-16 units.
pub fn text_length(value: &Value) -> usize {
    value.to_string().encode_utf16().count()
}

fn is_web_url(text: &str) -> bool {
    reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// A number without a fraction, also when it is written `3.0`.
fn whole(value: &Value) -> Option<i64> {
    let float = || value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15).map(|n| n as i64);
    value.as_i64().or_else(float)
}

struct Walk {
    side: Side,
    later: fn(&str) -> bool,
    found: Found,
}

impl Walk {
    fn value(&mut self, path: &str, kind: &Kind, value: &Value) {
        // `null` is how some clients write "not set".
        let later = value.as_str().is_some_and(self.later);
        if value.is_null() && !path.is_empty() || later && kind.may_come_of_text() {
            return;
        }
        if !kind.takes(value) {
            return self.complain(path, kind);
        }
        match (kind, value) {
            (Kind::Object(fields) | Kind::TextOr(fields), Value::Object(map)) => self.object(path, fields, map),
            (Kind::List(_, of), Value::Array(list)) => {
                for (number, element) in list.iter().enumerate() {
                    self.element(&join(path, &number.to_string()), of, element);
                }
            }
            (Kind::Dictionary(of), Value::Object(map)) => {
                for (key, element) in map {
                    self.element(&join(path, key), of, element);
                }
            }
            _ => {}
        }
    }

    /// As a value, but here `null` would stand for nothing.
    fn element(&mut self, path: &str, kind: &Kind, value: &Value) {
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

    fn complain(&mut self, path: &str, kind: &Kind) {
        let known = if let Kind::Choice(values) = kind { values.to_vec() } else { Vec::new() };
        let field = if path.is_empty() { "body" } else { path };
        self.found.complaints.push(Complaint { known, ..Complaint::value(field, kind.must()) });
    }

    fn unknown(&mut self, field: String, fields: &[Field]) {
        if self.side == Side::Server {
            return self.found.ignored.push(field);
        }
        let known = fields.iter().map(|field| field.name).collect();
        let must = "must not be given: the interface has no such parameter".to_owned();
        self.found.complaints.push(Complaint { field, must, wrong: Wrong::Key, known });
    }

    fn missing(&mut self, path: &str, name: &str, kind: &Kind) {
        let field = join(path, name);
        let must = format!("must be given, and {}", kind.must());
        self.found.complaints.push(Complaint { field, must, wrong: Wrong::Missing, known: Vec::new() });
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Calls `change` on each value that the table knows, inner ones first.
fn each(kind: &Kind, value: &mut Value, change: fn(&Kind, &mut Value)) {
    match (kind, &mut *value) {
        (Kind::Object(fields) | Kind::TextOr(fields), Value::Object(map)) => {
            for (key, inner) in map.iter_mut() {
                if let Some(field) = fields.iter().find(|field| field.name == key) {
                    each(&field.kind, inner, change);
                }
            }
        }
        (Kind::List(_, of), Value::Array(list)) => list.iter_mut().for_each(|inner| each(of, inner, change)),
        (Kind::Dictionary(of), Value::Object(map)) => map.values_mut().for_each(|inner| each(of, inner, change)),
        _ => {}
    }
    change(kind, value);
}

/// Makes a checked value one that the types take: `3.0` in an integer field, `null` for not set.
pub fn tidy(value: &mut Value) {
    each(&Kind::Object(FIELDS), value, |kind, value| match (kind, &mut *value) {
        (Kind::Integer(..), Value::Number(_)) => {
            if let Some(n) = whole(value) {
                *value = Value::from(n);
            }
        }
        (Kind::Object(_) | Kind::TextOr(_), Value::Object(map)) => map.retain(|_, inner| !inner.is_null()),
        _ => {}
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::params::Params;
    use super::*;
    use serde_json::json;

    /// One request with every field of the table set to something that is allowed.
    fn full() -> Value {
        fn of(kind: &Kind) -> Value {
            match kind {
                Kind::Flag => json!(true),
                Kind::Text => json!("text"),
                Kind::Url => json!("https://x.example/a"),
                Kind::Choice(values) => json!(values[values.len() - 1]),
                Kind::Integer(least, _) => json!(least),
                Kind::Number(least, _) => json!(least + 0.5),
                Kind::List(_, of_what) => json!([of(of_what)]),
                Kind::Object(fields) | Kind::TextOr(fields) => {
                    fields.iter().map(|field| (field.name.to_owned(), of(&field.kind))).collect()
                }
                Kind::Dictionary(of_what) => json!({ "key": of(of_what) }),
                Kind::Free(_) => json!({ "a": 1 }),
            }
        }
        of(&Kind::Object(FIELDS))
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
            let Kind::Object(inner) = field.kind else { continue };
            for choice in inner {
                let Kind::Choice(values) = choice.kind else { continue };
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
