//! Where in a passage a query is met: when that is said, and an excerpt with the words marked. Pure.

use super::passage::Passage;
use super::query::{Clause, ParsedQuery};
use super::words::words;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// The length of an excerpt in bytes, about.
const LENGTH: usize = 200;

/// How much of it precedes the first match.
const BEFORE: usize = 60;

/// A piece of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcerptPart {
    pub text: String,
    /// Whether it is what was looked for.
    pub is_match: bool,
}

/// Where a query is met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedHit {
    /// Milliseconds from the start of the recording.
    pub start_ms: u64,
    pub excerpt: Vec<ExcerptPart>,
}

/// A match: its words, by number, and which part of the query it is of.
struct Match {
    words: Range<usize>,
    clause: usize,
}

/// Locates a query in a passage that meets it.
pub fn locate(query: &ParsedQuery, passage: &Passage) -> LocatedHit {
    let text = whole_text(passage);
    let (places, folded): (Vec<Range<usize>>, Vec<Cow<'_, str>>) =
        words(&text).map(|word| (word.place, word.folded)).unzip();
    let own = passage.starts.len().min(places.len());
    let matches = matches(query, &folded, own);
    let first = densest(&matches, &places);
    let start_ms = first.and_then(|first| passage.starts.get(first.words.start)).or(passage.starts.first());
    let begin = first.map_or(0, |first| places[first.words.start].start);
    let marked: Vec<Range<usize>> =
        matches.iter().map(|one| places[one.words.start].start..places[one.words.end - 1].end).collect();
    LocatedHit { start_ms: start_ms.copied().unwrap_or(0), excerpt: excerpt(&text, &places, begin, &marked) }
}

fn whole_text(passage: &Passage) -> String {
    let space = if passage.next.is_empty() { "" } else { " " };
    format!("{}{space}{}", passage.text, passage.next)
}

/// Returns all matches, in their order. Each begins in the first `own` words: the others are of other passages.
fn matches(query: &ParsedQuery, folded: &[Cow<'_, str>], own: usize) -> Vec<Match> {
    let mut found = Vec::new();
    for (clause, wanted) in query.wanted.iter().enumerate() {
        for at in 0..own {
            let length = match wanted {
                Clause::Words(phrase) => {
                    let is_here = folded.get(at..at + phrase.len()).is_some_and(|here| here == phrase.as_slice());
                    is_here.then_some(phrase.len())
                }
                Clause::Beginning(beginning) => folded[at].starts_with(beginning.as_str()).then_some(1),
            };
            found.extend(length.map(|length| Match { words: at..at + length, clause }));
        }
    }
    found.sort_by_key(|one| one.words.start);
    found
}

/// Returns the match from which on an excerpt has the most parts of the query; the first one of these.
fn densest<'m>(matches: &'m [Match], places: &[Range<usize>]) -> Option<&'m Match> {
    let mut best: Option<(usize, &Match)> = None;
    for (at, first) in matches.iter().enumerate() {
        let end = places[first.words.start].start + LENGTH - BEFORE;
        let near = matches[at..].iter().take_while(|one| places[one.words.end - 1].end <= end);
        let mut clauses: Vec<usize> = near.map(|one| one.clause).collect();
        clauses.sort_unstable();
        clauses.dedup();
        if best.is_none_or(|(most, _)| clauses.len() > most) {
            best = Some((clauses.len(), first));
        }
    }
    best.map(|(_, first)| first)
}

/// Cuts an excerpt at words around `begin`, and marks what is `marked`.
fn excerpt(text: &str, places: &[Range<usize>], begin: usize, marked: &[Range<usize>]) -> Vec<ExcerptPart> {
    let from = match begin.checked_sub(BEFORE) {
        Some(earliest) => places.iter().map(|place| place.start).find(|start| *start >= earliest).unwrap_or(begin),
        None => 0,
    };
    let last = marked.iter().filter(|place| place.start == begin).map(|place| place.end).max().unwrap_or(begin);
    let fits = |end: &usize| *end <= (from + LENGTH).max(last);
    let to = match text.len() <= from + LENGTH {
        true => text.len(),
        false => places.iter().map(|place| place.end).take_while(fits).last().unwrap_or(text.len()),
    };
    let (mut parts, mut at) = (Vec::new(), from);
    let mut put = |text: &str, is_match| {
        if !text.is_empty() {
            parts.push(ExcerptPart { text: text.to_owned(), is_match });
        }
    };
    if from > 0 {
        put("…", false);
    }
    for place in marked.iter().filter(|place| place.start >= from && place.end <= to) {
        // Matches of several parts of a query may overlap.
        put(&text[at..place.start.max(at)], false);
        put(&text[place.start.max(at)..place.end.max(at)], true);
        at = at.max(place.end);
    }
    put(&text[at..to], false);
    if to < text.len() {
        put("…", false);
    }
    parts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passage(text: &str, next: &str) -> Passage {
        let starts = (0..words(text).count() as u64).map(|at| at * 1_000).collect();
        Passage { text: text.to_owned(), next: next.to_owned(), starts, ..Passage::default() }
    }

    fn of(query: &str, text: &str, next: &str) -> (u64, String) {
        let located = locate(&ParsedQuery::parse(query).unwrap(), &passage(text, next));
        let shown = |part: &ExcerptPart| if part.is_match { format!("[{}]", part.text) } else { part.text.clone() };
        (located.start_ms, located.excerpt.iter().map(shown).collect())
    }

    #[test]
    fn a_hit_has_the_time_of_its_word() {
        assert_eq!(of("cafe", "We met, at the Café.", ""), (4_000, "We met, at the [Café].".to_owned()));
        assert_eq!(
            of("\"the cafe closed\"", "at the Café", "closed then"),
            (1_000, "at [the Café closed] then".to_owned())
        );
        assert_eq!(of("bud* the", "the Budget", "budgets"), (0, "[the] [Budget] budgets".to_owned()));
        assert_eq!(of("天气", "今天天气很好。", ""), (2_000, "今天[天气]很好。".to_owned()));
        assert_eq!(of("\"a b\" b", "a b a b", ""), (0, "[a b] [a b]".to_owned()));
    }

    #[test]
    fn an_excerpt_is_where_most_of_the_query_is() {
        let filler = "word ".repeat(60);
        let text = format!("alpha {filler}alpha beta {filler}");
        let (start, shown) = of("alpha beta", &text, "");
        assert_eq!(start, 61_000);
        assert!(
            shown.starts_with("…word ") && shown.contains("[alpha] [beta] word") && shown.ends_with("word…"),
            "{shown}"
        );
        assert!(shown.len() < 230, "{shown}");
    }

    proptest! {
        #[test]
        fn any_passage_has_an_excerpt(
            query in "[ab]{1,3}( \"[ab] [ab今]\")?( a\\*b)?", text in "[ab今 ,é\u{301}]{0,300}", next in "[ab今 ]{0,30}",
        ) {
            if let Ok(query) = ParsedQuery::parse(&query) {
                let whole: String = locate(&query, &passage(&text, &next)).excerpt.into_iter().map(|part| part.text).collect();
                prop_assert!(whole_text(&passage(&text, &next)).contains(whole.trim_matches('…')));
            }
        }
    }
}
