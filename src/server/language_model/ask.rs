//! Asks a language model about a whole transcript: part by part, and again where an answer cannot be used.

use super::client::LanguageModel;
use super::completion::Completion;
use super::found_json::{find_json, items, number};
use super::lines::{LineHead, NumberedLines};
use super::model_error::ModelError;
use super::prompt::{AnswerSize, Prompt};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::collections::BTreeMap;

/// How often a prompt is asked until its answer can be used.
const ATTEMPTS: usize = 3;

/// What part of the room for text lines have that are asked for, and that answers lacked; at the end each is alone.
const ROUNDS: [usize; 3] = [1, 4, usize::MAX];

/// The most lines that are asked for one by one.
const ALONE: usize = 50;

/// The most requests about one transcript for one enrichment: a day of speech in a small context.
const MOST_PARTS: usize = 2_000;

/// Asks until the answer can be read.
///
/// # Errors
/// There is no answer, or none of them can be read.
pub async fn ask<T>(
    model: &LanguageModel,
    prompt: &Prompt,
    read: impl Fn(&Completion) -> Result<T, String>,
) -> Result<T, ModelError> {
    let mut wrong: Option<String> = None;
    for _ in 0..ATTEMPTS {
        let completion = model.complete(prompt, wrong.as_deref()).await?;
        match read(&completion) {
            Ok(answer) => return Ok(answer),
            Err(why) => wrong = Some(why),
        }
    }
    Err(ModelError::Unusable(wrong.unwrap_or_default()))
}

/// Reads the JSON of an answer, or of what is whole of it.
pub fn json_of(completion: &Completion) -> Result<Value, String> {
    find_json(&completion.text).ok_or_else(|| match completion.is_truncated {
        true => "it is longer than it may be, and is incomplete".to_owned(),
        false => "it is no JSON".to_owned(),
    })
}

/// What is asked about each line, or about all lines of a part.
pub struct LineQuestion<'q> {
    /// The prompt without its text.
    pub prompt: Prompt,
    /// The property of the answer with the list.
    pub list: &'q str,
    pub size: AnswerSize,
    pub head: LineHead,
}

impl<'q> LineQuestion<'q> {
    /// A question about numbered lines.
    pub fn new(prompt: Prompt, list: &'q str, size: AnswerSize) -> Self {
        Self { prompt, list, size, head: LineHead::Number }
    }

    fn about(&self, lines: &NumberedLines, part: &[usize]) -> Prompt {
        Prompt { text: lines.written(part, self.head), ..self.prompt.clone() }
    }
}

/// Asks for one thing about each line: about those that an answer lacks again, in smaller parts. `read` makes it out of
/// an item of the answer and the number of its line. Returns what there is by the number of the line.
///
/// # Errors
/// The model fails, or answers about no line.
pub async fn ask_each_line<T>(
    model: &LanguageModel,
    lines: &NumberedLines,
    question: &LineQuestion<'_>,
    read: impl Fn(&Value, usize) -> Option<T>,
) -> Result<BTreeMap<usize, T>, ModelError> {
    let (mut found, mut wrong) = (BTreeMap::new(), String::new());
    let bytes = model.context().text_bytes(&question.prompt, question.size)?;
    for share in ROUNDS {
        let missing: Vec<usize> = (1..=lines.len()).filter(|number| !found.contains_key(number)).collect();
        if missing.is_empty() || share == usize::MAX && missing.len() > ALONE {
            break;
        }
        let parts = checked(lines.parts(missing, bytes / share))?;
        let is_one = parts.len() == 1;
        let read = &read;
        let answer = |part: Vec<usize>| async move {
            let prompt = question.about(lines, &part);
            ask(model, &prompt, |completion| each_line(completion, &part, question.list, read)).await
        };
        let mut answers = stream::iter(parts).map(answer).buffered(model.concurrency());
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(answer) => found.extend(answer),
                // Smaller parts may do.
                Err(ModelError::Unusable(why)) => wrong = why,
                Err(error) => return Err(error),
            }
        }
        // A model that answers about none of many parts answers about no smaller ones.
        if found.is_empty() && !is_one {
            break;
        }
    }
    if found.is_empty() && !lines.is_empty() {
        return Err(ModelError::Unusable(wrong));
    }
    Ok(found)
}

/// Reads an answer about each line of a part; one that says nothing about any of them is none.
fn each_line<T>(
    completion: &Completion,
    part: &[usize],
    list: &str,
    read: impl Fn(&Value, usize) -> Option<T>,
) -> Result<BTreeMap<usize, T>, String> {
    let answer = json_of(completion)?;
    let mut found = BTreeMap::new();
    for item in items(&answer, list) {
        let line = number(item, "n").filter(|number| part.binary_search(number).is_ok());
        if let Some((line, value)) = line.and_then(|line| Some((line, read(item, line)?))) {
            found.entry(line).or_insert(value);
        }
    }
    match found.is_empty() {
        true => Err(format!("`{list}` has no item that is about one of the lines")),
        false => Ok(found),
    }
}

/// Asks about each part of a transcript, and returns the answers in order.
///
/// # Errors
/// The model fails, or its answer about a part cannot be read.
pub async fn ask_each_part<T>(
    model: &LanguageModel,
    lines: &NumberedLines,
    question: &LineQuestion<'_>,
    read: impl Fn(&Value, &[usize]) -> Result<T, String>,
) -> Result<Vec<T>, ModelError> {
    let bytes = model.context().text_bytes(&question.prompt, question.size)?;
    let parts = checked(lines.parts(1..=lines.len(), bytes))?;
    let read = &read;
    let answer = |part: Vec<usize>| async move {
        let prompt = question.about(lines, &part);
        ask(model, &prompt, |completion| read(&json_of(completion)?, &part)).await
    };
    stream::iter(parts).map(answer).buffered(model.concurrency()).try_collect().await
}

/// How a text is made of a transcript: of the whole if that fits, otherwise of notes about its parts.
pub struct Condensing<'c> {
    /// The prompt about the whole transcript, without its text.
    pub whole: Prompt,
    /// The prompt for notes about a part of it.
    pub part: Prompt,
    /// The prompt about notes about all of it.
    pub notes: Prompt,
    /// Reads the answer to `whole` and to `notes`.
    pub read: &'c (dyn Fn(&Completion) -> Result<String, String> + Sync),
}

/// Makes a text of a transcript.
///
/// # Errors
/// The model fails, or one of its answers cannot be read.
pub async fn condense(
    model: &LanguageModel,
    lines: &NumberedLines,
    condensing: &Condensing<'_>,
) -> Result<String, ModelError> {
    let Condensing { whole, part, notes, read } = condensing;
    let room = |prompt: &Prompt| model.context().text_bytes(prompt, AnswerSize::Short);
    let bytes = room(whole)?.min(room(part)?).min(room(notes)?);
    let all: Vec<usize> = (1..=lines.len()).collect();
    let parts = checked(lines.parts(all, bytes))?;
    let mut texts: Vec<String> = parts.iter().map(|part| lines.written(part, LineHead::Speaker)).collect();
    let last = if texts.len() > 1 { notes } else { whole };
    // Notes are so short that three and more of them are one text: each round leaves a third at most.
    while texts.len() > 1 {
        let note = |text: String| async move {
            let prompt = Prompt { text, ..part.clone() };
            ask(model, &prompt, |completion| note_of(completion, bytes / 3)).await
        };
        let made: Vec<String> = stream::iter(texts).map(note).buffered(model.concurrency()).try_collect().await?;
        texts = joined(made, bytes);
    }
    let text = texts.pop().unwrap_or_default();
    ask(model, &Prompt { text, ..last.clone() }, read).await
}

/// Reads a note about a part. It may be cut off: it is no result.
fn note_of(completion: &Completion, bytes: usize) -> Result<String, String> {
    let note = &completion.text[..completion.text.floor_char_boundary(bytes.saturating_sub(1))];
    match note.trim() {
        "" => Err("it is empty".to_owned()),
        note => Ok(format!("{note}\n")),
    }
}

/// Joins texts, in order, into as few as there is room for.
fn joined(texts: Vec<String>, bytes: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        match all.last_mut().filter(|last| last.len() + text.len() <= bytes) {
            Some(last) => last.push_str(&text),
            None => all.push(text),
        }
    }
    all
}

fn checked<T>(parts: Vec<T>) -> Result<Vec<T>, ModelError> {
    if parts.len() <= MOST_PARTS {
        return Ok(parts);
    }
    let count = parts.len();
    Err(ModelError::NoRoom(format!(
        "it would need {count} requests, and at most {MOST_PARTS} are made; use a model with a larger `context`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::completion;

    #[test]
    fn an_answer_is_about_lines_of_its_part() {
        let read = |text: &str| {
            let said = |item: &Value, _| item["text"].as_str().map(str::to_owned);
            each_line(&completion(text), &[4, 5, 6], "lines", said)
        };
        let found = read(r#"{"lines":[{"n":4,"text":"a"},{"n":"5:","text":"b"},{"n":4,"text":"c"},{"n":6,"text":7}]}"#);
        assert_eq!(found.unwrap(), BTreeMap::from([(4, "a".to_owned()), (5, "b".to_owned())]));
        for (text, why) in [
            (r#"{"lines":[{"n":1,"text":"a"}]}"#, "no item that is about one of the lines"),
            (r#"{"lines":[]}"#, "no item"),
            ("I am sorry.", "it is no JSON"),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.contains(why), "{wrong}");
        }
    }

    #[test]
    fn notes_are_short_and_joined_as_far_as_they_fit() {
        assert_eq!(note_of(&completion(&"é".repeat(100)), 30).unwrap(), format!("{}\n", "é".repeat(14)));
        assert!(note_of(&completion(" "), 30).is_err());
        let notes = vec!["aaaa".to_owned(), "bbbb".to_owned(), "cccc".to_owned()];
        assert_eq!(joined(notes, 8), ["aaaabbbb", "cccc"]);
    }

    #[test]
    fn a_transcript_may_need_too_many_requests() {
        assert!(checked(vec![(); MOST_PARTS]).is_ok());
        assert!(matches!(checked(vec![(); MOST_PARTS + 1]), Err(ModelError::NoRoom(_))));
    }
}
