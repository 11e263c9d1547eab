//! Enrichments that this build does not do: each says so in its own envelope, never a made-up result.

use crate::wire::enrichment::{Either, Enrichments, Envelope, EnvelopeError, Sentiments, Shapes};
use crate::wire::params::Params;
use serde_json::Value;

/// Why an enrichment is not done here.
pub fn not_done(name: &str) -> EnvelopeError {
    EnvelopeError {
        status_code: 501,
        exception: "NotImplemented".to_owned(),
        message: format!("this build of the service does not do {name} yet"),
    }
}

fn envelope<T>(name: &str, asked: Option<bool>) -> Option<Either<Envelope<T>>> {
    (asked == Some(true)).then(|| Either::Known(Envelope::failed(not_done(name))))
}

/// The envelopes of what was asked for and is not done.
pub fn envelopes(params: &Params, shapes: Shapes) -> Enrichments {
    let all = Enrichments {
        audio_to_llm: envelope("audio_to_llm", params.audio_to_llm),
        chapterization: envelope("chapterization", params.chapterization),
        diarization: envelope("diarization", params.diarization),
        display_mode: envelope("display_mode", params.display_mode),
        moderation: envelope("moderation", params.moderation),
        name_consistency: envelope("name_consistency", params.name_consistency),
        named_entity_recognition: envelope("named_entity_recognition", params.named_entity_recognition),
        sentiment_analysis: envelope("sentiment_analysis", params.sentiment_analysis),
        speaker_reidentification: envelope("speaker_reidentification", params.speaker_reidentification),
        structured_data_extraction: envelope("structured_data_extraction", params.structured_data_extraction),
        summarization: envelope("summarization", params.summarization),
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
