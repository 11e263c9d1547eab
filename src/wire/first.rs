//! The first version's one call, answered from a second-version result (interface, "Versioning" 2 to 4).

use crate::wire::result::{ResultBody, WireUtterance, WireWord};
use serde_json::{Map, Value, json};

/// The path for sound.
pub const AUDIO_PATH: &str = "/audio/text/audio-transcription";

/// The path for video; the same call with parts of other names.
pub const VIDEO_PATH: &str = "/video/text/video-transcription";

/// What `prediction` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// A list of utterances.
    #[default]
    Json,
    /// Subtitles as one text.
    Srt,
    /// Subtitles as one text.
    Vtt,
    /// The words alone as one text.
    Text,
}

impl OutputFormat {
    /// From the first version's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "json" => Self::Json,
            "srt" => Self::Srt,
            "vtt" => Self::Vtt,
            "txt" | "plain" => Self::Text,
            _ => return None,
        })
    }
}

/// The first version's answer.
pub fn answer(result: &ResultBody, format: OutputFormat) -> Value {
    let transcription = result.transcription.clone().unwrap_or_default();
    let utterances: Vec<Value> = transcription.utterances.iter().map(utterance).collect();
    let subtitles = |wanted: &str| {
        let all = transcription.subtitles.iter().flatten();
        all.filter(|one| one.format == wanted).map(|one| json!(one.subtitles)).next().unwrap_or_default()
    };
    let prediction = match format {
        OutputFormat::Json => json!(utterances),
        OutputFormat::Srt => subtitles("srt"),
        OutputFormat::Vtt => subtitles("vtt"),
        OutputFormat::Text => json!(transcription.full_transcript),
    };
    let said = &result.metadata;
    let channels = said.number_of_distinct_channels;
    let file = json!({ "duration": said.audio_duration, "channels": channels, "nb_channels": channels });
    let metadata = json!({ "total_transcription_time": said.transcription_time, "provided_file_metadata": file });
    json!({ "prediction": prediction, "prediction_raw": { "metadata": metadata, "transcription": utterances } })
}

fn utterance(new: &WireUtterance) -> Value {
    let mut old = Map::from_iter([
        ("words".to_owned(), new.words.iter().map(word).collect::<Value>()),
        ("transcription".to_owned(), json!(new.text)),
        ("language".to_owned(), json!(new.language)),
        ("time_begin".to_owned(), json!(new.start)),
        ("time_end".to_owned(), json!(new.end)),
        ("channel".to_owned(), json!(format!("channel_{}", new.channel.unwrap_or(0)))),
        ("confidence".to_owned(), json!(new.confidence.unwrap_or(-1.0))),
    ]);
    old.extend(new.speaker.clone().map(|speaker| ("speaker".to_owned(), speaker)));
    Value::Object(old)
}

fn word(new: &WireWord) -> Value {
    let confidence = new.confidence.unwrap_or(-1.0);
    json!({ "word": new.word, "time_begin": new.start, "time_end": new.end, "confidence": confidence })
}
