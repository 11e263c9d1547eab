//! The table of all parameters of a create request, [`FIELDS`], and the kinds of values in it.

use super::address;
use super::languages::{LANGUAGES, PII_ENTITIES, TARGET_LANGUAGES};
use super::parameter_check::{METADATA, METADATA_LIMIT};
use serde_json::Value;

/// The kind of value of a field.
#[derive(Debug)]
pub(super) enum FieldKind {
    Flag,
    Text,
    Url,
    Choice(&'static [&'static str]),
    /// From the first to the second bound, both allowed.
    Integer(u32, u32),
    /// From the first to the second bound, both allowed.
    Number(f64, f64),
    /// A list with at least this many elements.
    List(usize, &'static FieldKind),
    Object(&'static [Field]),
    /// A string, or an object with these fields.
    TextOr(&'static [Field]),
    /// An object with any keys, whose values are of this kind.
    Dictionary(&'static FieldKind),
    /// Any object whose JSON text is at most this long.
    Free(usize),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: FieldKind,
    pub(super) required: bool,
    /// The default as JSON text, which a record shows if the parameter was not sent.
    pub(super) default: Option<&'static str>,
}

pub(super) const fn optional(name: &'static str, kind: FieldKind) -> Field {
    Field { name, kind, required: false, default: None }
}

pub(super) const fn required(name: &'static str, kind: FieldKind) -> Field {
    Field { name, kind, required: true, default: None }
}

const fn with_default(name: &'static str, kind: FieldKind, default: &'static str) -> Field {
    Field { name, kind, required: false, default: Some(default) }
}

/// A Boolean field whose default is false.
const fn toggle(name: &'static str) -> Field {
    with_default(name, FieldKind::Flag, "false")
}

pub(super) const UNBOUNDED: u32 = u32::MAX;
pub(super) const TEXTS: FieldKind = FieldKind::List(0, &FieldKind::Text);
pub(super) const SPOKEN_LANGUAGES: FieldKind = FieldKind::List(0, &FieldKind::Choice(LANGUAGES));

/// Every parameter. Bounds and values are from service-notes 4, names and types from the interface.
pub(super) const FIELDS: &[Field] = &[
    optional("audio_url", FieldKind::Url),
    optional("model", FieldKind::Text),
    optional(
        "language_config",
        FieldKind::Object(&[with_default("languages", SPOKEN_LANGUAGES, "[]"), toggle("code_switching")]),
    ),
    toggle("custom_vocabulary"),
    optional(
        "custom_vocabulary_config",
        FieldKind::Object(&[
            required("vocabulary", FieldKind::List(0, &FieldKind::TextOr(VOCABULARY))),
            with_default("default_intensity", FieldKind::Number(0.0, 1.0), "0.5"),
        ]),
    ),
    toggle("callback"),
    optional("callback_url", FieldKind::Url),
    optional(
        "callback_config",
        FieldKind::Object(&[
            required("url", FieldKind::Url),
            with_default("method", FieldKind::Choice(&["POST", "PUT"]), "\"POST\""),
        ]),
    ),
    toggle("subtitles"),
    optional(
        "subtitles_config",
        FieldKind::Object(&[
            with_default("formats", FieldKind::List(1, &FieldKind::Choice(&["srt", "vtt"])), "[\"srt\"]"),
            optional("minimum_duration", FieldKind::Number(0.0, f64::MAX)),
            optional("maximum_duration", FieldKind::Number(1.0, 30.0)),
            optional("maximum_characters_per_row", FieldKind::Integer(1, UNBOUNDED)),
            optional("maximum_rows_per_caption", FieldKind::Integer(1, 5)),
            with_default("style", FieldKind::Choice(&["default", "compliance"]), "\"default\""),
        ]),
    ),
    toggle("diarization"),
    optional(
        "diarization_config",
        FieldKind::Object(&[
            optional("number_of_speakers", FieldKind::Integer(1, UNBOUNDED)),
            optional("min_speakers", FieldKind::Integer(0, UNBOUNDED)),
            optional("max_speakers", FieldKind::Integer(0, UNBOUNDED)),
            optional("enhanced", FieldKind::Flag),
        ]),
    ),
    toggle("translation"),
    optional(
        "translation_config",
        FieldKind::Object(&[
            required("target_languages", FieldKind::List(1, &FieldKind::Choice(TARGET_LANGUAGES))),
            with_default("model", FieldKind::Choice(&["base", "enhanced", "batch"]), "\"base\""),
            with_default("match_original_utterances", FieldKind::Flag, "true"),
            with_default("lipsync", FieldKind::Flag, "true"),
            with_default("context_adaptation", FieldKind::Flag, "true"),
            optional("context", FieldKind::Text),
            toggle("informal"),
        ]),
    ),
    toggle("summarization"),
    optional(
        "summarization_config",
        FieldKind::Object(&[with_default(
            "type",
            FieldKind::Choice(&["general", "bullet_points", "concise"]),
            "\"general\"",
        )]),
    ),
    toggle("named_entity_recognition"),
    toggle("custom_spelling"),
    optional(
        "custom_spelling_config",
        FieldKind::Object(&[required("spelling_dictionary", FieldKind::Dictionary(&TEXTS))]),
    ),
    toggle("sentiment_analysis"),
    toggle("audio_to_llm"),
    optional(
        "audio_to_llm_config",
        FieldKind::Object(&[
            required("prompts", FieldKind::List(1, &FieldKind::Text)),
            optional("model", FieldKind::Text),
        ]),
    ),
    toggle("pii_redaction"),
    optional(
        "pii_redaction_config",
        FieldKind::Object(&[
            optional("entity_types", FieldKind::List(0, &FieldKind::Choice(PII_ENTITIES))),
            with_default("processed_text_type", FieldKind::Choice(&["MARKER", "MASK"]), "\"MARKER\""),
        ]),
    ),
    toggle("sentences"),
    toggle("punctuation_enhanced"),
    optional(METADATA, FieldKind::Free(METADATA_LIMIT)),
    optional("detect_language", FieldKind::Flag),
    optional("enable_code_switching", FieldKind::Flag),
    optional("code_switching_config", FieldKind::Object(&[optional("languages", SPOKEN_LANGUAGES)])),
    optional("language", FieldKind::Choice(LANGUAGES)),
    optional("context_prompt", FieldKind::Text),
    toggle("chapterization"),
    toggle("name_consistency"),
    toggle("speaker_reidentification"),
    toggle("structured_data_extraction"),
    optional("structured_data_extraction_config", FieldKind::Object(&[optional("classes", TEXTS)])),
    toggle("display_mode"),
    toggle("moderation"),
    optional("audio_enhancer", FieldKind::Flag),
    optional("accurate_words_timestamps", FieldKind::Flag),
    optional("diarization_enhanced", FieldKind::Flag),
    optional("skip_channel_deduplication", FieldKind::Flag),
    optional("languages_guidance", SPOKEN_LANGUAGES),
];

pub(super) const VOCABULARY: &[Field] = &[
    required("value", FieldKind::Text),
    optional("pronunciations", TEXTS),
    optional("intensity", FieldKind::Number(0.0, 1.0)),
    optional("language", FieldKind::Choice(LANGUAGES)),
];

impl FieldKind {
    /// Returns what a value of this kind must be, as an error message says it.
    pub(super) fn requirement(&self) -> String {
        match self {
            Self::Flag => "must be true or false".to_owned(),
            Self::Text => "must be a string".to_owned(),
            Self::Url => "must be an http or https URL".to_owned(),
            Self::Choice(values) => format!("must be one of: {}", values.join(", ")),
            Self::Integer(least, UNBOUNDED) => format!("must be an integer of at least {least}"),
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

    /// Whether a single text, such as a rendered template, can become such a value.
    pub(super) fn is_parsable_from_text(&self) -> bool {
        !matches!(self, Self::List(..) | Self::Object(_) | Self::Dictionary(_) | Self::Free(_))
    }

    /// Parses the text of a number or Boolean field; `None` for other kinds, and if it does not parse.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        match self {
            // A template renders a Boolean in Python's form: True, False.
            Self::Flag => text.to_ascii_lowercase().parse::<bool>().ok().map(Value::Bool),
            Self::Integer(..) => text.parse::<i64>().ok().map(Value::from),
            // `Value::from` turns infinity and NaN into null, which is not a number.
            Self::Number(..) => text.parse::<f64>().ok().map(Value::from).filter(Value::is_number),
            _ => None,
        }
    }

    /// Whether the value itself is allowed. Its elements and fields are checked separately.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Flag, Value::Bool(_)) | (Self::Text, Value::String(_)) => true,
            (Self::Url, Value::String(text)) => is_web_url(text),
            (Self::Choice(values), Value::String(text)) => values.contains(&text.as_str()),
            (Self::Integer(least, most), value) => {
                as_integer(value).is_some_and(|n| (i64::from(*least)..=i64::from(*most)).contains(&n))
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

/// Returns the length of a value as JSON text, in UTF-16 code units.
pub fn text_length(value: &Value) -> usize {
    value.to_string().encode_utf16().count()
}

fn is_web_url(text: &str) -> bool {
    address::unambiguous_path(text).is_some()
        || reqwest::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns a number without a fraction, which may be written as `3.0`.
pub(super) fn as_integer(value: &Value) -> Option<i64> {
    let float = || value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15).map(|n| n as i64);
    value.as_i64().or_else(float)
}
