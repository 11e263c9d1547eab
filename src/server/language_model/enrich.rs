//! Makes every enrichment of a transcript that is requested and that a language model can make. Each has its own outcome:
//! one that fails costs only itself, and says why.

use super::client::LanguageModel;
use super::enrichments::{
    chapters, client_prompts, display, entities, moderation, names, sentiments, speakers, structured_data, summary,
    translation,
};
use super::lines::NumberedLines;
use super::model_error::ModelError;
use super::prompt::{AnswerShape, AnswerSize, Prompt};
use crate::clock::{Clock, Uptime};
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::transcript::{Transcript, Utterance};
use crate::server::recognition::unsupported::{is_own_language, with_failed_shapes};
use crate::server::translation::{MadeTranslation, TranslationResults};
use crate::wire::enrichment::{
    Answered, Either, Enrichments, Entity, Envelope, EnvelopeError, Sentiment, Sentiments, Shapes,
};
use crate::wire::params::Params;
use chapters::MadeChapter;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use std::collections::BTreeMap;

pub use super::model_error::NOT_LOCAL;

/// What enrichments are made of.
#[derive(Clone, Copy)]
pub struct ModelInput<'i> {
    pub params: &'i Params,
    pub transcript: &'i Transcript,
    pub shapes: Shapes,
}

/// What came of the enrichments that a language model makes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelResults {
    enrichments: Enrichments,
    pub translations: TranslationResults,
}

impl ModelResults {
    /// Returns the enrichments of a result: these, and of `others` those that are not among these.
    pub fn before(&self, others: Enrichments) -> Enrichments {
        let own = self.enrichments.clone();
        Enrichments {
            summarization: own.summarization.or(others.summarization),
            moderation: own.moderation.or(others.moderation),
            named_entity_recognition: own.named_entity_recognition.or(others.named_entity_recognition),
            name_consistency: own.name_consistency.or(others.name_consistency),
            speaker_reidentification: own.speaker_reidentification.or(others.speaker_reidentification),
            structured_data_extraction: own.structured_data_extraction.or(others.structured_data_extraction),
            sentiment_analysis: own.sentiment_analysis.or(others.sentiment_analysis),
            audio_to_llm: own.audio_to_llm.or(others.audio_to_llm),
            display_mode: own.display_mode.or(others.display_mode),
            chapterization: own.chapterization.or(others.chapterization),
            ..others
        }
    }

    /// Returns the results if nothing can be made, for this reason.
    pub fn failed(input: ModelInput<'_>, error: &ModelError) -> Self {
        let error = error.envelope_error();
        let translations = TranslationResults::failed(targets(input), &error);
        let enrichments = Enrichments {
            summarization: failed_envelope(input, Enrichment::Summarization, &error),
            moderation: failed_envelope(input, Enrichment::Moderation, &error),
            named_entity_recognition: failed_envelope(input, Enrichment::NamedEntityRecognition, &error),
            name_consistency: failed_envelope(input, Enrichment::NameConsistency, &error),
            speaker_reidentification: failed_envelope(input, Enrichment::SpeakerReidentification, &error),
            structured_data_extraction: failed_envelope(input, Enrichment::StructuredDataExtraction, &error),
            sentiment_analysis: failed_envelope(input, Enrichment::SentimentAnalysis, &error),
            audio_to_llm: failed_envelope(input, Enrichment::AudioToLlm, &error),
            display_mode: failed_envelope(input, Enrichment::DisplayMode, &error),
            chapterization: failed_envelope(input, Enrichment::Chapterization, &error),
            ..Enrichments::default()
        };
        Self { enrichments: with_failed_shapes(enrichments, input.shapes), translations }
    }

    /// As [`ModelResults::failed`], because the transcript must not be sent to the language model. What is made without
    /// one does not fail.
    pub fn not_local(input: ModelInput<'_>) -> Self {
        let mut all = Self::failed(input, &ModelError::NotLocal);
        all.enrichments.named_entity_recognition = None;
        all.enrichments.sentiment_analysis = None;
        all.enrichments.summarization = None;
        all.enrichments.chapterization = None;
        all
    }

    /// As [`ModelResults::failed`], for a fault of this program.
    pub fn fault(input: ModelInput<'_>) -> Self {
        Self::failed(input, &ModelError::Fault)
    }
}

fn failed_envelope<T>(
    input: ModelInput<'_>,
    enrichment: Enrichment,
    error: &EnvelopeError,
) -> Option<Either<Envelope<T>>> {
    input.params.requests(enrichment).then(|| Either::Known(Envelope::failed(error.clone())))
}

/// Whether a request asks for something that a language model makes.
pub fn is_requested(input: ModelInput<'_>) -> bool {
    const MADE: [Enrichment; 10] = [
        Enrichment::AudioToLlm,
        Enrichment::Chapterization,
        Enrichment::DisplayMode,
        Enrichment::Moderation,
        Enrichment::NameConsistency,
        Enrichment::NamedEntityRecognition,
        Enrichment::SentimentAnalysis,
        Enrichment::SpeakerReidentification,
        Enrichment::StructuredDataExtraction,
        Enrichment::Summarization,
    ];
    MADE.into_iter().any(|one| input.params.requests(one)) || !targets(input).is_empty()
}

/// Returns what a request lacks without which a language model cannot make this enrichment.
pub fn lacking(params: &Params, enrichment: Enrichment) -> Option<&'static str> {
    let classes = params.structured_data_extraction_config.as_ref().and_then(|config| config.classes.as_ref());
    match enrichment {
        Enrichment::SpeakerReidentification if params.diarization != Some(true) => {
            Some("speakers get names only where they are told apart: `diarization` must be true")
        }
        Enrichment::StructuredDataExtraction if classes.is_none_or(Vec::is_empty) => {
            Some("`structured_data_extraction_config.classes` must say what to extract")
        }
        _ => None,
    }
}

/// Returns the target languages that are not the one that is spoken.
pub fn targets(input: ModelInput<'_>) -> Vec<&str> {
    let ModelInput { params, transcript, .. } = input;
    let targets = params.target_languages().into_iter();
    targets.filter(|target| !is_own_language(target, &transcript.languages)).collect()
}

/// Makes everything that is requested.
pub async fn enrich(model: &LanguageModel, input: ModelInput<'_>) -> ModelResults {
    let lines = NumberedLines::of(input.transcript, longest_line(model));
    let enricher = Enricher { model, input, lines: &lines };
    let begun = model.clock().uptime();
    let (translated, enrichments) = tokio::join!(enricher.translations(), enricher.enrichments());
    let seconds = if translated.is_empty() { 0.0 } else { seconds(model.clock(), begun) };
    let translations = TranslationResults { by_target: translated, seconds };
    ModelResults { enrichments: with_failed_shapes(enrichments, input.shapes), translations }
}

/// Returns the bytes of a line that fits into every request. The question of an enrichment may leave no room; it then
/// says so itself.
fn longest_line(model: &LanguageModel) -> usize {
    let prompt = Prompt { instructions: "x".repeat(1_200), text: String::new(), shape: AnswerShape::Text };
    model.context().text_bytes(&prompt, AnswerSize::LikeText).unwrap_or_default()
}

fn seconds(clock: &dyn Clock, begun: Uptime) -> f64 {
    (clock.uptime().since(begun).as_secs_f64() * 1000.0).round() / 1000.0
}

struct Enricher<'e> {
    model: &'e LanguageModel,
    input: ModelInput<'e>,
    lines: &'e NumberedLines,
}

impl Enricher<'_> {
    async fn enrichments(&self) -> Enrichments {
        use Enrichment as E;
        let Self { model, input: ModelInput { params, transcript, shapes }, lines } = *self;
        let kind = params.summarization_config.as_ref().and_then(|config| config.kind).unwrap_or_default();
        let classes = params.structured_data_extraction_config.as_ref().and_then(|config| config.classes.clone());
        let classes = classes.unwrap_or_default();
        let data = async {
            let data = structured_data::make(model, lines, &classes).await?;
            Ok(if data.values().all(is_empty_list) { String::new() } else { Value::Object(data).to_string() })
        };
        let made = tokio::join!(
            self.made(E::Summarization, summary::make(model, lines, kind)),
            self.made(E::Moderation, moderation::make(model, transcript, lines)),
            self.made(E::NameConsistency, names::make(model, transcript, lines)),
            self.made(E::SpeakerReidentification, speakers::make(model, transcript, lines)),
            self.made(E::StructuredDataExtraction, data),
            self.made(E::NamedEntityRecognition, entities::make(model, transcript, lines)),
            self.made(E::SentimentAnalysis, sentiments::make(model, transcript, lines)),
            self.made(E::Chapterization, chapters::make(model, transcript, lines)),
            self.made(E::DisplayMode, display::make(model, transcript, lines)),
            self.answers(),
        );
        let (summary, moderation, names, speakers, data, entities, sentiments, chapters, display, answers) = made;
        Enrichments {
            summarization: summary.map(text_envelope),
            moderation: moderation.map(text_envelope),
            name_consistency: names.map(text_envelope),
            speaker_reidentification: speakers.map(text_envelope),
            structured_data_extraction: data.map(text_envelope),
            named_entity_recognition: entities.map(|made| entity_envelope(made, shapes)),
            sentiment_analysis: sentiments.map(|made| sentiment_envelope(made, shapes)),
            chapterization: chapters.map(|made| chapter_envelope(made, shapes)),
            display_mode: display.map(|made| envelope(made, Vec::is_empty)),
            audio_to_llm: answers,
            ..Enrichments::default()
        }
    }

    /// Makes an enrichment if it is requested. Of silence nothing is made, and nothing is asked.
    async fn made<T: Default>(
        &self,
        enrichment: Enrichment,
        work: impl Future<Output = Result<T, ModelError>>,
    ) -> Option<Made<T>> {
        if !self.input.params.requests(enrichment) {
            return None;
        }
        let made = match lacking(self.input.params, enrichment) {
            Some(why) => Made { outcome: Err(ModelError::Incomplete(why.to_owned())), seconds: 0.0 },
            None => self.timed(work).await,
        };
        Some(made.logged(enrichment.name()))
    }

    async fn timed<T: Default>(&self, work: impl Future<Output = Result<T, ModelError>>) -> Made<T> {
        let begun = self.model.clock().uptime();
        let outcome = if self.lines.is_empty() { Ok(T::default()) } else { work.await };
        Made { outcome, seconds: seconds(self.model.clock(), begun) }
    }

    /// Answers each prompt of the client: each has its own outcome.
    async fn answers(&self) -> Option<Either<Envelope<Vec<Envelope<Answered>>>>> {
        if !self.input.params.requests(Enrichment::AudioToLlm) {
            return None;
        }
        let begun = self.model.clock().uptime();
        let answer = |prompt: &String| {
            let prompt = prompt.clone();
            async move {
                let made = self.timed(client_prompts::make(self.model, self.lines, &prompt)).await;
                answer_envelope(made.logged(Enrichment::AudioToLlm.name()), prompt)
            }
        };
        let prompts: Vec<_> = self.input.params.prompts().iter().map(answer).collect();
        let answers: Vec<Envelope<Answered>> = stream::iter(prompts).buffered(self.model.concurrency()).collect().await;
        let first_error = answers.iter().find_map(|answer| answer.error.clone());
        let all_failed = !answers.is_empty() && answers.iter().all(|answer| !answer.success);
        let is_empty = answers.iter().all(|answer| answer.is_empty);
        let whole = Envelope::completed(answers, is_empty, seconds(self.model.clock(), begun));
        Some(Either::Known(match first_error.filter(|_| all_failed) {
            Some(error) => Envelope { success: false, error: Some(error), ..whole },
            None => whole,
        }))
    }

    async fn translations(&self) -> BTreeMap<String, Result<MadeTranslation, EnvelopeError>> {
        let Self { model, input: ModelInput { params, transcript, .. }, lines } = *self;
        let config = params.translation_config.clone().unwrap_or_default();
        let config = &config;
        let one = |target: &str| {
            let target = target.to_owned();
            async move {
                let made = self.timed(translation::make(model, transcript, lines, (&target, config))).await;
                let outcome = made.logged(Enrichment::Translation.name()).outcome;
                let speech = |utterances: Vec<Utterance>| MadeTranslation {
                    transcript: Transcript { languages: vec![target.clone()], utterances },
                    translator: None,
                };
                let outcome = outcome.map(speech).map_err(|error| error.envelope_error());
                (target, outcome)
            }
        };
        let all: Vec<_> = targets(self.input).into_iter().map(one).collect();
        stream::iter(all).buffered(model.concurrency()).collect().await
    }
}

/// What came of an enrichment.
struct Made<T> {
    outcome: Result<T, ModelError>,
    seconds: f64,
}

impl<T> Made<T> {
    fn logged(self, enrichment: &str) -> Self {
        if let Err(error) = &self.outcome {
            let words = error.envelope_error().message;
            tracing::warn!(enrichment, words, seconds = self.seconds, "an enrichment could not be made");
        }
        self
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn envelope<T>(made: Made<T>, is_empty: impl Fn(&T) -> bool) -> Either<Envelope<T>> {
    Either::Known(match made.outcome {
        Ok(results) => {
            let is_empty = is_empty(&results);
            Envelope::completed(results, is_empty, made.seconds)
        }
        Err(error) => Envelope { exec_time: Some(made.seconds), ..Envelope::failed(error.envelope_error()) },
    })
}

fn text_envelope(made: Made<String>) -> Either<Envelope<String>> {
    envelope(made, String::is_empty)
}

fn answer_envelope(made: Made<String>, prompt: String) -> Envelope<Answered> {
    let is_empty = made.outcome.as_ref().is_ok_and(String::is_empty);
    match made.outcome {
        Ok(response) => Envelope::completed(Answered { prompt, response }, is_empty, made.seconds),
        Err(error) => Envelope { exec_time: Some(made.seconds), ..Envelope::failed(error.envelope_error()) },
    }
}

fn entity_envelope(made: Made<Vec<Entity>>, shapes: Shapes) -> Either<Envelope<Vec<Entity>>> {
    Either::Known(of_made(made, |list, seconds| shapes.entities(list, seconds)))
}

fn sentiment_envelope(made: Made<Vec<Sentiment>>, shapes: Shapes) -> Either<Envelope<Sentiments>> {
    Either::Known(of_made(made, |list, seconds| shapes.sentiments(list, seconds)))
}

fn of_made<T, R>(made: Made<T>, completed: impl FnOnce(T, f64) -> Envelope<R>) -> Envelope<R> {
    match made.outcome {
        Ok(results) => completed(results, made.seconds),
        Err(error) => Envelope { exec_time: Some(made.seconds), ..Envelope::failed(error.envelope_error()) },
    }
}

fn chapter_envelope(made: Made<Vec<MadeChapter>>, shapes: Shapes) -> Either<Envelope<Value>> {
    Either::Known(of_made(made, |list, seconds| shapes.chapters(list, seconds)))
}
