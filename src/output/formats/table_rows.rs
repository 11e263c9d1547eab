//! The rows of the tables of words and utterances.

use super::Finished;
use super::lines::{end_of, plain_line, seconds, span_of, start_of};
use crate::domain::transcript::Utterance;
use serde::Serialize;

/// A word or an utterance. The order of the fields is that of the columns; what is not known is null or an empty cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// Seconds from the start of the recording.
    pub(super) start: Option<f64>,
    pub(super) end: Option<f64>,
    /// `Speaker 1` or a name, as in the other outputs.
    pub(super) speaker: Option<String>,
    /// From 0, as the service counts.
    pub(super) channel: u32,
    pub(super) language: Option<String>,
    /// From 0 to 1.
    pub(super) confidence: Option<f64>,
    pub(super) text: String,
}

/// Returns a row for each utterance.
pub(super) fn utterances<'a>(result: &Finished<'a>) -> impl Iterator<Item = Row> + use<'a> {
    let result = *result;
    result.transcript.utterances.iter().filter_map(move |utterance| {
        let (start, end) = (start_of(utterance), end_of(utterance));
        row(utterance, &utterance.text, (start, end), utterance.confidence, &result)
    })
}

/// Returns a row for each word. An utterance of which the service sent no words gives none.
pub(super) fn words<'a>(result: &Finished<'a>) -> impl Iterator<Item = Row> + use<'a> {
    let result = *result;
    result.transcript.utterances.iter().flat_map(move |utterance| {
        utterance.words.iter().filter_map(move |word| {
            let span = span_of(word).unzip();
            row(utterance, &word.text, span, word.confidence, &result)
        })
    })
}

fn row(
    utterance: &Utterance,
    text: &str,
    (start, end): (Option<f64>, Option<f64>),
    confidence: f64,
    result: &Finished<'_>,
) -> Option<Row> {
    let text = plain_line(text);
    let of_utterance = plain_line(&utterance.language);
    let language = Some(of_utterance).filter(|code| !code.is_empty()).or_else(|| result.language.map(str::to_owned));
    let (start, end) = (start.and_then(rounded), end.and_then(rounded));
    // 0 stands for a confidence that the service did not give.
    let confidence = rounded(confidence).filter(|confidence| *confidence > 0.0 && *confidence <= 1.0);
    let (speaker, channel) = (utterance.speaker.map(|number| result.speaker_names.name_of(number)), utterance.channel);
    (!text.is_empty()).then_some(Row { start, end, speaker, channel, language, confidence, text })
}

/// Rounds to three decimals, which is what services know.
pub(super) fn rounded(value: f64) -> Option<f64> {
    seconds(value).map(|value| (value * 1_000.0).round() / 1_000.0)
}
