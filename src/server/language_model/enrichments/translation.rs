//! `translation`: each utterance by itself, so that a translation has the times of what it translates.

use crate::domain::transcript::{Transcript, Utterance};
use crate::server::language_model::ask::{LineQuestion, ask_each_line};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json;
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use crate::server::translation::translated_utterance;
use crate::wire::languages::english_name;
use crate::wire::params::TranslationConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Translates a transcript into a language: its utterances, in the same order, with the same times.
///
/// # Errors
/// The model fails, or leaves an utterance out.
pub async fn make(
    model: &LanguageModel,
    transcript: &Transcript,
    lines: &NumberedLines,
    (target, config): (&str, &TranslationConfig),
) -> Result<Vec<Utterance>, ModelError> {
    let question = LineQuestion::new(prompt(target, config), "translations", AnswerSize::LikeText);
    let read = |item: &Value, number: usize| read(item, &lines.get(number)?.text);
    let translated = ask_each_line(model, lines, &question, read).await?;
    let missing = lines.len() - translated.len();
    if missing > 0 {
        let why = format!("{missing} of {} lines have no translation into `{target}`", lines.len());
        return Err(ModelError::Unusable(why));
    }
    Ok(with_translations(transcript, lines, &translated, target))
}

fn prompt(target: &str, config: &TranslationConfig) -> Prompt {
    let language = match target {
        // They have a place among the targets alone.
        "wo" => "wolof",
        "eo" => "esperanto",
        code => english_name(code),
    };
    let manner = match config.informal {
        Some(true) => " Use the informal form of address.",
        _ => " Use the formal form of address where the language has one.",
    };
    let context = config.context.as_deref().map(str::trim).filter(|context| !context.is_empty());
    let context = context.filter(|_| config.context_adaptation != Some(false));
    let context = context.map_or_else(String::new, |context| {
        format!(" Choose words that suit this context, which the client gives: {context}")
    });
    let instructions = format!(
        "Translate each numbered line of the transcript into {language} (`{target}`). Give every line its own \
         translation under its number `n`; join no lines and leave none out. Translate the text alone, without the \
         number.{manner}{context}"
    );
    let properties = json!({ "n": { "type": "integer" }, "text": { "type": "string" } });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("translations", properties) }
}

/// Reads the translation of a line. One that is many times as long as the line is none: models that lose their way repeat
/// themselves.
fn read(item: &Value, original: &str) -> Option<String> {
    let text = plain(found_json::text(item, &["text", "translation"])?, usize::MAX, false);
    let most = original.chars().count() * 6 + 200;
    (!text.is_empty() && text.chars().count() <= most).then_some(text)
}

fn with_translations(
    transcript: &Transcript,
    lines: &NumberedLines,
    translated: &BTreeMap<usize, String>,
    target: &str,
) -> Vec<Utterance> {
    let one = |(at, original): (usize, &Utterance)| {
        let texts: Vec<&str> =
            lines.of_utterance(at).filter_map(|number| translated.get(&number)).map(String::as_str).collect();
        translated_utterance(original, &texts.join(" "), target)
    };
    transcript.utterances.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    #[test]
    fn a_translation_has_the_times_of_its_utterance() {
        let said = transcript(&["Hello there.", "It is late."]);
        let lines = NumberedLines::of(&said, 1_000);
        let texts = BTreeMap::from([(1, "Guten Tag.".to_owned()), (2, "你好".to_owned())]);
        let translated = with_translations(&said, &lines, &texts, "de");
        assert_eq!((translated[0].text.as_str(), translated[0].language.as_str()), ("Guten Tag.", "de"));
        let times: Vec<(&str, f64, f64)> =
            translated[0].words.iter().map(|word| (word.text.as_str(), word.start, word.end)).collect();
        assert_eq!(times, [("Guten", 0.0, 5.0), (" Tag.", 5.0, 9.0)]);
        let (one, other) = (&translated[1].words[0], &translated[1].words[1]);
        assert_eq!((one.text.as_str(), one.start, other.start, other.end), ("你", 10.0, 14.5, 19.0));
        assert_eq!(translated[1].words.iter().map(|word| word.text.as_str()).collect::<String>(), "你好");
    }

    #[test]
    fn pieces_of_one_utterance_are_joined() {
        let said = transcript(&["one two three four five six seven eight nine ten eleven", "end"]);
        let lines = NumberedLines::of(&said, 44);
        assert!(lines.len() > 3);
        let texts = lines.iter().map(|(number, line)| (number, line.text.to_uppercase())).collect();
        let translated = with_translations(&said, &lines, &texts, "fr");
        assert_eq!(translated[0].text, "ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE TEN ELEVEN");
        assert_eq!(translated[1].text, "END");
    }

    #[test]
    fn what_the_client_says_is_in_the_prompt() {
        let config = |context: &str, is_adapted, informal| TranslationConfig {
            context: Some(context.to_owned()),
            context_adaptation: Some(is_adapted),
            informal: Some(informal),
            ..TranslationConfig::default()
        };
        let plain = prompt("de", &TranslationConfig::default()).instructions;
        assert!(plain.contains("into german (`de`)") && plain.contains("formal form") && !plain.contains("suit"));
        let told = prompt("wo", &config("a court hearing", true, true)).instructions;
        assert!(told.contains("wolof") && told.contains("a court hearing") && told.contains("informal form"));
        assert!(!prompt("de", &config("a court hearing", false, true)).instructions.contains("hearing"));
    }

    #[test]
    fn a_translation_without_end_is_none() {
        let of = |item: Value| read(&item, "Hello.");
        assert_eq!(of(json!({ "text": " Hal\u{7}lo. " })).as_deref(), Some("Hal lo."));
        assert_eq!(of(json!({ "translation": "Hallo." })).as_deref(), Some("Hallo."));
        for wrong in [json!({}), json!({ "text": "" }), json!({ "text": 7 }), json!({ "text": "ha ".repeat(1_000) })] {
            assert_eq!(of(wrong), None);
        }
    }
}
