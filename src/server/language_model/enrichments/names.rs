//! `name_consistency`: names that are written in several ways. The transcript keeps them as they are.

use crate::domain::transcript::Transcript;
use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::{items, text};
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a name, and the most names of one answer.
const NAME: usize = 200;
const NAMES: usize = 200;

/// Returns a line for each name: the name, and the other ways in which it is written; empty if there is none.
///
/// # Errors
/// The model fails.
pub async fn make(model: &LanguageModel, transcript: &Transcript, lines: &NumberedLines) -> Result<String, ModelError> {
    let question = LineQuestion::new(prompt(), "names", AnswerSize::Short);
    let said = transcript.text().to_lowercase();
    let parts = ask_each_part(model, lines, &question, |answer, _| read(answer, &said)).await?;
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, variants) in parts.into_iter().flatten() {
        all.entry(name).or_default().extend(variants);
    }
    let line = |(name, variants): (String, BTreeSet<String>)| {
        format!("{name}: {}", variants.into_iter().collect::<Vec<_>>().join(", "))
    };
    Ok(all.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn prompt() -> Prompt {
    let instructions =
        "Find names of people, organizations and places that the transcript writes in more than one way, \
                        although the same is meant. List each with its most likely spelling as `name`, and the other \
                        ways in which it is written as `variants`, exactly as they are written. The list is empty if \
                        there are none."
            .to_owned();
    let variants = json!({ "type": "array", "items": { "type": "string" } });
    let properties = json!({ "name": { "type": "string" }, "variants": variants });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("names", properties) }
}

/// Reads the names of an answer: those of which a variant is in the text. `said` is the text in lower case.
fn read(answer: &Value, said: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let listed = items(answer, "names");
    let one = |item: &Value| {
        let name = plain(text(item, &["name"])?, NAME, false);
        let variants = item.get("variants")?.as_array()?.iter().filter_map(Value::as_str).take(NAMES);
        let variants = variants.map(|variant| plain(variant, NAME, false));
        let is_said = |variant: &String| !variant.is_empty() && said.contains(&variant.to_lowercase());
        let variants: Vec<String> = variants.filter(|variant| *variant != name && is_said(variant)).collect();
        (!name.is_empty() && !variants.is_empty()).then_some((name, variants))
    };
    let found: Vec<(String, Vec<String>)> = listed.iter().take(NAMES).filter_map(one).collect();
    match (found.is_empty() && !listed.is_empty(), answer.get("names").is_some() || !listed.is_empty()) {
        (true, _) => Err("none of its variants is in the text".to_owned()),
        (false, false) => Err("it has no `names`".to_owned()),
        (false, true) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_in_the_text() {
        let said = "ana smith met anna smyth";
        let one = |name: &str, variants: Value| json!({ "name": name, "variants": variants });
        let answer = json!({ "names": [one("Anna Smith", json!(["Ana Smith", "Anna Smyth", "Carl", 7])), one("Bob", json!(["Rob"]))] });
        let expected = vec![("Anna Smith".to_owned(), vec!["Ana Smith".to_owned(), "Anna Smyth".to_owned()])];
        assert_eq!(read(&answer, said).unwrap(), expected);
        assert!(read(&json!({ "names": [one("Bob", json!(["Rob"]))] }), said).is_err());
        assert_eq!(read(&json!({ "names": [] }), said).unwrap(), []);
        assert!(read(&json!({ "x": 1 }), said).is_err());
    }
}
