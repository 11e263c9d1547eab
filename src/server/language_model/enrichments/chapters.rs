//! `chapterization`: chapters with a title and a summary. They begin where an utterance begins, and cover the recording.

use crate::domain::transcript::Transcript;
use crate::server::language_model::ask::{LineQuestion, ask_each_part};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::found_json::{items, number, text};
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, AnswerSize, Prompt, plain};
use serde::Serialize;
use serde_json::{Value, json};

/// A chapter of a recording, with the fields of the public service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MadeChapter {
    pub summary: String,
    pub headline: String,
    pub gist: String,
    pub keywords: Vec<String>,
    pub start: f64,
    pub end: f64,
}

/// The most characters of a title, and of a summary.
const TITLE: usize = 300;
const SUMMARY: usize = 5_000;

/// The most keywords of a chapter.
const KEYWORDS: usize = 20;

pub async fn make(
    model: &LanguageModel,
    transcript: &Transcript,
    lines: &NumberedLines,
) -> Result<Vec<MadeChapter>, ModelError> {
    let question = LineQuestion::new(prompt(), "chapters", AnswerSize::Short);
    let parts = ask_each_part(model, lines, &question, read).await?;
    Ok(with_times(parts.into_iter().flatten().collect(), transcript, lines))
}

fn prompt() -> Prompt {
    let instructions = "Divide the numbered lines of the transcript into chapters by what they are about; a short \
                        transcript may be one chapter. Give for each chapter, in order, the number `n` of its first \
                        line, a headline, a gist of a few words, a summary of one to three sentences, and keywords. Write \
                        in the language of the transcript."
        .to_owned();
    let properties = json!({
        "n": { "type": "integer" },
        "headline": { "type": "string" },
        "gist": { "type": "string" },
        "summary": { "type": "string" },
        "keywords": { "type": "array", "items": { "type": "string" } },
    });
    Prompt { instructions, text: String::new(), shape: AnswerShape::list("chapters", properties) }
}

/// Reads the chapters of a part with the numbers of their first lines, in order. The first one begins with the part.
fn read(answer: &Value, part: &[usize]) -> Result<Vec<(usize, MadeChapter)>, String> {
    let numbered = |item: &Value| {
        let number = number(item, "n").filter(|number| part.binary_search(number).is_ok())?;
        Some((number, chapter(item)?))
    };
    let mut chapters: Vec<(usize, MadeChapter)> = items(answer, "chapters").iter().filter_map(numbered).collect();
    chapters.sort_by_key(|(number, _)| *number);
    chapters.dedup_by_key(|(number, _)| *number);
    match (chapters.first_mut(), part.first()) {
        (Some(first), Some(begin)) => first.0 = *begin,
        _ => return Err("`chapters` has no chapter that begins with one of the lines".to_owned()),
    }
    Ok(chapters)
}

/// Reads a chapter without its times; `None` without any title.
fn chapter(item: &Value) -> Option<MadeChapter> {
    let of = |name: &str, most: usize| text(item, &[name]).map(|text| plain(text, most, false));
    let (headline, gist, summary) = (of("headline", TITLE), of("gist", TITLE), of("summary", SUMMARY));
    let any = headline.clone().or(gist.clone()).or(summary.clone()).filter(|text| !text.is_empty())?;
    let keywords = item.get("keywords").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let keywords = keywords.iter().filter_map(Value::as_str).map(|keyword| plain(keyword, TITLE, false));
    Some(MadeChapter {
        summary: summary.unwrap_or_else(|| any.clone()),
        gist: gist.unwrap_or_else(|| any.clone()),
        headline: headline.unwrap_or(any),
        keywords: keywords.filter(|keyword| !keyword.is_empty()).take(KEYWORDS).collect(),
        start: 0.0,
        end: 0.0,
    })
}

/// Gives chapters their times: each ends where the next one begins, the last one with the last utterance. Two chapters
/// that begin with the same utterance are one.
fn with_times(chapters: Vec<(usize, MadeChapter)>, transcript: &Transcript, lines: &NumberedLines) -> Vec<MadeChapter> {
    let mut timed: Vec<MadeChapter> = Vec::new();
    for (number, chapter) in chapters {
        let said = lines.get(number).and_then(|line| transcript.utterances.get(line.utterance));
        let start = said.map_or(0.0, |said| said.start);
        match timed.last_mut() {
            Some(last) if start <= last.start => continue,
            Some(last) => last.end = start,
            None => {}
        }
        timed.push(MadeChapter { start, end: start, ..chapter });
    }
    if let Some(last) = timed.last_mut() {
        last.end = transcript.utterances.iter().map(|said| said.end).fold(last.start, f64::max);
    }
    timed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;

    fn times(chapters: &[MadeChapter]) -> Vec<(&str, f64, f64)> {
        chapters.iter().map(|one| (one.headline.as_str(), one.start, one.end)).collect()
    }

    #[test]
    fn chapters_are_in_order_and_cover_the_recording() {
        let said = transcript(&["a", "b", "c", "d", "e", "f"]);
        let lines = NumberedLines::of(&said, 1_000);
        let one = |n: usize, headline: &str| json!({ "n": n, "headline": headline, "keywords": ["k", 7, ""] });
        let first = read(&json!({ "chapters": [one(3, "B"), one(2, "A"), one(3, "x"), one(99, "x")] }), &[1, 2, 3, 4]);
        let first = first.unwrap();
        let second = read(&json!([one(6, "C")]), &[5, 6]).unwrap();
        let all = with_times(first.into_iter().chain(second).collect(), &said, &lines);
        assert_eq!(times(&all), [("A", 0.0, 20.0), ("B", 20.0, 40.0), ("C", 40.0, 59.0)]);
        assert_eq!((all[0].gist.as_str(), all[0].keywords.as_slice()), ("A", &["k".to_owned()][..]));
    }

    #[test]
    fn an_answer_about_other_lines_is_none() {
        for wrong in [json!({}), json!({ "chapters": [{ "n": 7, "headline": "x" }] }), json!([{ "n": 1 }])] {
            assert!(read(&wrong, &[1, 2]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pieces_of_one_utterance_begin_one_chapter() {
        let said = transcript(&["a b c d e f g h i j k l"]);
        let lines = NumberedLines::of(&said, 34);
        let chapter = |n| (n, chapter(&json!({ "headline": "x" })).unwrap());
        let all = with_times(vec![chapter(1), chapter(2)], &said, &lines);
        assert_eq!(times(&all), [("x", 0.0, 9.0)]);
    }
}
