//! Reads the answers of engines. Engines differ in what they call things, and where they put them; whatever is missing
//! is found elsewhere in the answer if possible. Pure.

use super::request::EngineProtocol;
use super::spelling::spelt;
use super::spread::{SpokenSpan, spread};
use crate::server::http_engine::refusal::message_of;
use crate::server::recognition::recogniser::{ChunkWord, RecognisedChunk};
use crate::server::recognition::token_words::{in_order, joined_tokens, with_first_spaces};
use crate::wire::languages::code_of;
use serde_json::{Map, Value};

/// What is known of the chunk that an answer is about.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredChunk<'a> {
    pub protocol: EngineProtocol,
    /// Its length in seconds.
    pub seconds: f64,
    /// Where it has speech: words without times are spread over it.
    pub speech: &'a [SpokenSpan],
}

/// Reads the answer to a request.
///
/// # Errors
/// Why it is no transcript.
pub fn read(body: &[u8], chunk: AnsweredChunk<'_>) -> Result<RecognisedChunk, String> {
    // Tokens of whisper.cpp may be parts of a letter.
    let text = String::from_utf8_lossy(body);
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("the answer is no JSON: {error}"))?;
    let Value::Object(root) = value else { return Err("the answer is no JSON object".to_owned()) };
    if let (Some(error), false) = (root.get("error").filter(|error| !error.is_null()), root.contains_key("text")) {
        return Err(message_of(error).unwrap_or_else(|| "the answer is an error without a message".to_owned()));
    }
    let segments = segments(&root);
    let text = match root.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None if segments.is_empty() => return Err("the answer has no text".to_owned()),
        None => segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().concat(),
    };
    let language = ["language", "detected_language"].into_iter().find_map(|name| code_of(root.get(name)?.as_str()?));
    let (words, has_estimated_times) = timed_words(&root, &segments, &text, chunk);
    let words = in_order(words, chunk.seconds);
    Ok(RecognisedChunk { words, language: language.map(str::to_owned), is_written: true, has_estimated_times })
}

/// Returns the words with the times that the answer has, or with estimated ones. The second value says which.
fn timed_words(
    root: &Map<String, Value>,
    segments: &[EngineSegment],
    text: &str,
    chunk: AnsweredChunk<'_>,
) -> (Vec<ChunkWord>, bool) {
    let top = engine_words(root.get("words"), None);
    let inside = || segments.iter().flat_map(|segment| segment.words.iter().cloned()).collect::<Vec<_>>();
    let words = if top.is_empty() { inside() } else { top };
    let words = if chunk.protocol == EngineProtocol::WhisperCpp { joined_tokens(words) } else { words };
    if !words.is_empty() {
        return (with_segments(with_spelling(words, text), segments), false);
    }
    let timed: Vec<&EngineSegment> =
        segments.iter().filter(|one| one.end > one.start && !one.text.is_empty()).collect();
    if !timed.is_empty() {
        let spread = timed.iter().flat_map(|one| {
            let mut words = spread(&one.text, &[(one.start, one.end)], one.confidence);
            words.iter_mut().take(1).for_each(|first| first.begins = true);
            words
        });
        return (with_first_spaces(spread.collect()), true);
    }
    let whole = [(0.0, chunk.seconds)];
    let spread = spread(text, if chunk.speech.is_empty() { &whole } else { chunk.speech }, None);
    let is_any = !spread.is_empty();
    (with_first_spaces(spread), is_any)
}

/// A segment of an answer.
#[derive(Debug, Clone, Default)]
struct EngineSegment {
    start: f64,
    end: f64,
    text: String,
    confidence: Option<f64>,
    words: Vec<ChunkWord>,
}

/// What some engines write for a probability that they do not know.
const FILLER: f64 = -1.0;

fn segments(root: &Map<String, Value>) -> Vec<EngineSegment> {
    let list = root.get("segments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let segment = |value: &Value| {
        let segment = value.as_object()?;
        let confidence = number(segment.get("avg_logprob")).filter(|log| *log <= 0.0 && *log != FILLER).map(f64::exp);
        Some(EngineSegment {
            start: number(segment.get("start"))?,
            end: number(segment.get("end"))?,
            text: segment.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
            confidence,
            words: engine_words(segment.get("words"), confidence),
        })
    };
    list.iter().filter_map(segment).collect()
}

/// Reads a list of words. One without a start follows the one before it; one without an end has no length.
fn engine_words(list: Option<&Value>, confidence: Option<f64>) -> Vec<ChunkWord> {
    let mut now = 0.0;
    let word = |value: &Value| {
        let word = value.as_object()?;
        let text = ["word", "text"].into_iter().find_map(|name| word.get(name)?.as_str())?;
        let start = number(word.get("start")).unwrap_or(now);
        let end = number(word.get("end")).unwrap_or(start);
        now = end;
        let own = ["probability", "confidence"].into_iter().find_map(|name| number(word.get(name)));
        let confidence = own.filter(|own| (0.0..=1.0).contains(own)).or(confidence);
        (!text.trim().is_empty()).then(|| ChunkWord { text: text.to_owned(), start, end, confidence, begins: false })
    };
    list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().filter_map(word).collect()
}

/// Reads a number, also one that is written as a text.
fn number(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Gives words their spaces and punctuation. Words that have some spaces have all.
fn with_spelling(mut words: Vec<ChunkWord>, text: &str) -> Vec<ChunkWord> {
    let is_whole = |word: &ChunkWord| !word.text.contains(char::REPLACEMENT_CHARACTER);
    if words.iter().all(is_whole) && words.iter().any(|word| word.text.starts_with(char::is_whitespace)) {
        return with_first_spaces(words);
    }
    let plain: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let spelt = spelt(&plain, text);
    words.iter_mut().zip(spelt).for_each(|(word, spelt)| word.text = spelt);
    with_first_spaces(words)
}

/// How much earlier than its segment a word may begin, in seconds: both are rounded.
const ROUNDING: f64 = 0.05;

/// Marks the words with which segments begin, and gives words the confidence of their segment if they have none.
fn with_segments(mut words: Vec<ChunkWord>, segments: &[EngineSegment]) -> Vec<ChunkWord> {
    let mut segments = segments.iter().peekable();
    let mut confidence = None;
    for word in &mut words {
        while let Some(segment) = segments.next_if(|segment| word.start >= segment.start - ROUNDING) {
            (word.begins, confidence) = (true, segment.confidence);
        }
        word.confidence = word.confidence.or(confidence);
    }
    words
}

#[cfg(test)]
mod tests;
