//! What was made of a recording, as the interface writes it (interface, "Result object").

use crate::domain::names::Timestamp;
use crate::domain::transcript::Transcript;
use crate::output::subtitles::{Layout, cues, srt, vtt};
use crate::wire::params::{Params, SubtitleFormat, SubtitlesConfig};
use crate::wire::result::{ResultBody, ResultMetadata, Subtitles, Transcription};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The result of a transcription that was created and ended at these moments, of a file of
/// `audio_duration` seconds.
pub fn result(
    params: &Params,
    transcript: &Transcript,
    audio_duration: f64,
    (created, ended): (Timestamp, Timestamp),
) -> Value {
    let mut transcription = Transcription::of(transcript);
    if params.subtitles == Some(true) {
        let config = params.subtitles_config.clone().unwrap_or_default();
        transcription.subtitles = Some(subtitles(transcript, &config));
    }
    let metadata = amounts(transcript, audio_duration, ended.since(created));
    let mut result = json!(ResultBody { metadata, transcription });
    if let Value::Object(map) = &mut result {
        add_undone(map, params);
    }
    result
}

/// Amounts in seconds with three decimals, as the public service rounds them (service notes, 3).
fn amounts(transcript: &Transcript, audio_duration: f64, took: Duration) -> ResultMetadata {
    // All channels are mixed into one before they are recognised; silence counts as one too.
    let channels: BTreeSet<u32> = transcript.utterances.iter().map(|u| u.channel).collect();
    let channels = u32::try_from(channels.len()).unwrap_or(u32::MAX).max(1);
    let audio_duration = rounded(audio_duration);
    ResultMetadata {
        audio_duration,
        number_of_distinct_channels: channels,
        billing_time: rounded(audio_duration * f64::from(channels)),
        transcription_time: rounded(took.as_secs_f64()),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn subtitles(transcript: &Transcript, config: &SubtitlesConfig) -> Vec<Subtitles> {
    let cues = cues(transcript, &layout(config));
    let formats = config.formats.clone().unwrap_or_else(|| vec![SubtitleFormat::Srt]);
    let write = |format| match format {
        SubtitleFormat::Srt => Subtitles { format: "srt".to_owned(), subtitles: srt(&cues) },
        SubtitleFormat::Vtt => Subtitles { format: "vtt".to_owned(), subtitles: vtt(&cues, None) },
    };
    formats.into_iter().map(write).collect()
}

/// The layout that was asked for; where nothing was, the usual one.
fn layout(config: &SubtitlesConfig) -> Layout {
    let usual = Layout::default();
    let count = |asked: Option<u32>, usual| asked.and_then(|n| usize::try_from(n).ok()).unwrap_or(usual);
    let span = |asked: Option<f64>, usual| asked.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or(usual);
    Layout {
        maximum_characters_per_row: count(config.maximum_characters_per_row, usual.maximum_characters_per_row),
        maximum_rows_per_caption: count(config.maximum_rows_per_caption, usual.maximum_rows_per_caption),
        minimum_duration: span(config.minimum_duration, usual.minimum_duration),
        maximum_duration: span(config.maximum_duration, usual.maximum_duration),
    }
}

/// Says of everything that was asked for and not done that it was not done, where its result would
/// be; a parameter without a result of its own has its envelope under its own name.
fn add_undone(result: &mut Map<String, Value>, params: &Params) {
    for name in undone(params) {
        let mut envelope = undone_envelope(name);
        if name == "sentences" {
            result["transcription"]["sentences"] = json!([envelope.clone()]);
        }
        if name == "named_entity_recognition" {
            // The one envelope with a payload of another name (interface, "Result object").
            envelope["entity"] = Value::Null;
        }
        result.insert(name.to_owned(), envelope);
    }
}

/// What this build does not do yet, as far as it was asked for.
fn undone(params: &Params) -> Vec<&'static str> {
    let toggles = [
        ("audio_to_llm", params.audio_to_llm),
        ("chapterization", params.chapterization),
        ("custom_spelling", params.custom_spelling),
        ("custom_vocabulary", params.custom_vocabulary),
        ("diarization", params.diarization),
        ("display_mode", params.display_mode),
        ("moderation", params.moderation),
        ("name_consistency", params.name_consistency),
        ("named_entity_recognition", params.named_entity_recognition),
        ("punctuation_enhanced", params.punctuation_enhanced),
        ("sentences", params.sentences),
        ("sentiment_analysis", params.sentiment_analysis),
        ("speaker_reidentification", params.speaker_reidentification),
        ("structured_data_extraction", params.structured_data_extraction),
        ("summarization", params.summarization),
        ("translation", params.translation),
    ];
    toggles.into_iter().filter(|(_, asked)| *asked == Some(true)).map(|(name, _)| name).collect()
}

/// A feature envelope that holds nothing but why (interface, "Result object").
fn undone_envelope(name: &str) -> Value {
    let message = format!("this build of the service does not do {name} yet");
    json!({
        "success": false,
        "is_empty": true,
        "exec_time": 0,
        "error": { "status_code": 501, "exception": "NotImplemented", "message": message },
        "results": null,
    })
}
