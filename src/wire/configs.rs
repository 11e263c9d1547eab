//! The configuration objects of single parameters, such as `subtitles_config` (interface, "Pre-recorded request
//! parameters").

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The spoken languages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LanguageConfig {
    /// Codes from `LANGUAGES`. If absent or empty, the service detects the language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages: Option<Vec<String>>,
    /// Whether the language may change within the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_switching: Option<bool>,
}

/// Words that the recogniser should expect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomVocabularyConfig {
    /// The words; the interface requires them.
    pub vocabulary: Vec<Vocabulary>,
    /// From 0 to 1, for words without an intensity of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_intensity: Option<f64>,
}

/// One expected word: a plain string on the wire, or an object if it has more than the word.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    /// The spelling.
    pub value: String,
    /// Possible pronunciations, spelt as they sound.
    pub pronunciations: Option<Vec<String>>,
    /// From 0 to 1.
    pub intensity: Option<f64>,
    /// A code from `LANGUAGES`.
    pub language: Option<String>,
}

/// The object form. It is a type of its own because the messages of `untagged` are poor.
#[derive(Serialize, Deserialize)]
struct VocabularyObject {
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pronunciations: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intensity: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
}

impl Serialize for Vocabulary {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, pronunciations, intensity, language } = self.clone();
        if pronunciations.is_none() && intensity.is_none() && language.is_none() {
            return serializer.serialize_str(&value);
        }
        VocabularyObject { value, pronunciations, intensity, language }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabularyVisitor)
    }
}

struct VocabularyVisitor;

impl<'de> serde::de::Visitor<'de> for VocabularyVisitor {
    type Value = Vocabulary;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string or an object with `value`")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vocabulary, E> {
        Ok(Vocabulary { value: text.to_owned(), ..Vocabulary::default() })
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Vocabulary, A::Error> {
        let deserializer = serde::de::value::MapAccessDeserializer::new(map);
        let VocabularyObject { value, pronunciations, intensity, language } =
            VocabularyObject::deserialize(deserializer)?;
        Ok(Vocabulary { value, pronunciations, intensity, language })
    }
}

/// Where the service calls back when the transcription ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallbackConfig {
    /// An http or https URL; the interface requires it.
    pub url: String,
    /// `POST` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<CallbackMethod>,
}

/// The HTTP method of a callback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum CallbackMethod {
    #[default]
    Post,
    Put,
}

/// How subtitles are split. Durations are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubtitlesConfig {
    /// `srt` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<SubtitleFormat>>,
    /// In seconds, at least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_duration: Option<f64>,
    /// In seconds, from 1 to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_duration: Option<f64>,
    /// At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_characters_per_row: Option<u32>,
    /// From 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_rows_per_caption: Option<u32>,
    /// `default` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<SubtitleStyle>,
}

/// A subtitle file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SubtitleFormat {
    Srt,
    Vtt,
}

/// A subtitle style (service-notes 4: `compliance` is the plain SRT of the Library of Congress).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SubtitleStyle {
    #[default]
    Default,
    Compliance,
}

/// Hints on how many people speak.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiarizationConfig {
    /// At least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_speakers: Option<u32>,
    /// At least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_speakers: Option<u32>,
    /// At least 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_speakers: Option<u32>,
    /// An older parameter that some clients still send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<bool>,
}

/// The target languages of a translation, and how to translate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranslationConfig {
    /// Codes from `TARGET_LANGUAGES`, at least one.
    pub target_languages: Vec<String>,
    /// `base` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<TranslationModel>,
    /// True if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_original_utterances: Option<bool>,
    /// True if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lipsync: Option<bool>,
    /// True if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_adaptation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// False if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub informal: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TranslationModel {
    #[default]
    Base,
    Enhanced,
    Batch,
}

/// The kind of summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummarizationConfig {
    /// `general` if absent.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<SummaryType>,
}

/// A kind of summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum SummaryType {
    #[default]
    General,
    BulletPoints,
    Concise,
}

/// Words with a prescribed spelling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomSpellingConfig {
    /// Each spelling, with the words or phrases in any letter case that it replaces.
    pub spelling_dictionary: BTreeMap<String, Vec<String>>,
}

/// Prompts to a language model about the recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AudioToLlmConfig {
    /// The prompts, at least one.
    pub prompts: Vec<String>,
    /// The name of a language model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Which personal information is redacted, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PiiRedactionConfig {
    /// Values from `PII_ENTITIES`; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_types: Option<Vec<String>>,
    /// `MARKER` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_text_type: Option<RedactionMark>,
}

/// What replaces redacted text: `[NAME_1]` or `#### #####`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum RedactionMark {
    #[default]
    Marker,
    Mask,
}

/// An older form of the language settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeSwitchingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages: Option<Vec<String>>,
}

/// The settings of an older enrichment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StructuredDataExtractionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
}
