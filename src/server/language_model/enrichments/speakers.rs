//! `speaker_reidentification`: the names of the speakers, as far as they are said in the recording.

use crate::domain::transcript::Transcript;
use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::{items, number, text};
use crate::server::language_model::lines::{LineHead, NumberedLines};
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a name.
const NAME: usize = 200;

/// Returns a line for each speaker whose name is said: the number and the name; empty if there is none.
///
/// # Errors
/// The model fails, or the speakers were not told apart.
pub async fn make(model: &LanguageModel, transcript: &Transcript, lines: &NumberedLines) -> Result<String, ModelError> {
    let speakers: BTreeSet<usize> =
        transcript.utterances.iter().filter_map(|said| usize::try_from(said.speaker?).ok()).collect();
    if speakers.is_empty() {
        return Err(ModelError::Incomplete("the speakers were not told apart, so that none has a name".to_owned()));
    }
    let question =
        LineQuestion { head: LineHead::Speaker, ..LineQuestion::new(prompt(), "speakers", AnswerSize::Short) };
    let said = transcript.text().to_lowercase();
    let parts = ask_each_part(model, lines, &question, |answer, _| read(answer, &speakers, &said)).await?;
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for (speaker, name) in parts.into_iter().flatten() {
        names.entry(speaker).or_insert(name);
    }
    Ok(names.iter().map(|(speaker, name)| format!("Speaker {speaker}: {name}")).collect::<Vec<_>>().join("\n"))
}

fn prompt() -> Prompt {
    let instructions = "Each line of the transcript begins with the number of its speaker. List the speakers whose name \
                        is said: they introduce themselves, or others address them by it. Give the number and the name, \
                        as it is written. The list is empty if no name is said, or if it is not certain whose it is."
        .to_owned();
    let properties = json!({ "speaker": { "type": "integer" }, "name": { "type": "string" } });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("speakers", properties) }
}

/// Reads the names of an answer: those of known speakers that are in the text. `said` is the text in lower case.
fn read(answer: &Value, speakers: &BTreeSet<usize>, said: &str) -> Result<Vec<(usize, String)>, String> {
    let listed = items(answer, "speakers");
    let one = |item: &Value| {
        let speaker = number(item, "speaker").filter(|speaker| speakers.contains(speaker))?;
        let name = plain(text(item, &["name"])?, NAME, false);
        (!name.is_empty() && said.contains(&name.to_lowercase())).then_some((speaker, name))
    };
    let found: Vec<(usize, String)> = listed.iter().take(speakers.len()).filter_map(one).collect();
    match (found.is_empty() && !listed.is_empty(), answer.get("speakers").is_some() || !listed.is_empty()) {
        (true, _) => Err("none of its names is in the text".to_owned()),
        (false, false) => Err("it has no `speakers`".to_owned()),
        (false, true) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_said_and_of_a_known_speaker() {
        let speakers = BTreeSet::from([0, 1]);
        let of = |answer: Value| read(&answer, &speakers, "i am anna. thank you, bob.");
        let one = |speaker: u32, name: &str| json!({ "speaker": speaker, "name": name });
        let answer = json!({ "speakers": [one(0, "Anna"), one(1, "Carl")] });
        assert_eq!(of(answer).unwrap(), [(0, "Anna".to_owned())]);
        assert_eq!(of(json!({ "speakers": [] })).unwrap(), []);
        for wrong in
            [json!({ "speakers": [one(7, "Bob")] }), json!({ "speakers": [one(1, "Carl")] }), json!({ "x": 1 })]
        {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
