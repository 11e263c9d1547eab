//! The objects that hold what belongs to one parameter: `subtitles_config` and the like (interface,
//! "Pre-recorded request parameters").

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which languages are spoken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LanguageConfig {
    /// Codes of `LANGUAGES`; absent or empty: the service detects the language.
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
    /// Required by the interface where the object is given.
    pub vocabulary: Vec<Vocabulary>,
    /// 0 to 1, for the words that give none of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_intensity: Option<f64>,
}

/// One expected word: on the wire a plain string, or an object where it says more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    /// As it should be written.
    pub value: String,
    /// How it may sound, spelt as said.
    pub pronunciations: Option<Vec<String>>,
    /// 0 to 1.
    pub intensity: Option<f64>,
    /// A code of `LANGUAGES`.
    pub language: Option<String>,
}

/// The object form, apart so that a string does not go through `untagged` and its poor messages.
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
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { value, pronunciations, intensity, language } = self.clone();
        if pronunciations.is_none() && intensity.is_none() && language.is_none() {
            return to.serialize_str(&value);
        }
        VocabularyObject { value, pronunciations, intensity, language }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(VocabularyVisitor)
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
        let from = serde::de::value::MapAccessDeserializer::new(map);
        let VocabularyObject { value, pronunciations, intensity, language } = VocabularyObject::deserialize(from)?;
        Ok(Vocabulary { value, pronunciations, intensity, language })
    }
}

/// Where the service calls back when the transcription ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallbackConfig {
    /// An http or https URL; required by the interface where the object is given.
    pub url: String,
    /// `POST` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<CallbackMethod>,
}

/// How the callback is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum CallbackMethod {
    #[default]
    Post,
    Put,
}

/// How subtitles are cut. Durations are seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubtitlesConfig {
    /// `srt` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<SubtitleFormat>>,
    /// Seconds, 0 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_duration: Option<f64>,
    /// Seconds, 1 to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_duration: Option<f64>,
    /// 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_characters_per_row: Option<u32>,
    /// 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_rows_per_caption: Option<u32>,
    /// `default` where absent.
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
    /// 1 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_speakers: Option<u32>,
    /// 0 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_speakers: Option<u32>,
    /// 0 or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_speakers: Option<u32>,
    /// An older name, still sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enhanced: Option<bool>,
}

/// Into which languages to translate, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranslationConfig {
    /// Codes of `TARGET_LANGUAGES`, at least one.
    pub target_languages: Vec<String>,
    /// `base` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<TranslationModel>,
    /// True where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_original_utterances: Option<bool>,
    /// True where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lipsync: Option<bool>,
    /// True where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_adaptation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// False where absent.
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

/// What kind of summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SummarizationConfig {
    /// `general` where absent.
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

/// Words to be written otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomSpellingConfig {
    /// The wanted spelling, and what it replaces (any case, one word or several).
    pub spelling_dictionary: BTreeMap<String, Vec<String>>,
}

/// Questions to a language model about the recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AudioToLlmConfig {
    /// At least one.
    pub prompts: Vec<String>,
    /// A language model by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What personal information is hidden, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PiiRedactionConfig {
    /// Values of `PII_ENTITIES`; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_types: Option<Vec<String>>,
    /// `MARKER` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processed_text_type: Option<RedactionMark>,
}

/// What stands in place of hidden text: `[NAME_1]` or `#### #####`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum RedactionMark {
    #[default]
    Marker,
    Mask,
}

/// An older place of the languages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeSwitchingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages: Option<Vec<String>>,
}

/// An older enrichment's settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StructuredDataExtractionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
}
