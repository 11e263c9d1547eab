//! `display_mode`: what was said in a form that is pleasant to read, one text for each utterance, in order of time.

use crate::domain::transcript::{Transcript, Utterance};
use crate::server::language_model::ask::{LineQuestion, ask_each_line};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json;
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

/// Returns a text for each utterance: where an answer says something else, the one that was recognised.
///
/// # Errors
/// The model fails, or says something else of most of the lines.
pub async fn make(
    model: &LanguageModel,
    transcript: &Transcript,
    lines: &NumberedLines,
) -> Result<Vec<String>, ModelError> {
    let question = LineQuestion::new(prompt(), "lines", AnswerSize::LikeText);
    let read = |item: &Value, number: usize| read(item, &lines.get(number)?.text);
    let found = ask_each_line(model, lines, &question, read).await?;
    if found.len() * 2 < lines.len() {
        let why = format!("{} of {} lines are not what was said", lines.len() - found.len(), lines.len());
        return Err(ModelError::Unusable(why));
    }
    Ok(texts(transcript, lines, &found))
}

fn prompt() -> Prompt {
    let instructions =
        "Write each numbered line of the transcript for reading, under its number `n`: with punctuation \
                        and capital letters, numbers as digits, without hesitations and repeated words. Change nothing \
                        else: neither the words nor their order nor the language. Leave no line out."
            .to_owned();
    let properties = json!({ "n": { "type": "integer" }, "text": { "type": "string" } });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("lines", properties) }
}

/// Reads a line; `None` if less than half of its words were said, or if it lacks most of what was said.
fn read(item: &Value, original: &str) -> Option<String> {
    let text = plain(found_json::text(item, &["text", "line"])?, original.chars().count() * 2 + 100, false);
    let (said, written) = (words(original), words(&text));
    let known: HashSet<&String> = said.iter().collect();
    let kept = written.iter().filter(|word| known.contains(word)).count();
    (!text.is_empty() && kept * 2 >= written.len() && written.len() * 3 >= said.len()).then_some(text)
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn texts(transcript: &Transcript, lines: &NumberedLines, found: &BTreeMap<usize, String>) -> Vec<String> {
    let one = |(at, said): (usize, &Utterance)| {
        let pieces = lines.of_utterance(at).filter_map(|number| {
            found.get(&number).cloned().or_else(|| lines.get(number).map(|line| line.text.clone()))
        });
        let text = pieces.collect::<Vec<_>>().join(" ");
        said.speaker.map_or(text.clone(), |speaker| format!("Speaker {speaker}: {text}"))
    };
    let all = transcript.utterances.iter().enumerate();
    all.filter(|(at, _)| !lines.of_utterance(*at).is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    #[test]
    fn a_line_keeps_what_was_said() {
        let of = |text: &str| read(&json!({ "text": text }), "um so we we met at ten o'clock");
        assert_eq!(of("So we met at 10 o'clock.").as_deref(), Some("So we met at 10 o'clock."));
        for wrong in ["", "The weather is fine today.", "Um.", "Wir trafen uns um zehn Uhr."] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_stays_as_it_was_recognised() {
        let mut said = transcript(&["so we met", "yes"]);
        said.utterances[1].speaker = Some(1);
        let lines = NumberedLines::of(&said, 1_000);
        let found = BTreeMap::from([(1, "So we met.".to_owned())]);
        assert_eq!(texts(&said, &lines, &found), ["So we met.", "Speaker 1: yes"]);
    }
}
