//! The envelopes of the enrichments that are made without a language model. Each says how it was made (`method`), or why it
//! was not.

use super::summary::SELECTED;
use super::{NotEnglish, find_chapters, find_entities, find_sentiments, find_summary};
use crate::clock::Clock;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::transcript::Transcript;
use crate::server::recognition::unsupported::not_english_error;
use crate::wire::enrichment::{Either, Enrichments, Envelope, Shapes};
use crate::wire::params::Params;
use serde_json::{Map, json};

/// Adds the enrichments that are requested; a language model that makes them replaces them. `is_written` says whether the
/// recogniser writes case and punctuation.
pub fn add_text_enrichments(
    enrichments: &mut Enrichments,
    transcript: &Transcript,
    (params, shapes, is_written): (&Params, Shapes, bool),
    clock: &dyn Clock,
) {
    let is_requested = |enrichment: Enrichment| params.requests(enrichment);
    if is_requested(Enrichment::NamedEntityRecognition) {
        let (found, took) = timed(clock, || find_entities(transcript, is_written));
        let envelope = shapes.entities(found, took);
        enrichments.named_entity_recognition = Some(made(envelope, "patterns and word lists"));
    }
    if is_requested(Enrichment::SentimentAnalysis) {
        let (found, took) = timed(clock, || find_sentiments(transcript));
        let envelope = shapes.sentiments(found, took);
        enrichments.sentiment_analysis = Some(made(envelope, "valences of words"));
    }
    if is_requested(Enrichment::Summarization) {
        let kind = params.summarization_config.as_ref().and_then(|config| config.kind).unwrap_or_default();
        let (summary, took) = timed(clock, || find_summary(transcript, kind));
        let wrap = |summary: String| {
            let is_empty = summary.is_empty();
            made(Envelope::completed(summary, is_empty, took), SELECTED)
        };
        enrichments.summarization =
            Some(summary.map_or_else(|NotEnglish| not_english(Enrichment::Summarization), wrap));
    }
    if is_requested(Enrichment::Chapterization) {
        let (chapters, took) = timed(clock, || find_chapters(transcript));
        let wrap = |chapters| made(shapes.chapters(chapters, took), "changes of words");
        enrichments.chapterization =
            Some(chapters.map_or_else(|NotEnglish| not_english(Enrichment::Chapterization), wrap));
    }
}

/// Returns what `work` returns, and how many seconds it took, to the millisecond.
fn timed<T>(clock: &dyn Clock, work: impl FnOnce() -> T) -> (T, f64) {
    let started = clock.uptime();
    let made = work();
    (made, (clock.uptime().since(started).as_secs_f64() * 1000.0).round() / 1000.0)
}

fn made<T>(envelope: Envelope<T>, method: &str) -> Either<Envelope<T>> {
    let method = Map::from_iter([("method".to_owned(), json!(method))]);
    Either::Known(Envelope { other: envelope.other.into_iter().chain(method).collect(), ..envelope })
}

fn not_english<T>(enrichment: Enrichment) -> Either<Envelope<T>> {
    Either::Known(Envelope::failed(not_english_error(enrichment.name())))
}
