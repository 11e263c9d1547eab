//! What this build of the service does of what can be requested, and what it does not. The create is checked with
//! it, results are made with it, and `scribed check` and `scribed plan` say beforehand what it comes to.
//!
//! An enrichment that is not done says so in its own envelope; there is never a made-up result.

use crate::domain::missing::{Enrichment, MissingPart};
use crate::wire::enrichment::{Either, Enrichments, Envelope, EnvelopeError, Sentiments, Shapes};
use crate::wire::params::Params;
use serde_json::Value;

/// What becomes of an enrichment that is requested here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ability {
    /// It is done.
    Done,
    /// It is done into the language that is spoken, and into no other.
    OnlySpoken,
    /// The transcription ends without it.
    LeftOut,
    /// The request is refused: the rest alone would do harm.
    Refused,
}

fn ability(enrichment: Enrichment) -> Ability {
    use Enrichment as E;
    match enrichment {
        E::CustomSpelling | E::CustomVocabulary | E::PunctuationEnhanced | E::Recognition | E::Sentences => {
            Ability::Done
        }
        E::Translation => Ability::OnlySpoken,
        // What was to be hidden would be shown.
        E::PiiRedaction => Ability::Refused,
        E::AudioToLlm
        | E::Chapterization
        | E::Diarization
        | E::DisplayMode
        | E::Moderation
        | E::NameConsistency
        | E::NamedEntityRecognition
        | E::SentimentAnalysis
        | E::SpeakerReidentification
        | E::StructuredDataExtraction
        | E::Summarization => Ability::LeftOut,
    }
}

/// What a request comes to here, as far as it would not be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreseen {
    /// Why the create would be refused.
    pub refused: Vec<String>,
    /// What the result would lack.
    pub missing: Vec<MissingPart>,
}

impl Foreseen {
    /// Of a request, by a recogniser of these languages.
    pub fn of(request: &Params, languages: &[&str]) -> Self {
        let words = |part: &str| Some(not_done(part).message);
        let mut missing = Vec::new();
        for enrichment in request.requested() {
            let part = |language: Option<&str>| {
                let language = language.map(str::to_owned);
                let words = words(&untranslated_or(enrichment, language.as_deref()));
                MissingPart { enrichment, language, words }
            };
            match ability(enrichment) {
                Ability::LeftOut => missing.push(part(None)),
                Ability::OnlySpoken => {
                    let targets = request.targets().into_iter().filter(|target| !is_spoken(target, languages));
                    missing.extend(targets.map(|target| part(Some(target))));
                }
                Ability::Done | Ability::Refused => {}
            }
        }
        let unknown = unknown_languages(request, languages);
        let requested = |words: String| format!("{words} (requested: {})", unknown.join(", "));
        let other_language = (!unknown.is_empty()).then(|| requested(only_known(languages)));
        Self { refused: other_language.into_iter().chain(harmful(request)).collect(), missing }
    }
}

fn untranslated_or(enrichment: Enrichment, target: Option<&str>) -> String {
    match target {
        Some(target) => untranslated(target),
        None => enrichment.name().to_owned(),
    }
}

/// A translation into this language, as it is named where it is not done.
pub fn untranslated(target: &str) -> String {
    format!("translation into `{target}`")
}

/// Whether a text in these languages is its own translation into this one.
pub fn is_spoken<L: AsRef<str>>(target: &str, languages: &[L]) -> bool {
    matches!(languages, [only] if only.as_ref() == target)
}

/// What the interface allows and this build cannot do, where doing the rest would mislead: another
/// language would come out as English nonsense, and what was to be hidden would be shown.
pub fn refused(request: &Params, languages: &[&str]) -> Vec<String> {
    let is_other = !unknown_languages(request, languages).is_empty();
    is_other.then(|| only_known(languages)).into_iter().chain(harmful(request)).collect()
}

/// The requested languages that the recogniser does not know.
fn unknown_languages<'r>(request: &'r Params, languages: &[&str]) -> Vec<&'r str> {
    request.languages().iter().map(String::as_str).filter(|wanted| !languages.contains(wanted)).collect()
}

fn only_known(languages: &[&str]) -> String {
    format!("language_config.languages must only contain the following values: {}", languages.join(", "))
}

fn harmful(request: &Params) -> impl Iterator<Item = String> {
    let refused = request.requested().filter(|one| ability(*one) == Ability::Refused);
    refused.map(|one| match one {
        Enrichment::PiiRedaction => "pii_redaction must be false: this service cannot redact yet".to_owned(),
        other => format!("{} must be false: this service does not do it yet", other.name()),
    })
}

/// Why an enrichment is not done here.
pub fn not_done(name: &str) -> EnvelopeError {
    EnvelopeError {
        status_code: 501,
        exception: "NotImplemented".to_owned(),
        message: format!("this build of the service does not do {name} yet"),
    }
}

fn envelope<T>(request: &Params, enrichment: Enrichment) -> Option<Either<Envelope<T>>> {
    let is_left_out = request.requests(enrichment) && ability(enrichment) == Ability::LeftOut;
    is_left_out.then(|| Either::Known(Envelope::failed(not_done(enrichment.name()))))
}

/// The envelopes of what was asked for and is not done.
pub fn envelopes(params: &Params, shapes: Shapes) -> Enrichments {
    use Enrichment as E;
    let all = Enrichments {
        audio_to_llm: envelope(params, E::AudioToLlm),
        chapterization: envelope(params, E::Chapterization),
        diarization: envelope(params, E::Diarization),
        display_mode: envelope(params, E::DisplayMode),
        moderation: envelope(params, E::Moderation),
        name_consistency: envelope(params, E::NameConsistency),
        named_entity_recognition: envelope(params, E::NamedEntityRecognition),
        sentiment_analysis: envelope(params, E::SentimentAnalysis),
        speaker_reidentification: envelope(params, E::SpeakerReidentification),
        structured_data_extraction: envelope(params, E::StructuredDataExtraction),
        summarization: envelope(params, E::Summarization),
        ..Enrichments::default()
    };
    shaped(all, shapes)
}

fn shaped(mut all: Enrichments, shapes: Shapes) -> Enrichments {
    match shapes {
        // The one envelope with a payload of another name (interface, "Result object").
        Shapes::Interface => {
            if let Some(Either::Known(entities)) = &mut all.named_entity_recognition {
                entities.other.insert("entity".to_owned(), Value::Null);
            }
        }
        // Where the public service allows no null, its clients count on a text and a list.
        Shapes::Current => {
            if let Some(Either::Known(sentiments)) = &mut all.sentiment_analysis {
                sentiments.results = Some(Sentiments::Text(String::new()));
            }
            if let Some(Either::Known(speakers)) = &mut all.diarization {
                speakers.results = Some(Vec::new());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::missing::named;
    use crate::wire::delivered::Delivered;
    use serde_json::json;

    fn all() -> Params {
        let asked_for = Enrichment::ALL.iter().filter(|one| **one != Enrichment::Recognition);
        let toggles = asked_for.map(|one| (one.name().to_owned(), json!(true)));
        let config = ("translation_config".to_owned(), json!({ "target_languages": ["fr", "en"] }));
        Params::lenient(&Value::Object(toggles.chain([config]).collect()))
    }

    /// What is foreseen is what is found missing in the result.
    #[test]
    fn what_is_foreseen_comes_true() {
        let request = all();
        let foreseen = Foreseen::of(&request, &["en"]);
        for shapes in [Shapes::Interface, Shapes::Current] {
            let mut result = serde_json::to_value(envelopes(&request, shapes)).unwrap();
            let sentences: Envelope<Vec<&str>> = Envelope::done(vec!["Hello."], false, 0.0);
            result["sentences"] = json!(sentences);
            let french = json!({ "error": not_done(&untranslated("fr")), "languages": ["fr"], "full_transcript": "" });
            let english = json!({ "error": null, "languages": ["en"], "full_transcript": "hello" });
            let envelope: Envelope<Value> = Envelope::failed(not_done("translation"));
            result["translation"] = json!(Envelope { results: Some(json!([french, english])), ..envelope });
            result["transcription"] = json!({ "full_transcript": "hello", "utterances": [{ "text": "hello" }] });
            let delivered: Delivered = serde_json::from_value(result).unwrap();
            assert_eq!(delivered.missing(&request), foreseen.missing);
        }
        assert!(named(&foreseen.missing).ends_with("summarization, translation fr"));
        assert_eq!(foreseen.refused, ["pii_redaction must be false: this service cannot redact yet"]);
    }

    #[test]
    fn what_is_done_here_is_not_foreseen_to_be_missing() {
        let request = Params::lenient(&json!({
            "subtitles": true, "sentences": true, "punctuation_enhanced": true, "custom_vocabulary": true,
            "language": "en", "translation": true, "translation_config": { "target_languages": ["en"] },
        }));
        assert_eq!(Foreseen::of(&request, &["en"]), Foreseen::default());
        let request = Params::lenient(&json!({ "language_config": { "languages": ["en", "de"] } }));
        let only = "language_config.languages must only contain the following values: en";
        assert_eq!(refused(&request, &["en"]), [only]);
        assert_eq!(Foreseen::of(&request, &["en"]).refused, [format!("{only} (requested: de)")]);
    }
}
