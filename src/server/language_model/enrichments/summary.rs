//! `summarization`: a summary in the language of the transcript, in one of three forms.

use crate::server::language_model::ask::{Condensing, condense};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::completion::Completion;
use crate::server::language_model::found_json::{find_json, text};
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, Prompt, plain};
use crate::wire::params::SummaryType;
use serde_json::{Value, json};

/// The most characters of a summary.
const LONGEST: usize = 20_000;

pub async fn make(model: &LanguageModel, lines: &NumberedLines, kind: SummaryType) -> Result<String, ModelError> {
    let read = |completion: &Completion| read(completion, kind);
    let whole = prompt(kind, "the transcript");
    let notes = prompt(kind, "the notes about the parts of the transcript, which are in order");
    condense(model, lines, &Condensing { whole, part: note(), notes, read: &read }).await
}

fn prompt(kind: SummaryType, what: &str) -> Prompt {
    let (form, shape) = match kind {
        SummaryType::General => ("in one or two paragraphs", texts("summary")),
        SummaryType::Concise => ("in one or two sentences", texts("summary")),
        SummaryType::BulletPoints => {
            let points = json!({ "points": { "type": "array", "items": { "type": "string" } } });
            ("as a list of at most ten points, each of one sentence", AnswerShape::object("summary", points))
        }
    };
    let instructions = format!("Summarize {what} {form}. Write in the language of the transcript.");
    Prompt { instructions, text: String::new(), shape }
}

fn texts(name: &'static str) -> AnswerShape {
    AnswerShape::object(name, json!({ name: { "type": "string" } }))
}

fn note() -> Prompt {
    let instructions =
        "Write short notes about this part of a transcript: who says what, in order, with the names and \
                        numbers that matter. Use at most 100 words, in the language of the transcript."
            .to_owned();
    Prompt { instructions, text: String::new(), shape: AnswerShape::Text }
}

/// Reads a summary. A model that writes no JSON has written the summary itself.
fn read(completion: &Completion, kind: SummaryType) -> Result<String, String> {
    if completion.is_truncated {
        return Err("it is longer than it may be, and is incomplete".to_owned());
    }
    let answer = find_json(&completion.text);
    let said = match &answer {
        Some(answer) => points(answer).or_else(|| text(answer, &["summary", "text"]).map(str::to_owned)),
        None if completion.text.starts_with(['{', '[', '`']) => None,
        None => Some(completion.text.clone()),
    };
    let said = plain(&said.unwrap_or_default(), LONGEST, true);
    match (said.is_empty(), kind) {
        (true, SummaryType::BulletPoints) => Err("`points` has no text".to_owned()),
        (true, _) => Err("`summary` has no text".to_owned()),
        (false, _) => Ok(said),
    }
}

/// Returns the points of a list as lines.
fn points(answer: &Value) -> Option<String> {
    let points = answer.get("points")?.as_array()?.iter().filter_map(Value::as_str);
    let line = |point: &str| format!("- {}", plain(point.trim_start_matches(['-', '*', '•', ' ']), LONGEST, false));
    Some(points.filter(|point| !point.trim().is_empty()).map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::completion;

    #[test]
    fn each_form_is_asked_for_and_read() {
        let of = |kind, text: &str| read(&completion(text), kind);
        let general = SummaryType::General;
        assert_eq!(of(general, r#"{"summary":" They\u0007meet.\nThey part. "}"#).unwrap(), "They meet.\nThey part.");
        assert_eq!(of(general, "They meet.").unwrap(), "They meet.");
        let points = r#"```json
            {"points": ["They meet.", "- They part.", ""]}
            ```"#;
        assert_eq!(of(SummaryType::BulletPoints, points).unwrap(), "- They meet.\n- They part.");
        for wrong in ["", r#"{"summary": 7}"#, r#"{"summary": ""}"#, r#"{"summary": "They me"#] {
            assert!(of(general, wrong).is_err(), "{wrong}");
        }
        assert!(of(SummaryType::BulletPoints, r#"{"points": []}"#).unwrap_err().contains("points"));
        let cut = Completion { is_truncated: true, ..completion("They meet, and") };
        assert!(read(&cut, general).unwrap_err().contains("incomplete"));
        let prompts =
            [general, SummaryType::Concise, SummaryType::BulletPoints].map(|kind| prompt(kind, "it").system());
        assert!(prompts[0].contains("paragraphs") && prompts[1].contains("sentences") && prompts[2].contains("points"));
    }
}
