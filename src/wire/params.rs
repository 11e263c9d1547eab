//! The parameters of a pre-recorded transcription, for both sides: the client sends them, the embedded service reads
//! them and repeats them in its records (interface, "Pre-recorded request parameters"). What each may hold is in
//! `parameter_table`, the objects below them in `configs`.

pub use super::configs::{
    AudioToLlmConfig, CallbackConfig, CallbackMethod, CodeSwitchingConfig, CustomSpellingConfig,
    CustomVocabularyConfig, DiarizationConfig, LanguageConfig, PiiRedactionConfig, RedactionMark,
    StructuredDataExtractionConfig, SubtitleFormat, SubtitleStyle, SubtitlesConfig, SummarizationConfig,
    TranslationConfig, Vocabulary,
};
use super::parameter_check::{Complaint, METADATA, PER_REQUEST_FIELDS, Side, inspect, normalize};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The parameters of a create request, and `request_params` of a record.
///
/// Every field is optional here, because a template sets no `audio_url`. [`Params::read`] checks what each side
/// requires. Absent parameters are not serialized.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names are the interface's own, described by wire/parameter_check.rs
pub struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_url: Option<String>,
    /// The name of a speech model; the interface does not list them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_config: Option<LanguageConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_vocabulary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_vocabulary_config: Option<CustomVocabularyConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_config: Option<CallbackConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles_config: Option<SubtitlesConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization_config: Option<DiarizationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation_config: Option<TranslationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarization: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarization_config: Option<SummarizationConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_entity_recognition: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_spelling: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_spelling_config: Option<CustomSpellingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentiment_analysis: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_to_llm: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_to_llm_config: Option<AudioToLlmConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pii_redaction: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pii_redaction_config: Option<PiiRedactionConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub punctuation_enhanced: Option<bool>,
    /// An object that the service returns unchanged and by which lists can be filtered; at most
    /// [`METADATA_LIMIT`](super::parameter_check::METADATA_LIMIT) long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_metadata: Option<Map<String, Value>>,

    // Older names that clients still send (interface "Versioning" 3, service-notes 4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detect_language: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_code_switching: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_switching_config: Option<CodeSwitchingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapterization: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_consistency: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker_reidentification: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_data_extraction: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_data_extraction_config: Option<StructuredDataExtractionConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_mode: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moderation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_enhancer: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accurate_words_timestamps: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization_enhanced: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_channel_deduplication: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages_guidance: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ParsedParams {
    /// The parameters, all within bounds.
    pub params: Params,
    /// The dotted paths of unknown keys that were ignored; empty for [`Side::Client`].
    pub ignored: Vec<String>,
}

impl Params {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// All errors, ordered by field name; at least one.
    pub fn read(value: &Value, side: Side) -> Result<ParsedParams, Vec<Complaint>> {
        Self::read_owned(value.clone(), side)
    }

    /// Like [`read`](Self::read), but takes the body.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_owned(mut value: Value, side: Side) -> Result<ParsedParams, Vec<Complaint>> {
        if side == Side::Server {
            normalize_spellings(&mut value);
        }
        let findings = inspect(&value, side, |_| false);
        if !findings.complaints.is_empty() {
            return Err(findings.complaints);
        }
        normalize(&mut value);
        match serde_json::from_value::<Self>(value) {
            Ok(params) => match params.check_combinations(side) {
                wrong if wrong.is_empty() => Ok(ParsedParams { params, ignored: findings.ignored }),
                wrong => Err(wrong),
            },
            // The table accepts what the types do not: a bug, but no reason to crash.
            Err(error) => Err(vec![Complaint::value("body", format!("must be valid: {error}"))]),
        }
    }

    /// Returns every value that is out of bounds in parameters that were built in code.
    pub fn check(&self) -> Vec<Complaint> {
        inspect(&self.to_value(), Side::Client, |_| false).complaints
    }

    /// Returns the text that the parameters' hash is computed from: canonical JSON (sorted keys, absent ones omitted)
    /// without what does not change the transcription, which is the audio's address, the metadata and the callback.
    /// `put` adds what is not a parameter of the interface and yet makes another purchase.
    pub fn canonical(&self, put: impl FnOnce(&mut Map<String, Value>)) -> Vec<u8> {
        let mut value = self.to_value();
        if let Value::Object(map) = &mut value {
            for key in PER_REQUEST_FIELDS.into_iter().chain([METADATA]) {
                map.remove(key);
            }
            put(map);
        }
        let mut text = Vec::new();
        write_sorted(&value, &mut text);
        text
    }

    /// Returns errors in combinations of values that are allowed one by one. On the client side there are none, because
    /// missing values may still be added.
    fn check_combinations(&self, side: Side) -> Vec<Complaint> {
        let mut wrong = Vec::new();
        if side == Side::Client {
            return wrong;
        }
        let speakers = self.diarization_config.as_ref();
        if let Some((Some(least), Some(most))) = speakers.map(|config| (config.min_speakers, config.max_speakers))
            && least > most
        {
            wrong.push(Complaint::value("diarization_config.max_speakers", format!("must be at least {least}")));
        }
        let cues = self.subtitles_config.as_ref();
        if let Some((Some(least), Some(most))) = cues.map(|config| (config.minimum_duration, config.maximum_duration))
            && least > most
        {
            wrong.push(Complaint::value("subtitles_config.maximum_duration", format!("must be at least {least}")));
        }
        wrong
    }

    /// Returns the parameters to store, as JSON: as given, with the current names added. The metadata is stored
    /// separately.
    ///
    /// # Errors
    /// A failed serialization, which no parameters cause.
    pub fn into_stored(mut self) -> serde_json::Result<Box<RawValue>> {
        self.custom_metadata = None;
        let (languages, switching) = (self.languages().to_vec(), self.code_switching());
        let language = self.language_config.get_or_insert_default();
        language.languages.get_or_insert(languages);
        language.code_switching.get_or_insert(switching);
        serde_json::value::to_raw_value(&self)
    }

    /// Returns the requested languages, under the current name or an older one.
    pub fn languages(&self) -> &[String] {
        let present = self.language_config.as_ref().and_then(|config| config.languages.as_deref());
        let switching = self.code_switching_config.as_ref().and_then(|config| config.languages.as_deref());
        let single = self.language.as_ref().map(std::slice::from_ref);
        let guidance = self.languages_guidance.as_deref();
        [present, single, switching, guidance].into_iter().flatten().find(|list| !list.is_empty()).unwrap_or_default()
    }

    /// Whether the language may change within the recording, under the current name or an older one.
    pub fn code_switching(&self) -> bool {
        let present = self.language_config.as_ref().and_then(|config| config.code_switching);
        present.or(self.enable_code_switching).unwrap_or(false)
    }

    /// These parameters as JSON.
    pub(crate) fn to_value(&self) -> Value {
        // Only a map with keys that are not strings could fail, and there is none.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Converts spellings that clients are known to send into those of the interface (service-notes 4): a vocabulary in
/// place of its toggle, and one PII entity in place of a list.
fn normalize_spellings(value: &mut Value) {
    let Value::Object(map) = value else { return };
    if let Some(words @ Value::Array(_)) = map.get("custom_vocabulary").cloned() {
        map.insert("custom_vocabulary".to_owned(), Value::Bool(true));
        let config = map.entry("custom_vocabulary_config").or_insert(Value::Null);
        if config.is_null() {
            *config = serde_json::json!({ "vocabulary": words });
        }
    }
    let entities = map.get_mut("pii_redaction_config").and_then(|config| config.get_mut("entity_types"));
    if let Some(entity) = entities.filter(|entities| entities.is_string()) {
        *entity = Value::Array(vec![entity.take()]);
    }
}

/// Writes JSON with sorted keys, whatever the order of the map: if a dependency enables serde_json's `preserve_order`
/// for the whole build, hashes must not change.
fn write_sorted(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            write_list(b"{}", sorted.into_iter(), out, |(key, inner), out| {
                out.extend(Value::from(key.as_str()).to_string().bytes());
                out.push(b':');
                write_sorted(inner, out);
            });
        }
        Value::Array(list) => write_list(b"[]", list.iter(), out, write_sorted),
        plain => out.extend(plain.to_string().bytes()),
    }
}

fn write_list<T>(ends: &[u8; 2], list: impl Iterator<Item = T>, out: &mut Vec<u8>, write: impl Fn(T, &mut Vec<u8>)) {
    out.push(ends[0]);
    for (number, element) in list.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(element, out);
    }
    out.push(ends[1]);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::parameter_check::coerce;
    use crate::wire::published;
    use proptest::prelude::*;
    use serde_json::json;

    fn words(complaints: &[Complaint]) -> Vec<String> {
        complaints.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_wrong_at_once() {
        let body = json!({
            "diarisation": true,
            "diarization": "yes",
            "language_config": { "languages": ["en", "xx"], "code_switch": true },
            "subtitles_config": { "formats": [], "maximum_duration": 31, "maximum_rows_per_caption": 2.5 },
            "custom_vocabulary_config": { "vocabulary": ["ok", { "intensity": 2 }, 3] },
            "translation_config": { "model": "huge" },
            "callback_config": { "url": "ftp://x", "method": "GET" },
            "custom_metadata": { "long": "x".repeat(2_000) },
        });
        let complaints = Params::read(&body, Side::Client).unwrap_err();
        let mut told = words(&complaints);
        told.iter_mut().for_each(|line| line.truncate(90));
        insta::assert_snapshot!(told.join("\n"), @r#"
        callback_config.method must be one of: POST, PUT
        callback_config.url must be an http or https URL
        custom_metadata must be an object of at most 2000 characters as JSON
        custom_vocabulary_config.vocabulary.1.intensity must be a number from 0 to 1
        custom_vocabulary_config.vocabulary.1.value must be given, and must be a string
        custom_vocabulary_config.vocabulary.2 must be a string or an object
        diarisation must not be given: the interface has no such parameter
        diarization must be true or false
        language_config.code_switch must not be given: the interface has no such parameter
        language_config.languages.1 must be one of: af, am, ar, as, az, ba, be, bg, bn, bo, br, bs
        subtitles_config.formats must be an array of at least 1 element
        subtitles_config.maximum_duration must be a number from 1 to 30
        subtitles_config.maximum_rows_per_caption must be an integer from 1 to 5
        translation_config.model must be one of: base, enhanced, batch
        translation_config.target_languages must be given, and must be an array of at least 1 elem
        "#);
    }

    #[test]
    fn a_server_passes_over_what_it_does_not_know() {
        let body = json!({ "audio_url": "https://x.example/a", "wings": 2, "language_config": { "tail": 1 },
            "diarization": null, "subtitles_config": { "maximum_rows_per_caption": 2.0 } });
        let reading = Params::read(&body, Side::Server).unwrap();
        assert_eq!(reading.ignored, ["language_config.tail", "wings"]);
        assert_eq!(reading.params.diarization, None);
        assert_eq!(reading.params.subtitles_config.unwrap().maximum_rows_per_caption, Some(2));
    }

    #[test]
    fn a_server_needs_an_audio_url() {
        let complaints = Params::read(&json!({}), Side::Server).unwrap_err();
        assert_eq!(words(&complaints), ["audio_url must be given, and must be an http or https URL"]);
        let complaints = Params::read(&json!([]), Side::Server).unwrap_err();
        assert_eq!(words(&complaints), ["body must be an object"]);
    }

    #[test]
    fn a_server_understands_older_spellings() {
        let body = json!({ "audio_url": "https://x.example/a", "custom_vocabulary": ["Kubernetes"],
            "pii_redaction_config": { "entity_types": "NAME" }, "language": "fr", "enable_code_switching": true });
        let params = Params::read(&body, Side::Server).unwrap().params;
        assert_eq!(params.custom_vocabulary, Some(true));
        assert_eq!(params.custom_vocabulary_config.as_ref().unwrap().vocabulary[0].value, "Kubernetes");
        assert_eq!(params.pii_redaction_config.as_ref().unwrap().entity_types, Some(vec!["NAME".to_owned()]));
        assert_eq!(params.languages(), ["fr"]);
        assert!(params.code_switching());
    }

    #[test]
    fn text_in_a_number_or_boolean_field_is_parsed() {
        let mut value = json!({ "diarization": "true", "diarization_config": { "max_speakers": " 3 " },
            "custom_vocabulary_config": { "vocabulary": [{ "value": "3", "intensity": "0.5" }] },
            "sentences": "maybe", "custom_metadata": { "n": "3" } });
        coerce(&mut value);
        assert_eq!(value["diarization"], json!(true));
        assert_eq!(value["diarization_config"]["max_speakers"], json!(3));
        assert_eq!(value["custom_vocabulary_config"]["vocabulary"][0], json!({ "value": "3", "intensity": 0.5 }));
        assert_eq!(value["custom_metadata"]["n"], json!("3"));
        let complaints = Params::read(&value, Side::Client).unwrap_err();
        assert_eq!(words(&complaints), ["sentences must be true or false"]);
    }

    #[test]
    fn what_makes_no_sense_together_is_told_at_once() {
        let body = json!({ "audio_url": "https://x.example/a",
            "diarization_config": { "min_speakers": 3, "max_speakers": 2 },
            "subtitles_config": { "minimum_duration": 5, "maximum_duration": 2 } });
        insta::assert_snapshot!(words(&Params::read(&body, Side::Server).unwrap_err()).join("\n"), @r"
        diarization_config.max_speakers must be at least 3
        subtitles_config.maximum_duration must be at least 5
        ");
    }

    #[test]
    fn an_echo_has_the_defaults_and_what_older_names_say() {
        let body = json!({ "audio_url": "https://x.example/a", "language": "en", "enable_code_switching": true,
            "subtitles": true, "translation_config": { "target_languages": ["fr"] }, "custom_metadata": { "a": 1 } });
        let kept = Params::read(&body, Side::Server).unwrap().params.into_stored().unwrap();
        let echo = published::with_defaults(&serde_json::from_str(kept.get()).unwrap());
        assert_eq!(published::with_defaults(&echo), echo);
        assert_eq!(echo["language_config"], json!({ "languages": ["en"], "code_switching": true }));
        assert_eq!(echo["language"], "en");
        assert_eq!(echo["subtitles_config"], json!({ "formats": ["srt"], "style": "default" }));
        assert_eq!(echo["translation_config"]["lipsync"], true);
        assert_eq!((&echo["sentences"], echo.get("custom_metadata")), (&json!(false), None));
        assert_eq!(echo.get("callback_config"), None, "a URL is not made up");
    }

    /// Stored tokens contain a hash of this text: it must never change for existing parameters.
    #[test]
    fn the_canonical_form_is_pinned() {
        let body = json!({ "audio_url": "https://x.example/a", "diarization": true, "callback": true,
            "custom_metadata": { "a": 1 }, "language_config": { "languages": ["en"], "code_switching": false },
            "custom_vocabulary_config": { "vocabulary": ["\"q\"", { "value": "b", "intensity": 1 }] } });
        let params = Params::read(&body, Side::Client).unwrap().params;
        let text = String::from_utf8(params.canonical(|_| {})).unwrap();
        insta::assert_snapshot!(text, @r#"{"custom_vocabulary_config":{"vocabulary":["\"q\"",{"intensity":1.0,"value":"b"}]},"diarization":true,"language_config":{"code_switching":false,"languages":["en"]}}"#);
        assert_eq!(Params::default().canonical(|_| {}), b"{}");
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let names = prop::sample::select(vec![
            "audio_url",
            "language_config",
            "languages",
            "custom_vocabulary",
            "custom_vocabulary_config",
            "vocabulary",
            "value",
            "intensity",
            "subtitles_config",
            "formats",
            "maximum_rows_per_caption",
            "translation_config",
            "target_languages",
            "custom_spelling_config",
            "spelling_dictionary",
            "pii_redaction_config",
            "entity_types",
            "diarization",
            "custom_metadata",
            "other",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-3_i64..40).prop_map(Value::from),
            prop::sample::select(vec!["en", "srt", "NAME", "true", "3", "https://x.example"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|map| Value::from(Map::from_iter(map))),
            ]
        })
    }

    proptest! {
        /// Whatever is received, the types accept what the table accepts, on both sides.
        #[test]
        fn what_the_table_takes_the_types_take(value in any_json()) {
            for side in [Side::Client, Side::Server] {
                if let Err(complaints) = Params::read(&value, side) {
                    prop_assert!(!words(&complaints).iter().any(|line| line.contains("must be valid")));
                }
            }
        }

        /// Parameters that were read can be read again with the same result.
        #[test]
        fn reading_is_stable(value in any_json()) {
            if let Ok(reading) = Params::read(&value, Side::Client) {
                prop_assert_eq!(reading.params.check(), vec![]);
                let again = Params::read(&reading.params.to_value(), Side::Client).unwrap();
                prop_assert_eq!(again.params.canonical(|_| {}), reading.params.canonical(|_| {}));
            }
        }
    }
}
