//! Which enrichments a request asks for.

use super::params::Params;
use crate::domain::missing_enrichment::Enrichment;
use serde_json::{Map, Value};

impl Params {
    /// Reads parameters from any JSON. Values that the types do not accept are left out, and so is `null` in a list.
    pub fn parse_lenient(value: &Value) -> Self {
        let fits = |name: &String, value: &Value| {
            let single = Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Self>(Value::Object(single)).is_ok()
        };
        let known = value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), without_nulls(value)));
        let accepted: Map<String, Value> = known.filter(|(name, value)| fits(name, value)).collect();
        serde_json::from_value(Value::Object(accepted)).unwrap_or_default()
    }

    /// Whether this enrichment is requested.
    pub fn requests(&self, enrichment: Enrichment) -> bool {
        use Enrichment as E;
        let toggle = match enrichment {
            E::AudioToLlm => self.audio_to_llm,
            E::Chapterization => self.chapterization,
            E::CustomSpelling => self.custom_spelling,
            E::CustomVocabulary => self.custom_vocabulary,
            E::Diarization => self.diarization,
            E::DisplayMode => self.display_mode,
            E::Moderation => self.moderation,
            E::NameConsistency => self.name_consistency,
            E::NamedEntityRecognition => self.named_entity_recognition,
            E::PiiRedaction => self.pii_redaction,
            E::PunctuationEnhanced => self.punctuation_enhanced,
            E::Recognition => None, // cannot be requested; a service may report it nevertheless
            E::Sentences => self.sentences,
            E::SentimentAnalysis => self.sentiment_analysis,
            E::SpeakerReidentification => self.speaker_reidentification,
            E::StructuredDataExtraction => self.structured_data_extraction,
            E::Summarization => self.summarization,
            E::Translation => self.translation,
        };
        toggle == Some(true)
    }

    /// Returns all requested enrichments.
    pub fn requested(&self) -> impl Iterator<Item = Enrichment> {
        Enrichment::ALL.into_iter().filter(|one| self.requests(*one))
    }

    /// Returns the target languages without duplicates; empty if no translation is requested.
    pub fn target_languages(&self) -> Vec<&str> {
        let config = self.translation_config.iter().filter(|_| self.requests(Enrichment::Translation));
        let mut targets: Vec<&str> = Vec::new();
        for target in config.flat_map(|config| &config.target_languages) {
            if !targets.contains(&target.as_str()) {
                targets.push(target);
            }
        }
        targets
    }

    /// Returns the prompts for a language model; empty if that is not requested.
    pub fn prompts(&self) -> &[String] {
        let config = self.audio_to_llm_config.as_ref().filter(|_| self.requests(Enrichment::AudioToLlm));
        config.map(|config| config.prompts.as_slice()).unwrap_or_default()
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().filter(|inner| !inner.is_null()).map(without_nulls).collect(),
        Value::Object(map) => {
            let known = map.iter().filter(|(_, inner)| !inner.is_null());
            known.map(|(key, inner)| (key.clone(), without_nulls(inner))).collect()
        }
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_enrichment_is_a_toggle_of_its_name() {
        for one in Enrichment::ALL.into_iter().filter(|one| *one != Enrichment::Recognition) {
            let params = Params::parse_lenient(&json!({ one.name(): true }));
            assert_eq!(params.requested().collect::<Vec<_>>(), [one]);
            assert_eq!(Params::parse_lenient(&json!({ one.name(): false })).requested().count(), 0);
        }
    }

    #[test]
    fn one_wrong_parameter_hides_no_other() {
        let params = Params::parse_lenient(&json!({
            "diarization": true, "summarization": "yes", "sentences": null, "unheard_of": [1], "language_config": 5,
            "translation": true, "translation_config": { "target_languages": ["fr", null, "de", "fr"], "model": "base" },
        }));
        assert_eq!(params.requested().collect::<Vec<_>>(), [Enrichment::Diarization, Enrichment::Translation]);
        assert_eq!(params.target_languages(), ["fr", "de"]);
        assert_eq!(Params::parse_lenient(&json!([1])), Params::default());
    }
}
