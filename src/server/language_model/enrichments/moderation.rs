//! `moderation`: lines that may be harmful, by category.

use crate::domain::transcript::Transcript;
use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::{items, number, text};
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The categories; the public service does not publish its own.
const CATEGORIES: [&str; 7] =
    ["harassment", "hate", "illegal_activity", "profanity", "self_harm", "sexual_content", "violence"];

/// The most characters of a line that are repeated.
const QUOTED: usize = 200;

/// Returns a line for each finding: the time, the category and what was said; empty if there is none.
///
/// # Errors
/// The model fails.
pub async fn make(model: &LanguageModel, transcript: &Transcript, lines: &NumberedLines) -> Result<String, ModelError> {
    let question = LineQuestion::new(prompt(), "findings", AnswerSize::Short);
    let parts = ask_each_part(model, lines, &question, read).await?;
    let found: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter_map(|(number, category)| finding(transcript, lines, number, category))
        .collect();
    Ok(found.join("\n"))
}

fn prompt() -> Prompt {
    let instructions =
        "List the numbered lines of the transcript in which a speaker says something harmful, each with \
                        its number `n` and its category. A line that only reports or condemns such things is not \
                        harmful. The list is empty if there is none."
            .to_owned();
    let properties = json!({ "n": { "type": "integer" }, "category": { "type": "string", "enum": CATEGORIES } });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("findings", properties) }
}

/// Reads the findings of a part, in order.
fn read(answer: &Value, part: &[usize]) -> Result<BTreeSet<(usize, &'static str)>, String> {
    let listed = items(answer, "findings");
    let one = |item: &Value| {
        let number = number(item, "n").filter(|number| part.binary_search(number).is_ok())?;
        let category = text(item, &["category"])?.to_ascii_lowercase().replace([' ', '-'], "_");
        Some((number, CATEGORIES.into_iter().find(|known| *known == category)?))
    };
    let found: BTreeSet<(usize, &str)> = listed.iter().filter_map(one).collect();
    match (found.is_empty() && !listed.is_empty(), answer.get("findings").is_some() || !listed.is_empty()) {
        (true, _) => Err("none of its findings is about one of the lines".to_owned()),
        (false, false) => Err("it has no `findings`".to_owned()),
        (false, true) => Ok(found),
    }
}

fn finding(transcript: &Transcript, lines: &NumberedLines, number: usize, category: &str) -> Option<String> {
    let line = lines.get(number)?;
    let seconds = transcript.utterances.get(line.utterance)?.start.max(0.0) as u64;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let said: String = line.text.chars().take(QUOTED).collect();
    Some(format!("{time} {category}: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    #[test]
    fn findings_are_about_lines_and_of_known_categories() {
        let of = |answer: Value| read(&answer, &[1, 2, 3]);
        let one = |n: u32, category: &str| json!({ "n": n, "category": category });
        let found = of(json!({ "findings": [one(3, "Self-Harm"), one(2, "hate"), one(2, "hate"), one(1, "rude")] }));
        assert_eq!(found.unwrap(), BTreeSet::from([(2, "hate"), (3, "self_harm")]));
        assert_eq!(of(json!({ "findings": [] })).unwrap(), BTreeSet::new());
        assert!(of(json!({ "findings": [one(9, "hate")] })).is_err() && of(json!({ "a": 1 })).is_err());
        let said = transcript(&["Fine.", "I hate you."]);
        let text = finding(&said, &NumberedLines::of(&said, 1_000), 2, "hate");
        assert_eq!(text.unwrap(), "00:00:10 hate: I hate you.");
    }
}
