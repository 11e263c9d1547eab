//! Which of the parameters that can be requested this build of the service supports. Creates are checked with it,
//! results are made with it, and `scribed check` and `scribed plan` announce its effects.
//!
//! An enrichment that is not supported says so in its own envelope; no result is ever invented.

use crate::domain::missing_enrichment::{Enrichment, MissingPart};
use crate::server::language_model::enrich::{NOT_LOCAL, lacking};
use crate::server::recognition::recogniser::knows_language;
use crate::server::redaction::RedactionPlan;
use crate::server::translation::directions::Directions;
use crate::wire::enrichment::{Either, Enrichments, Envelope, EnvelopeError, Sentiments, Shapes};
use crate::wire::params::Params;
use crate::wire::published;
use crate::wire::result::ParameterWithoutEffect;
use serde_json::Value;
use std::fmt;

/// What the service does with a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    Done,
    /// It is supported as far as this text says.
    InPart(&'static str),
    /// It is a translation: supported only into the language that is spoken.
    OnlySpoken,
    /// It is supported for English speech, as far as this text says.
    OnlyEnglish(&'static str),
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// The transcription ends without it.
    LeftOut,
    /// It is a redaction: supported for the entity types that rules find. A request for others alone is refused, because
    /// the rest would do harm.
    OnlyFound,
    /// It configures this toggle, and does nothing if the toggle is off.
    With(&'static str),
}

const ONLY_MARKED: Ability =
    Ability::InPart("speech in another language than English is marked as not understood, and not recognised");
const ENTITIES_BY_RULES: Ability =
    Ability::InPart("patterns and word lists find them; organizations, products and events are not looked for");
const SENTIMENT_BY_WORDS: Ability =
    Ability::InPart("the words of an utterance decide, in English alone; emotions are not told");
const SUMMARY_BY_SELECTION: Ability =
    Ability::OnlyEnglish("it consists of selected utterances, in English alone; nothing is rephrased");
const CHAPTERS_BY_WORDS: Ability = Ability::OnlyEnglish(
    "they begin where the words change, in English alone; their headlines are keywords, without gist and summary",
);
const SAME_WEIGHT: Ability = Ability::InPart("above 0 all words weigh the same");
const NO_TRANSLATION: Ability =
    Ability::NoEffect("a text is only its own translation, into the language that is spoken");

const ONE_DIARIZATION: Ability = Ability::NoEffect("speakers are told apart in the same way, whether it is on or not");

/// What the service does with each parameter of a create, in the order of the interface's table, with the recogniser that
/// is built in and without a language model.
pub const PARAMETERS: [(&str, Ability); 79] = {
    use Ability::{Done, InPart, LeftOut, NoEffect, OnlyFound, OnlySpoken, With};
    [
        ("audio_url", Done),
        ("model", InPart("no recogniser is configured under this name: the default one is used")),
        ("language_config", Done),
        ("language_config.languages", Done),
        ("language_config.code_switching", ONLY_MARKED),
        ("custom_vocabulary", Done),
        ("custom_vocabulary_config", With("custom_vocabulary")),
        ("custom_vocabulary_config.vocabulary", With("custom_vocabulary")),
        ("custom_vocabulary_config.vocabulary[].value", With("custom_vocabulary")),
        ("custom_vocabulary_config.vocabulary[].pronunciations", With("custom_vocabulary")),
        ("custom_vocabulary_config.vocabulary[].intensity", SAME_WEIGHT),
        ("custom_vocabulary_config.vocabulary[].language", NoEffect("words are learnt with English sounds")),
        ("custom_vocabulary_config.default_intensity", SAME_WEIGHT),
        ("callback", Done),
        ("callback_url", Done),
        ("callback_config", Done),
        ("callback_config.url", Done),
        ("callback_config.method", Done),
        ("subtitles", Done),
        ("subtitles_config", Done),
        ("subtitles_config.formats", Done),
        ("subtitles_config.minimum_duration", Done),
        ("subtitles_config.maximum_duration", Done),
        ("subtitles_config.maximum_characters_per_row", Done),
        ("subtitles_config.maximum_rows_per_caption", Done),
        ("subtitles_config.style", Done),
        ("diarization", Done),
        ("diarization_config", With("diarization")),
        ("diarization_config.number_of_speakers", With("diarization")),
        ("diarization_config.min_speakers", With("diarization")),
        ("diarization_config.max_speakers", With("diarization")),
        ("diarization_config.enhanced", ONE_DIARIZATION),
        ("translation", OnlySpoken),
        ("translation_config", With("translation")),
        ("translation_config.target_languages", With("translation")),
        ("translation_config.model", NO_TRANSLATION),
        ("translation_config.match_original_utterances", NO_TRANSLATION),
        ("translation_config.lipsync", NO_TRANSLATION),
        ("translation_config.context_adaptation", NO_TRANSLATION),
        ("translation_config.context", NO_TRANSLATION),
        ("translation_config.informal", NO_TRANSLATION),
        ("summarization", SUMMARY_BY_SELECTION),
        ("summarization_config", With("summarization")),
        ("summarization_config.type", With("summarization")),
        ("named_entity_recognition", ENTITIES_BY_RULES),
        ("custom_spelling", Done),
        ("custom_spelling_config", With("custom_spelling")),
        ("custom_spelling_config.spelling_dictionary", With("custom_spelling")),
        ("sentiment_analysis", SENTIMENT_BY_WORDS),
        ("audio_to_llm", LeftOut),
        ("audio_to_llm_config", With("audio_to_llm")),
        ("audio_to_llm_config.prompts", With("audio_to_llm")),
        ("audio_to_llm_config.model", With("audio_to_llm")),
        ("pii_redaction", OnlyFound),
        ("pii_redaction_config", With("pii_redaction")),
        ("pii_redaction_config.entity_types", With("pii_redaction")),
        ("pii_redaction_config.processed_text_type", With("pii_redaction")),
        ("sentences", Done),
        ("punctuation_enhanced", Done),
        ("custom_metadata", Done),
        ("detect_language", ONLY_MARKED),
        ("enable_code_switching", ONLY_MARKED),
        ("code_switching_config", Done),
        ("code_switching_config.languages", Done),
        ("language", Done),
        ("context_prompt", InPart("the recogniser `pocketsphinx` takes no prompt")),
        ("chapterization", CHAPTERS_BY_WORDS),
        ("name_consistency", LeftOut),
        ("speaker_reidentification", LeftOut),
        ("structured_data_extraction", LeftOut),
        ("structured_data_extraction_config", With("structured_data_extraction")),
        ("structured_data_extraction_config.classes", With("structured_data_extraction")),
        ("display_mode", LeftOut),
        ("moderation", LeftOut),
        ("audio_enhancer", NoEffect("the sound is recognised as it is")),
        (
            "accurate_words_timestamps",
            NoEffect("the times of words are those of the recogniser, whether it is on or not"),
        ),
        ("diarization_enhanced", ONE_DIARIZATION),
        ("skip_channel_deduplication", Done),
        ("languages_guidance", Done),
    ]
};

/// What the service does with the parameters of a translation that Apertium makes.
pub const WITH_APERTIUM: [(&str, Ability); 6] = {
    use Ability::NoEffect;
    [
        ("translation_config.model", NoEffect("Apertium translates")),
        (
            "translation_config.match_original_utterances",
            NoEffect("a translation has the utterances of the original, whether it is on or not"),
        ),
        (LIPSYNC, NoEffect("translations are not fitted to the movements of lips")),
        ("translation_config.context_adaptation", NoEffect(NO_CONTEXT)),
        ("translation_config.context", NoEffect(NO_CONTEXT)),
        ("translation_config.informal", NoEffect("Apertium translates each form of address by its rules")),
    ]
};

const NO_CONTEXT: &str = "Apertium translates each sentence by itself, without a context";

/// The object's member that names the languages.
const TARGETS: &str = "translation_config.target_languages";

/// What the service does with those parameters with which a language model does more.
pub const WITH_LANGUAGE_MODEL: [(&str, Ability); 18] = {
    use Ability::{Done, InPart, NoEffect, With};
    [
        ("translation", Done),
        ("translation_config.model", NoEffect("the language model of the service translates")),
        (
            "translation_config.match_original_utterances",
            NoEffect("a translation has the utterances of the original, whether it is on or not"),
        ),
        (LIPSYNC, NoEffect("translations are not fitted to the movements of lips")),
        ("translation_config.context_adaptation", With("translation")),
        ("translation_config.context", With("translation")),
        ("translation_config.informal", With("translation")),
        ("summarization", Done),
        ("named_entity_recognition", Done),
        ("sentiment_analysis", Done),
        ("audio_to_llm", Done),
        ("audio_to_llm_config.model", NoEffect("the language model of the service answers")),
        ("chapterization", Done),
        (
            "name_consistency",
            InPart("names that are written in several ways are listed; the transcript keeps them as they are"),
        ),
        ("speaker_reidentification", InPart("speakers get the names that are said in the recording")),
        ("structured_data_extraction", Done),
        ("display_mode", Done),
        ("moderation", Done),
    ]
};

/// It is on unless a request turns it off, so that every translation requests it.
const LIPSYNC: &str = "translation_config.lipsync";

/// Writes the word that the published page uses.
impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::InPart(_) | Self::OnlyEnglish(_) | Self::OnlyFound | Self::OnlySpoken => f.write_str("in part"),
            Self::NoEffect(_) => f.write_str("no effect"),
            Self::LeftOut => f.write_str("left out"),
            Self::With(toggle) => write!(f, "as `{toggle}`"),
        }
    }
}

/// What is known of a recogniser without opening it.
#[derive(Debug, Clone, Copy)]
pub struct RecogniserTraits<'r> {
    /// The languages that it recognises; empty for any.
    pub languages: &'r [&'r str],
    /// Whether it is the one that is built in.
    pub is_built_in: bool,
    /// Whether the request names it.
    pub is_named: bool,
}

impl RecogniserTraits<'_> {
    /// Returns what this recogniser does with a parameter. [`PARAMETERS`] has what the built-in one does.
    fn ability(&self, path: &str, usual: Ability) -> Ability {
        match path {
            "model" if self.is_named => Ability::Done,
            _ if self.is_built_in => usual,
            "context_prompt" | "detect_language" => Ability::Done,
            "language_config.code_switching" | "enable_code_switching" => {
                Ability::InPart("one language is found for each stretch of some minutes")
            }
            "custom_vocabulary_config.vocabulary[].pronunciations" => {
                Ability::NoEffect("the recogniser gets the words, not their sounds")
            }
            "custom_vocabulary_config.vocabulary[].language" => {
                Ability::NoEffect("the recogniser gets the words alone")
            }
            _ => usual,
        }
    }
}

/// Whether a language model makes enrichments for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanguageModelUse {
    /// The service has none.
    Absent,
    /// The transcript must not be sent to it.
    NotLocal,
    Used,
}

impl LanguageModelUse {
    /// `is_local` says whether the language model of the service is local, if there is one.
    pub fn of(is_local: Option<bool>, is_local_only: bool) -> Self {
        match is_local {
            None => Self::Absent,
            Some(false) if is_local_only => Self::NotLocal,
            Some(_) => Self::Used,
        }
    }
}

/// What is known of the service that a request is for.
#[derive(Debug, Clone, Copy)]
pub struct ServiceTraits<'r> {
    pub recogniser: RecogniserTraits<'r>,
    pub language_model: LanguageModelUse,
    /// What Apertium translates, if it is there.
    pub directions: Option<&'r Directions>,
}

impl ServiceTraits<'_> {
    /// Returns what the service does with a parameter of this request.
    fn ability(&self, request: &Params, path: &str, usual: Ability) -> Ability {
        match (self.language_model, with_language_model(path)) {
            (LanguageModelUse::Used, Some(ability)) => ability,
            _ => self.with_apertium(request, path).unwrap_or_else(|| self.recogniser.ability(path, usual)),
        }
    }

    /// Returns what is done with a parameter of a translation, if Apertium makes one.
    fn with_apertium(&self, request: &Params, path: &str) -> Option<Ability> {
        let (_, ability) = WITH_APERTIUM.iter().find(|(known, _)| *known == path)?;
        let spoken = self.spoken(request);
        let mut targets = request.target_languages().into_iter().filter(|target| !is_own_language(target, &spoken));
        targets.any(|target| self.translates(&spoken, target)).then_some(*ability)
    }

    /// Returns the languages that may be spoken; none if nothing is known of them.
    fn spoken<'s>(&'s self, request: &'s Params) -> Vec<&'s str> {
        // Of several languages it is not known which one is spoken, unless the request says so.
        match request.languages() {
            [only] => vec![only.as_str()],
            _ => self.recogniser.languages.to_vec(),
        }
    }

    /// Whether Apertium translates speech in one of these languages into this one.
    fn translates(&self, spoken: &[&str], target: &str) -> bool {
        self.language_model != LanguageModelUse::Used
            && self.directions.is_some_and(|directions| directions.has_target(spoken, target))
    }

    /// Returns why some target languages are less than the request may expect.
    fn indirect(&self, request: &Params) -> Option<String> {
        let directions = self.directions.filter(|_| self.language_model != LanguageModelUse::Used)?;
        let spoken = self.spoken(request);
        let [only] = spoken[..] else { return None };
        let through = |target: &str| {
            let through = directions.route(only, target)?.through?;
            Some(format!("`{target}` is translated through `{through}`, with the errors of both translations"))
        };
        let all: Vec<String> = request.target_languages().into_iter().filter_map(through).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns what a request lacks, so that this enrichment cannot be made of it.
    fn lacking(&self, request: &Params, enrichment: Enrichment) -> Option<&'static str> {
        lacking(request, enrichment).filter(|_| self.language_model == LanguageModelUse::Used)
    }

    /// Returns the message of the envelope of a part that is left out.
    fn message(&self, enrichment: Enrichment, language: Option<&str>) -> String {
        match (self.directions, self.language_model, with_language_model(enrichment.name()), language) {
            (Some(_), _, _, Some(target)) => untranslatable_error(target).message,
            (_, LanguageModelUse::NotLocal, Some(_), _) => NOT_LOCAL.to_owned(),
            _ => unsupported_error(&untranslated_or(enrichment, language)).message,
        }
    }
}

fn with_language_model(path: &str) -> Option<Ability> {
    WITH_LANGUAGE_MODEL.iter().find(|(known, _)| *known == path).map(|(_, ability)| *ability)
}

fn ability_of(path: &str) -> Ability {
    PARAMETERS.iter().find(|(known, _)| *known == path).map_or(Ability::Done, |(_, ability)| *ability)
}

fn ability(enrichment: Enrichment) -> Ability {
    ability_of(enrichment.name())
}

/// A requested parameter that has no effect here, or less than its name promises.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ineffective {
    /// The dotted path; `[]` stands for the elements of a list.
    pub parameter: &'static str,
    pub why: String,
}

impl fmt::Display for Ineffective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.parameter, self.why)
    }
}

impl From<Ineffective> for ParameterWithoutEffect {
    fn from(Ineffective { parameter, why }: Ineffective) -> Self {
        Self { parameter: parameter.to_owned(), reason: why }
    }
}

/// The parts of a request that this build does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsupportedParts {
    /// The reasons why the create would be refused.
    pub refused: Vec<String>,
    /// The parts that the result would lack.
    pub missing: Vec<MissingPart>,
    /// The parameters that would be accepted, and change nothing or little.
    pub without_effect: Vec<Ineffective>,
}

impl UnsupportedParts {
    /// Checks a request against the service.
    pub fn check(request: &Params, service: ServiceTraits<'_>) -> Self {
        let languages = service.recogniser.languages;
        let spoken = service.spoken(request);
        let mut missing = Vec::new();
        for enrichment in request.requested() {
            let part = |language: Option<&str>| {
                let words = Some(service.message(enrichment, language));
                MissingPart { enrichment, language: language.map(str::to_owned), words }
            };
            if let Some(why) = service.lacking(request, enrichment) {
                missing.push(MissingPart { words: Some(why.to_owned()), ..part(None) });
                continue;
            }
            match service.ability(request, enrichment.name(), ability(enrichment)) {
                Ability::LeftOut => missing.push(part(None)),
                Ability::OnlyEnglish(_) => {
                    let is_other = matches!(spoken[..], [only] if only != "en");
                    let words = Some(not_english_error(enrichment.name()).message);
                    missing.extend(is_other.then_some(MissingPart { enrichment, language: None, words }));
                }
                Ability::OnlySpoken => {
                    let is_missing =
                        |target: &&str| !is_own_language(target, &spoken) && !service.translates(&spoken, target);
                    let targets = request.target_languages().into_iter().filter(is_missing);
                    missing.extend(targets.map(|target| part(Some(target))));
                }
                Ability::OnlyFound => {
                    let languages: Vec<&str> = if let [only] = spoken[..] { vec![only] } else { Vec::new() };
                    let words = RedactionPlan::of(request).and_then(|plan| plan.shortfall(languages));
                    missing.extend(words.map(|words| MissingPart { enrichment, language: None, words: Some(words) }));
                }
                Ability::Done | Ability::InPart(_) | Ability::NoEffect(_) | Ability::With(_) => {}
            }
        }
        let unknown = unknown_languages(request, languages);
        let requested = |words: String| format!("{words} (requested: {})", unknown.join(", "));
        let other_language = (!unknown.is_empty()).then(|| requested(only_known(languages)));
        let refused = other_language.into_iter().chain(RedactionPlan::refusal(request)).collect();
        Self { refused, missing, without_effect: without_effect(request, service) }
    }
}

/// Returns the requested parameters that change nothing or little. A value that is off, empty or the default requests
/// nothing.
fn without_effect(request: &Params, service: ServiceTraits<'_>) -> Vec<Ineffective> {
    let languages = service.recogniser.languages;
    let all = request.to_value();
    let is_on = |toggle: &str| all.get(toggle) == Some(&Value::Bool(true));
    let why = |path: &str, ability: Ability| match ability {
        Ability::NoEffect(why) | Ability::InPart(why) | Ability::OnlyEnglish(why) => Some(why.to_owned()),
        // For the object's members nothing more is reported.
        Ability::With(toggle) if !is_on(toggle) && !path.contains('.') => Some(format!("`{toggle}` is not on")),
        _ => None,
    };
    let is_requested = |path: &str| {
        // Naming the language that is recognised anyway requests nothing.
        let is_known =
            |value: &Value| path.ends_with(".language") && value.as_str().is_some_and(|one| languages.contains(&one));
        let is_made =
            service.language_model == LanguageModelUse::Used || service.with_apertium(request, LIPSYNC).is_some();
        let mut values = values(&all, path).into_iter();
        match path == LIPSYNC && is_made {
            true => values.any(|value| *value == Value::Bool(true)),
            false => values.any(|value| requests(value, published::default_of(path)) && !is_known(value)),
        }
    };
    // Members of an object whose toggle is off are reported with the object.
    let is_idle = |path: &str| {
        let object = path.split_once('.').map(|(object, _)| ability_of(object));
        matches!(object, Some(Ability::With(toggle)) if !is_on(toggle))
    };
    let one = |(parameter, ability): &(&'static str, Ability)| {
        let why = match *parameter {
            TARGETS => service.indirect(request)?,
            _ => why(parameter, service.ability(request, parameter, *ability))?,
        };
        (!is_idle(parameter) && is_requested(parameter)).then_some(Ineffective { parameter, why })
    };
    PARAMETERS.iter().filter_map(one).collect()
}

/// Returns the values at this path; where it goes through a list, those of all elements.
fn values<'v>(all: &'v Value, path: &str) -> Vec<&'v Value> {
    path.split('.').fold(vec![all], |found, key| {
        let inner = found.into_iter().filter_map(|value| value.get(key.trim_end_matches("[]")));
        match key.ends_with("[]") {
            true => inner.filter_map(Value::as_array).flatten().collect(),
            false => inner.collect(),
        }
    })
}

/// Whether this value requests more than the default does.
fn requests(value: &Value, default: &str) -> bool {
    let is_default = serde_json::from_str::<Value>(default).is_ok_and(|default| default == *value);
    !is_default
        && match value {
            Value::Null => false,
            // `false` requests something only where the default is `true`.
            Value::Bool(is_on) => *is_on || default == "true",
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
        }
}

fn untranslated_or(enrichment: Enrichment, target: Option<&str>) -> String {
    match target {
        Some(target) => translation_part(target),
        None => enrichment.name().to_owned(),
    }
}

/// Returns how a translation into this language is named in messages.
pub fn translation_part(target: &str) -> String {
    format!("translation into `{target}`")
}

/// Whether a text in these languages is its own translation into `target`.
pub fn is_own_language<L: AsRef<str>>(target: &str, languages: &[L]) -> bool {
    matches!(languages, [only] if only.as_ref() == target)
}

/// Returns the reasons to refuse a create that the interface allows, where doing the rest would mislead: another
/// language would be recognised as English nonsense, and text that should be redacted would be shown whole.
pub fn refusal_reasons(request: &Params, languages: &[&str]) -> Vec<String> {
    let is_other = !unknown_languages(request, languages).is_empty();
    is_other.then(|| only_known(languages)).into_iter().chain(RedactionPlan::refusal(request)).collect()
}

/// Returns the requested languages that the recogniser does not know.
fn unknown_languages<'r>(request: &'r Params, languages: &[&str]) -> Vec<&'r str> {
    request.languages().iter().map(String::as_str).filter(|wanted| !knows_language(languages, wanted)).collect()
}

fn only_known(languages: &[&str]) -> String {
    format!("language_config.languages must only contain the following values: {}", languages.join(", "))
}

/// Returns the error of an enrichment that is not supported.
pub fn unsupported_error(name: &str) -> EnvelopeError {
    not_implemented(match name.starts_with(Enrichment::Translation.name()) {
        true => format!(
            "{name} needs Apertium or a language model: install `apertium`, or configure [serve.language_model]"
        ),
        false => format!("{name} needs a language model: configure [serve.language_model]"),
    })
}

/// Returns the error of an enrichment that is made of English speech alone without a language model.
pub fn not_english_error(name: &str) -> EnvelopeError {
    not_implemented(format!(
        "without a language model, {name} is made of English speech only, where it was measured to be better than a \
         baseline: configure [serve.language_model]"
    ))
}

/// Returns the error of a target language into which Apertium does not translate what is spoken.
pub fn untranslatable_error(target: &str) -> EnvelopeError {
    not_implemented(format!(
        "no package of Apertium that is installed here translates what is spoken into `{target}`; install one that does \
         (`apt-cache search '^apertium-'`), or configure [serve.language_model]"
    ))
}

/// Returns the error of what is not implemented.
pub fn not_implemented(message: String) -> EnvelopeError {
    EnvelopeError { status_code: 501, exception: "NotImplemented".to_owned(), message }
}

fn envelope<T>(request: &Params, enrichment: Enrichment) -> Option<Either<Envelope<T>>> {
    let is_left_out = request.requests(enrichment) && ability(enrichment) == Ability::LeftOut;
    is_left_out.then(|| Either::Known(Envelope::failed(unsupported_error(enrichment.name()))))
}

/// Returns the envelopes of the requested enrichments that are not supported.
pub fn unsupported_envelopes(params: &Params) -> Enrichments {
    use Enrichment as E;
    Enrichments {
        audio_to_llm: envelope(params, E::AudioToLlm),
        display_mode: envelope(params, E::DisplayMode),
        moderation: envelope(params, E::Moderation),
        name_consistency: envelope(params, E::NameConsistency),
        speaker_reidentification: envelope(params, E::SpeakerReidentification),
        structured_data_extraction: envelope(params, E::StructuredDataExtraction),
        ..Enrichments::default()
    }
}

/// Gives the envelopes of enrichments that failed their shapes, where the interface and the public service differ.
pub fn with_failed_shapes(mut all: Enrichments, shapes: Shapes) -> Enrichments {
    match shapes {
        // This envelope has a payload of another name (interface, "Result object").
        Shapes::Interface => {
            if let Some(Either::Known(entities)) = &mut all.named_entity_recognition
                && !entities.success
            {
                entities.other.insert("entity".to_owned(), Value::Null);
            }
        }
        // The public service allows no null here; its clients expect a text and a list.
        Shapes::Current => {
            if let Some(Either::Known(sentiments)) = &mut all.sentiment_analysis
                && !sentiments.success
            {
                sentiments.results = Some(Sentiments::Text(String::new()));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::domain::missing_enrichment::join_names;
    use crate::domain::names::Timestamp;
    use crate::domain::transcript::{Transcript, Utterance, Word};
    use crate::server::language_model::enrich::ModelResults;
    use crate::server::recognition::result;
    use crate::server::recognition::result::{ResultCompletion, ResultFacts};
    use crate::server::recognition::transcribe::RecognisedSpeech;
    use crate::wire::result_completeness::Delivered;
    use serde_json::json;

    const BUILT_IN: ServiceTraits<'static> = ServiceTraits {
        recogniser: RecogniserTraits { languages: &["en"], is_built_in: true, is_named: false },
        language_model: LanguageModelUse::Absent,
        directions: None,
    };

    #[test]
    fn with_a_language_model_only_what_it_does_not_do_is_foreseen() {
        let with = |language_model| UnsupportedParts::check(&all(), ServiceTraits { language_model, ..BUILT_IN });
        let used = with(LanguageModelUse::Used);
        assert_eq!(join_names(&used.missing), "pii_redaction, structured_data_extraction", "no classes are named");
        let ineffective: Vec<&str> = used.without_effect.iter().map(|one| one.parameter).collect();
        assert_eq!(ineffective, ["name_consistency", "speaker_reidentification"]);
        let alone = Params::parse_lenient(&json!({ "speaker_reidentification": true }));
        let foreseen =
            UnsupportedParts::check(&alone, ServiceTraits { language_model: LanguageModelUse::Used, ..BUILT_IN });
        assert!(foreseen.missing[0].words.as_ref().unwrap().contains("`diarization` must be true"));
        let (absent, not_local) = (with(LanguageModelUse::Absent), with(LanguageModelUse::NotLocal));
        assert_eq!(join_names(&not_local.missing), join_names(&absent.missing));
        let is_local = |part: &&MissingPart| part.words.as_deref() == Some(NOT_LOCAL);
        let of_model = |part: &&MissingPart| part.enrichment != Enrichment::PiiRedaction;
        assert!(not_local.missing.iter().filter(of_model).all(|part| is_local(&part)));
        assert!(absent.missing.iter().all(|part| !is_local(&part)));
        let translated = json!({ "translation": true, "audio_to_llm": true, "translation_config": {
            "target_languages": ["fr"], "model": "enhanced", "lipsync": true, "context": "a talk", "informal": true,
            "match_original_utterances": false }, "audio_to_llm_config": { "prompts": ["Who?"], "model": "big" } });
        let service = ServiceTraits { language_model: LanguageModelUse::Used, ..BUILT_IN };
        let foreseen = UnsupportedParts::check(&Params::parse_lenient(&translated), service);
        let ineffective: Vec<&str> = foreseen.without_effect.iter().map(|one| one.parameter).collect();
        let expected = ["model", "match_original_utterances", "lipsync"].map(|one| format!("translation_config.{one}"));
        assert_eq!(ineffective[..3], expected);
        assert_eq!((ineffective[3], ineffective.len()), ("audio_to_llm_config.model", 4));
    }

    #[test]
    fn with_apertium_the_targets_that_it_lacks_and_those_behind_another_are_foreseen() {
        let directions = Directions::parse("eng-spa\nes-pt\nspa-eng\n");
        let with = |directions, language_model, languages: &[&str]| {
            let targets = ["es", "pt", "en", "yo"];
            let request = json!({ "translation": true, "language_config": { "languages": languages },
                "translation_config": { "target_languages": targets, "lipsync": true, "context": "a talk", "informal": true } });
            let service = ServiceTraits { directions, language_model, ..BUILT_IN };
            let foreseen = UnsupportedParts::check(&Params::parse_lenient(&request), service);
            let ineffective: Vec<String> = foreseen.without_effect.iter().map(ToString::to_string).collect();
            (join_names(&foreseen.missing), ineffective, foreseen.missing)
        };
        for use_of_model in [LanguageModelUse::Absent, LanguageModelUse::NotLocal] {
            let (names, ineffective, missing) = with(Some(&directions), use_of_model, &["en"]);
            assert_eq!(names, "translation yo");
            assert_eq!(missing[0].words, Some(untranslatable_error("yo").message));
            let expected = ["target_languages", "lipsync", "context", "informal"];
            assert!(ineffective.iter().zip(expected).all(|(one, name)| one.contains(name)), "{ineffective:?}");
            assert!(ineffective[0].contains("`pt` is translated through `es`") && ineffective.len() == 4);
        }
        assert_eq!(with(Some(&directions), LanguageModelUse::Used, &["en"]).0, "");
        let (names, ineffective, _) = with(None, LanguageModelUse::Absent, &["en"]);
        assert_eq!((names.as_str(), ineffective.len()), ("translation es, translation pt, translation yo", 2));
        let spanish = with(Some(&directions), LanguageModelUse::Absent, &["es"]);
        assert!(spanish.0 == "translation yo" && !spanish.1[0].contains("through"), "{spanish:?}");
    }

    #[test]
    fn what_is_made_of_english_alone_is_foreseen_to_be_missing_in_another_language() {
        let with = |language: &str, language_model| {
            let request = json!({ "summarization": true, "chapterization": true,
                "language_config": { "languages": [language] } });
            let recogniser = RecogniserTraits { languages: &[], is_built_in: false, is_named: false };
            let service = ServiceTraits { recogniser, language_model, ..BUILT_IN };
            let foreseen = UnsupportedParts::check(&Params::parse_lenient(&request), service);
            assert!(foreseen.missing.iter().all(|part| part.words.as_ref().is_some_and(|why| why.contains("English"))));
            (foreseen.missing.len(), foreseen.without_effect.len())
        };
        assert_eq!(with("en", LanguageModelUse::Absent), (0, 2));
        assert_eq!(with("de", LanguageModelUse::Absent).0, 2);
        assert_eq!(with("de", LanguageModelUse::NotLocal).0, 2);
        assert_eq!(with("de", LanguageModelUse::Used), (0, 0));
    }

    /// The third table has a reason of its own for what has no effect anyway.
    #[test]
    fn apertium_has_no_effect_that_is_not_in_the_first_table() {
        for (path, ability) in WITH_APERTIUM {
            assert!(matches!((ability, ability_of(path)), (Ability::NoEffect(_), Ability::NoEffect(_))), "{path}");
        }
    }

    #[test]
    fn a_transcript_that_must_stay_is_for_a_local_model_alone() {
        use LanguageModelUse as Use;
        let all = [(None, true), (Some(false), true), (Some(false), false), (Some(true), true)];
        let expected = [Use::Absent, Use::NotLocal, Use::Used, Use::Used];
        assert_eq!(all.map(|(is_local, is_local_only)| Use::of(is_local, is_local_only)), expected);
    }

    /// The enrichments of the second table are those of the first one that are otherwise left out.
    #[test]
    fn the_tables_name_the_same_parameters() {
        for (path, ability) in WITH_LANGUAGE_MODEL {
            let usual = PARAMETERS.iter().find(|(known, _)| *known == path).map(|(_, usual)| *usual);
            assert!(usual.is_some_and(|usual| usual != ability), "{path}");
        }
    }

    #[test]
    fn a_recogniser_that_is_named_takes_prompts_and_finds_languages() {
        let request = json!({ "model": "house", "context_prompt": "a talk", "detect_language": true,
            "language_config": { "languages": ["de"] }, "translation": true,
            "translation_config": { "target_languages": ["de"] }, "custom_vocabulary": true,
            "custom_vocabulary_config": { "vocabulary": [{ "value": "b", "pronunciations": ["bee"] }] } });
        let recogniser = RecogniserTraits { languages: &[], is_built_in: false, is_named: true };
        let house = ServiceTraits { recogniser, ..BUILT_IN };
        let foreseen = UnsupportedParts::check(&Params::parse_lenient(&request), house);
        assert_eq!((foreseen.refused.len(), foreseen.missing.len()), (0, 0), "{foreseen:?}");
        let ineffective: Vec<&str> = foreseen.without_effect.iter().map(|one| one.parameter).collect();
        assert_eq!(ineffective, ["custom_vocabulary_config.vocabulary[].pronunciations"]);
    }

    fn all() -> Params {
        let asked_for = Enrichment::ALL.iter().filter(|one| **one != Enrichment::Recognition);
        let toggles = asked_for.map(|one| (one.name().to_owned(), json!(true)));
        let config = ("translation_config".to_owned(), json!({ "target_languages": ["fr", "en"] }));
        Params::parse_lenient(&Value::Object(toggles.chain([config]).collect()))
    }

    /// The forecast equals what is found missing in the result.
    #[test]
    fn what_is_foreseen_comes_true() {
        let request = all();
        let foreseen = UnsupportedParts::check(&request, BUILT_IN);
        for shapes in [Shapes::Interface, Shapes::Current] {
            let mut result = serde_json::to_value(unsupported_envelopes(&request)).unwrap();
            result["named_entity_recognition"] = json!(shapes.entities(Vec::new(), 0.0));
            result["sentiment_analysis"] = json!(shapes.sentiments(Vec::new(), 0.0));
            result["chapterization"] = json!(shapes.chapters(Vec::<Value>::new(), 0.0));
            result["summarization"] = json!(Envelope::completed("hello", false, 0.0));
            let sentences: Envelope<Vec<&str>> = Envelope::completed(vec!["Hello."], false, 0.0);
            result["sentences"] = json!(sentences);
            let unredacted = RedactionPlan::of(&request).and_then(|plan| plan.shortfall([])).unwrap();
            let unredacted: Envelope<Value> = Envelope::failed(not_implemented(unredacted));
            result["pii_redaction"] = json!(unredacted);
            result["diarization"] = json!({ "success": true, "is_empty": false, "error": null, "results": [] });
            let french = json!({ "error": unsupported_error(&translation_part("fr")), "languages": ["fr"], "full_transcript": "" });
            let english = json!({ "error": null, "languages": ["en"], "full_transcript": "hello" });
            let envelope: Envelope<Value> = Envelope::failed(unsupported_error("translation"));
            result["translation"] = json!(Envelope { results: Some(json!([french, english])), ..envelope });
            let said = json!({ "text": "hello", "speaker": 0 });
            result["transcription"] = json!({ "full_transcript": "hello", "utterances": [said] });
            let delivered: Delivered = serde_json::from_value(result).unwrap();
            let parts = delivered.parts(&request);
            let missing: Vec<MissingPart> =
                parts.iter().filter_map(crate::domain::missing_enrichment::RequestedPart::as_missing).collect();
            assert_eq!(missing, foreseen.missing);
        }
        let names = join_names(&foreseen.missing);
        assert!(
            names.ends_with("structured_data_extraction, translation fr") && names.contains(", pii_redaction, "),
            "{names}"
        );
        assert!(foreseen.refused.is_empty());
    }

    /// The table names every parameter of the interface, in its order.
    #[test]
    fn every_parameter_is_in_the_table() {
        let known: Vec<String> = published::parameters().into_iter().map(|row| row.path).collect();
        assert_eq!(PARAMETERS.map(|(path, _)| path).to_vec(), known);
    }

    #[test]
    fn the_default_of_each_parameter_is_found_by_its_path() {
        for row in published::parameters() {
            assert_eq!(published::default_of(&row.path), row.default, "{}", row.path);
        }
        assert_eq!(published::default_of("translation_config.none.such"), "");
    }

    fn without_effect_of(request: &Value) -> Vec<String> {
        let foreseen = UnsupportedParts::check(&Params::parse_lenient(request), BUILT_IN);
        foreseen.without_effect.iter().map(|one| one.parameter.to_owned()).collect()
    }

    #[test]
    fn what_is_requested_without_effect_is_foreseen_with_its_reason() {
        let request = json!({
            "model": "solaria", "language_config": { "languages": ["en"], "code_switching": true },
            "detect_language": true, "audio_enhancer": true, "context_prompt": "a talk", "custom_vocabulary": true,
            "custom_vocabulary_config": { "vocabulary": ["a", { "value": "b", "language": "de", "intensity": 0.9 }] },
            "translation": true, "translation_config": { "target_languages": ["en"], "lipsync": false },
            "custom_spelling_config": { "spelling_dictionary": { "a": ["b"] } },
            "diarization_config": { "min_speakers": 2 }, "subtitles_config": { "maximum_rows_per_caption": 1 },
        });
        assert_eq!(
            without_effect_of(&request),
            [
                "model",
                "language_config.code_switching",
                "custom_vocabulary_config.vocabulary[].intensity",
                "custom_vocabulary_config.vocabulary[].language",
                "diarization_config",
                "translation_config.lipsync",
                "custom_spelling_config",
                "detect_language",
                "context_prompt",
                "audio_enhancer",
            ]
        );
        let foreseen = UnsupportedParts::check(
            &Params::parse_lenient(&json!({ "custom_spelling_config": { "spelling_dictionary": { "a": [] } } })),
            BUILT_IN,
        );
        assert_eq!(foreseen.without_effect[0].to_string(), "custom_spelling_config (`custom_spelling` is not on)");
    }

    #[test]
    fn what_is_off_or_the_default_requests_nothing_and_what_is_left_out_is_named_once() {
        let request = json!({
            "language_config": { "languages": [], "code_switching": false }, "detect_language": false, "context_prompt": "",
            "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": [{ "value": "b", "intensity": 0, "language": "en" }], "default_intensity": 0.5 },
            "translation": true, "translation_config": { "target_languages": ["en"], "lipsync": true, "model": "base" },
            "diarization": true, "diarization_config": { "min_speakers": 2 },
        });
        assert_eq!(without_effect_of(&request), Vec::<String>::new());
    }

    #[test]
    fn what_is_done_here_is_not_foreseen_to_be_missing() {
        let request = Params::parse_lenient(&json!({
            "subtitles": true, "sentences": true, "punctuation_enhanced": true, "custom_vocabulary": true,
            "language": "en", "translation": true, "translation_config": { "target_languages": ["en"] },
        }));
        assert_eq!(UnsupportedParts::check(&request, BUILT_IN), UnsupportedParts::default());
        let request = Params::parse_lenient(&json!({ "language_config": { "languages": ["en", "de"] } }));
        let only = "language_config.languages must only contain the following values: en";
        assert_eq!(refusal_reasons(&request, &["en"]), [only]);
        assert_eq!(UnsupportedParts::check(&request, BUILT_IN).refused, [format!("{only} (requested: de)")]);
    }

    /// The table is true: without the parameters that have no effect, the recogniser gets the same options, and the
    /// result is the same.
    #[test]
    fn what_has_no_effect_changes_no_result() {
        let with = json!({
            "model": "solaria", "custom_vocabulary": true,
            "custom_vocabulary_config": { "vocabulary": [{ "value": "Anna", "language": "de" }] },
            "subtitles": true, "sentences": true, "punctuation_enhanced": true, "translation": true,
            "translation_config": {
                "target_languages": ["en", "fr"], "model": "enhanced", "match_original_utterances": false, "lipsync": false,
                "context_adaptation": false, "context": "a talk", "informal": true,
            },
            "context_prompt": "a talk", "audio_enhancer": true, "accurate_words_timestamps": true,
            "diarization": true, "diarization_config": { "enhanced": true }, "diarization_enhanced": true,
        });
        let mut without = with.clone();
        for (path, ability) in PARAMETERS {
            if matches!(ability, Ability::NoEffect(_)) {
                assert!(!values(&with, path).is_empty(), "{path}");
                remove(&mut without, path);
            }
        }
        let [with, without] = [with, without].map(|request| Params::parse_lenient(&request));
        assert_ne!(with, without);
        assert_eq!(result::transcribe_options(&with).vocabulary, result::transcribe_options(&without).vocabulary);
        assert_eq!(result(with), result(without));
    }

    fn remove(all: &mut Value, path: &str) {
        match path.split_once('.') {
            None => drop(all.as_object_mut().unwrap().remove(path)),
            Some((key, rest)) => match key.strip_suffix("[]") {
                None => remove(&mut all[key], rest),
                Some(list) => all[list].as_array_mut().unwrap().iter_mut().for_each(|one| remove(one, rest)),
            },
        }
    }

    fn result(request: Params) -> Value {
        let word = |text: &str, start: f64| Word { text: text.to_owned(), start, end: start + 0.3, confidence: 0.9 };
        let words = vec![word("where", 0.0), word(" is", 0.4), word(" anna", 0.8)];
        let text = "where is anna".to_owned();
        let utterance = Utterance {
            text,
            start: 0.0,
            end: 1.1,
            confidence: 0.9,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words,
        };
        let transcript = Transcript { languages: vec!["en".to_owned()], utterances: vec![utterance] };
        let hearing = RecognisedSpeech { transcript, channels: 1, ..RecognisedSpeech::default() };
        let (created, ended) = (Timestamp(0), Timestamp(1_000));
        let without_effect = Vec::new();
        let facts = ResultFacts { audio_duration: 2.0, created, without_effect, shapes: Shapes::Interface };
        let completion = ResultCompletion { ended, model: ModelResults::default() };
        let mut written = Vec::new();
        let made = result::WrittenResult::from_speech(request, hearing, facts, &SystemClock);
        made.write(&completion, None, &mut written, &SystemClock).unwrap();
        let mut result: Value = serde_json::from_slice(&written).unwrap();
        for place in ["sentences", "translation"] {
            result[place]["exec_time"] = Value::Null;
        }
        result["transcription"]["sentences"][0]["exec_time"] = Value::Null;
        for translated in result["translation"]["results"].as_array_mut().unwrap() {
            translated["sentences"] = Value::Null;
        }
        result
    }
}
