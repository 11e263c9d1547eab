//! `sentiment_analysis`: the sentiment and the emotion of each utterance.

use crate::domain::transcript::{Transcript, Utterance};
use crate::server::language_model::ask::{LineQuestion, ask_each_line};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::text;
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt};
use crate::wire::enrichment::Sentiment;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The sentiments of the public service (service-notes 4).
const SENTIMENTS: [&str; 5] = ["positive", "negative", "neutral", "mixed", UNKNOWN];

const UNKNOWN: &str = "unknown";
const MIXED: &str = "mixed";

/// The emotions of the public service (service-notes 4).
const EMOTIONS: [&str; 24] = [
    "adoration",
    "amusement",
    "anger",
    "awe",
    "confusion",
    "contempt",
    "contentment",
    "desire",
    "disappointment",
    "disgust",
    "distress",
    "ecstatic",
    "elation",
    "embarrassment",
    "fear",
    "interest",
    "pain",
    "realization",
    "relief",
    "sadness",
    "negative_surprise",
    "positive_surprise",
    "sympathy",
    "triumph",
];

/// The emotion of an utterance that has none.
const NO_EMOTION: &str = "neutral";

/// What an answer says of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineSentiment {
    sentiment: &'static str,
    emotion: Option<&'static str>,
}

/// Returns one item for each utterance.
///
/// # Errors
/// The model fails, or says nothing about most of the lines.
pub async fn make(
    model: &LanguageModel,
    transcript: &Transcript,
    lines: &NumberedLines,
) -> Result<Vec<Sentiment>, ModelError> {
    let question = LineQuestion::new(prompt(), "sentiments", AnswerSize::LikeText);
    let found = ask_each_line(model, lines, &question, |item, _| read(item)).await?;
    if found.len() * 2 < lines.len() {
        let why = format!("{} of {} lines have no sentiment", lines.len() - found.len(), lines.len());
        return Err(ModelError::Unusable(why));
    }
    Ok(of_utterances(transcript, lines, &found))
}

fn prompt() -> Prompt {
    let instructions = "Say for each numbered line of the transcript which sentiment and which emotion its speaker \
                        expresses, under its number `n`. Leave no line out."
        .to_owned();
    let emotions: Vec<&str> = EMOTIONS.into_iter().chain([NO_EMOTION]).collect();
    let properties = json!({
        "n": { "type": "integer" },
        "sentiment": { "type": "string", "enum": SENTIMENTS },
        "emotion": { "type": "string", "enum": emotions },
    });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("sentiments", properties) }
}

/// Reads an item; one without an allowed sentiment is none.
fn read(item: &Value) -> Option<LineSentiment> {
    let sentiment = text(item, &["sentiment"])?.to_ascii_lowercase();
    let sentiment = SENTIMENTS.into_iter().find(|known| *known == sentiment)?;
    let emotion = text(item, &["emotion"]).map(|emotion| emotion.to_ascii_lowercase().replace(' ', "_"));
    let known = EMOTIONS.into_iter().chain([NO_EMOTION]);
    let emotion = emotion.and_then(|emotion| known.into_iter().find(|known| *known == emotion));
    Some(LineSentiment { sentiment, emotion })
}

/// A line about which nothing is said has the sentiment `unknown`.
fn of_utterances(
    transcript: &Transcript,
    lines: &NumberedLines,
    found: &BTreeMap<usize, LineSentiment>,
) -> Vec<Sentiment> {
    let one = |(at, said): (usize, &Utterance)| {
        let of_lines: Vec<LineSentiment> =
            lines.of_utterance(at).filter_map(|number| found.get(&number).copied()).collect();
        let first = of_lines.first().map_or(UNKNOWN, |first| first.sentiment);
        let is_mixed = of_lines.iter().any(|other| other.sentiment != first);
        let sentiment = if is_mixed { MIXED } else { first };
        let emotion = of_lines.first().and_then(|first| first.emotion);
        sentiment_item(said, sentiment, emotion)
    };
    let all = transcript.utterances.iter().enumerate();
    all.filter(|(at, _)| !lines.of_utterance(*at).is_empty()).map(one).collect()
}

/// Returns the item of an utterance.
pub fn sentiment_item(said: &Utterance, sentiment: &str, emotion: Option<&str>) -> Sentiment {
    let mut other = Map::new();
    let mut put = |name: &str, value: Value| drop(other.insert(name.to_owned(), value));
    if let Some(emotion) = emotion {
        put("emotion", json!(emotion));
    }
    put("start", json!(said.start));
    put("end", json!(said.end));
    put("channel", json!(said.channel));
    if let Some(speaker) = said.speaker {
        put("speaker", json!(speaker));
    }
    Sentiment { text: said.text.clone(), sentiment: sentiment.to_owned(), other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    #[test]
    fn only_what_is_allowed_is_read() {
        let of = |sentiment: &str, emotion: &str| read(&json!({ "sentiment": sentiment, "emotion": emotion }));
        let expected = LineSentiment { sentiment: "positive", emotion: Some("positive_surprise") };
        assert_eq!(of("Positive", "positive surprise"), Some(expected));
        assert_eq!(of("negative", "hunger").unwrap().emotion, None);
        assert_eq!(of("neutral", "neutral").unwrap().emotion, Some("neutral"));
        assert_eq!((of("happy", "anger"), read(&json!({ "sentiment": 1 }))), (None, None));
    }

    #[test]
    fn each_utterance_has_one_with_its_times() {
        let said = transcript(&["I love it.", "a b c d e f g h", "Well."]);
        let lines = NumberedLines::of(&said, 34);
        let of = |sentiment| LineSentiment { sentiment, emotion: Some("awe") };
        let found = BTreeMap::from([(1, of("positive")), (2, of("negative")), (3, of("positive"))]);
        let all = of_utterances(&said, &lines, &found);
        let sentiments: Vec<&str> = all.iter().map(|one| one.sentiment.as_str()).collect();
        assert_eq!(sentiments, ["positive", "mixed", "unknown"]);
        assert_eq!(
            serde_json::to_value(&all[0]).unwrap(),
            json!({ "text": "I love it.", "sentiment": "positive",
            "emotion": "awe", "start": 0.0, "end": 9.0, "channel": 0 })
        );
    }
}
