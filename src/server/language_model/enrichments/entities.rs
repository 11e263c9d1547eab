//! `named_entity_recognition`: names and facts that are in the transcript, with the times of their words. What a model
//! names and nobody says is left out.

use crate::domain::transcript::{Transcript, Utterance};
use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::{items, number, text};
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt};
use crate::wire::enrichment::Entity;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The types that are asked for: those of the public service that anybody may name (service-notes 4).
const TYPES: [&str; 24] = [
    "NAME",
    "ORGANIZATION",
    "LOCATION",
    "LOCATION_CITY",
    "LOCATION_COUNTRY",
    "LOCATION_ADDRESS",
    "DATE",
    "TIME",
    "DURATION",
    "AGE",
    "MONEY",
    "PHONE_NUMBER",
    "EMAIL_ADDRESS",
    "URL",
    "OCCUPATION",
    "EVENT",
    "PRODUCT",
    "LANGUAGE",
    "ORIGIN",
    "CONDITION",
    "DRUG",
    "MEDICAL_PROCESS",
    "STATISTICS",
    "VEHICLE_ID",
];

/// The most entities of one answer that are searched for.
const MOST: usize = 1_000;

pub async fn make(
    model: &LanguageModel,
    transcript: &Transcript,
    lines: &NumberedLines,
) -> Result<Vec<Entity>, ModelError> {
    let question = LineQuestion::new(prompt(), "entities", AnswerSize::Short);
    let read = |answer: &Value, part: &[usize]| read(answer, part, lines, transcript);
    let parts = ask_each_part(model, lines, &question, read).await?;
    let mut all: Vec<Entity> = parts.into_iter().flatten().collect();
    all.sort_by(|one, other| one.start.total_cmp(&other.start));
    Ok(all)
}

fn prompt() -> Prompt {
    let instructions = "List the named entities in the numbered lines of the transcript: each time that one is said, \
                        with the number `n` of its line, its type, and its text exactly as it is written in the line. \
                        The list is empty if there are none."
        .to_owned();
    let properties = json!({
        "n": { "type": "integer" },
        "entity_type": { "type": "string", "enum": TYPES },
        "text": { "type": "string" },
    });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("entities", properties) }
}

/// Reads an answer about a part of the transcript. One of whose entities none is in that part is about another text.
fn read(answer: &Value, part: &[usize], lines: &NumberedLines, transcript: &Transcript) -> Result<Vec<Entity>, String> {
    let utterances: BTreeSet<usize> = part.iter().filter_map(|n| lines.get(*n)).map(|line| line.utterance).collect();
    let mut search = EntitySearch { transcript, utterances, letters: BTreeMap::new(), searched: BTreeMap::new() };
    let listed = items(answer, "entities");
    let one = |item: &Value| {
        let kind = type_of(text(item, &["entity_type", "type", "label"])?)?;
        let named = number(item, "n").and_then(|n| lines.get(n)).map(|line| line.utterance);
        search.find(named, text(item, &["text", "entity"])?, kind)
    };
    let found: Vec<Entity> = listed.iter().take(MOST).filter_map(one).collect();
    match found.is_empty() && !listed.is_empty() {
        true => Err("none of its entities is in the text".to_owned()),
        false => Ok(found),
    }
}

/// Returns a type as the public service writes it; `None` if it is no name of a type.
fn type_of(written: &str) -> Option<String> {
    let kind = written.to_ascii_uppercase().replace([' ', '-'], "_");
    let is_name = kind.len() <= 40 && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_name.then_some(kind)
}

/// Finds entities among the words of a part of the transcript.
struct EntitySearch<'t> {
    transcript: &'t Transcript,
    utterances: BTreeSet<usize>,
    letters: BTreeMap<usize, UtteranceLetters>,
    /// Where a text that was found in an utterance is searched next: one that is said twice is found twice.
    searched: BTreeMap<(usize, String), usize>,
}

impl EntitySearch<'_> {
    fn find(&mut self, named: Option<usize>, text: &str, kind: String) -> Option<Entity> {
        let wanted: String = letters_of(text).collect();
        let named = named.filter(|utterance| self.utterances.contains(utterance));
        let others: Vec<usize> = self.utterances.iter().copied().filter(|one| Some(*one) != named).collect();
        named.into_iter().chain(others).find_map(|utterance| self.find_in(utterance, &wanted, &kind))
    }

    fn find_in(&mut self, utterance: usize, wanted: &str, kind: &str) -> Option<Entity> {
        let said = self.transcript.utterances.get(utterance)?;
        let letters = self.letters.entry(utterance).or_insert_with(|| UtteranceLetters::of(said));
        let from = self.searched.entry((utterance, wanted.to_owned())).or_default();
        let (first, last, next) = letters.find(wanted, *from)?;
        *from = next;
        Some(entity(said, first, last, kind))
    }
}

fn entity(said: &Utterance, first: usize, last: usize, kind: &str) -> Entity {
    let words = said.words.get(first..=last).unwrap_or_default();
    let text: String = words.iter().map(|word| word.text.as_str()).collect();
    let text = text.trim().trim_matches(|letter: char| letter.is_ascii_punctuation());
    let (start, end) = (words.first().map_or(said.start, |word| word.start), words.last().map_or(said.end, |w| w.end));
    Entity { entity_type: kind.to_owned(), text: text.to_owned(), start, end, other: Map::new() }
}

/// The letters and digits of an utterance, in lower case and without spaces, and the words that they belong to.
struct UtteranceLetters {
    text: String,
    /// Where each word begins in the text, and where the last one ends.
    begins: Vec<usize>,
}

/// How many letters of a word an entity may lack: the ending of a genitive.
const ENDING: usize = 2;

impl UtteranceLetters {
    fn of(said: &Utterance) -> Self {
        let (mut text, mut begins) = (String::new(), vec![0]);
        for word in &said.words {
            text.extend(letters_of(&word.text));
            begins.push(text.len());
        }
        Self { text, begins }
    }

    /// Returns the first and the last word of the next place at or after `from`, and where to search then. An entity
    /// begins with a word, and ends with one.
    fn find(&self, wanted: &str, mut from: usize) -> Option<(usize, usize, usize)> {
        if wanted.is_empty() {
            return None;
        }
        loop {
            let at = from + self.text.get(from..)?.find(wanted)?;
            let end = at + wanted.len();
            from = at + self.text[at..].chars().next().map_or(1, char::len_utf8);
            // Words without letters begin where the next one begins: the last of them is meant.
            let first = self.begins.partition_point(|begin| *begin <= at) - 1;
            let last = self.begins.partition_point(|begin| *begin < end) - 1;
            let is_word = self.begins[first] == at;
            let lacks = self.begins.get(last + 1).map_or(0, |begin| self.text[end..*begin].chars().count());
            if is_word && lacks <= ENDING {
                return Some((first, last, from));
            }
        }
    }
}

fn letters_of(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    fn found(texts: &[&str], answer: Value) -> Result<Vec<(String, String, f64, f64)>, String> {
        let said = transcript(texts);
        let lines = NumberedLines::of(&said, 1_000);
        let part: Vec<usize> = (1..=lines.len()).collect();
        let entities = read(&answer, &part, &lines, &said)?;
        Ok(entities.into_iter().map(|one| (one.entity_type, one.text, one.start, one.end)).collect())
    }

    fn one(kind: &str, text: &str, start: f64, end: f64) -> (String, String, f64, f64) {
        (kind.to_owned(), text.to_owned(), start, end)
    }

    #[test]
    fn an_entity_has_the_times_of_its_words() {
        let texts = ["Anna met Bob, in New York.", "Then Anna's plane left."];
        let answer = json!({ "entities": [
            { "n": 1, "entity_type": "NAME", "text": "anna" },
            { "n": 1, "entity_type": "location city", "text": "New York" },
            { "n": 1, "type": "NAME", "text": "Bob" },
            { "n": 2, "entity_type": "NAME", "text": "Anna" },
            { "n": 9, "entity_type": "NAME", "text": "Anna" },
        ] });
        let expected = [
            one("NAME", "Anna", 0.0, 0.9),
            one("LOCATION_CITY", "New York", 4.0, 5.9),
            one("NAME", "Bob", 2.0, 2.9),
            one("NAME", "Anna's", 11.0, 11.9),
        ];
        assert_eq!(found(&texts, answer).unwrap(), expected);
    }

    #[test]
    fn what_nobody_says_is_left_out() {
        let texts = ["The annual report is late."];
        let entity = |kind: &str, text: &str| json!({ "n": 1, "entity_type": kind, "text": text });
        let wrong = json!({ "entities": [entity("NAME", "Ann"), entity("NAME", "Carl"), entity("NAME", "port")] });
        assert_eq!(found(&texts, wrong).unwrap_err(), "none of its entities is in the text");
        let some = json!({ "entities": [entity("NAME", "Carl"), entity("<b>", "late"), entity("TIME", "late")] });
        assert_eq!(found(&texts, some).unwrap(), [one("TIME", "late", 4.0, 4.9)]);
        assert_eq!(found(&texts, json!({ "entities": [] })).unwrap(), []);
    }

    #[test]
    fn a_hostile_answer_takes_no_time_without_end() {
        let many = json!({ "n": 1, "entity_type": "NAME", "text": "a".repeat(1_000) });
        let answer = json!({ "entities": vec![many; 20_000] });
        assert_eq!(
            found(&["b b b ".repeat(1_000).trim()], answer.clone()).unwrap_err(),
            "none of its entities is in the text"
        );
        assert_eq!(found(&["a a a ".repeat(1_000).trim()], answer).unwrap().len(), MOST);
    }
}
