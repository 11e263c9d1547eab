//! What a person types to search: words that must all occur in a passage, `"phrases"`, `-words` that must not occur, and
//! `beginnings*`. Pure but for the terms of the index.

use super::passage::LONGEST_PHRASE;
use super::schema::{IndexFields, is_pair, term_text};
use super::words::{folded_text, words};
use crate::captions::breaks_anywhere;
use crate::domain::language_codes::short_code;
use crate::domain::names::{SourceName, Timestamp};
use serde::{Deserialize, Serialize};
use tantivy::Term;
use tantivy::query::{BooleanQuery, ConstScoreQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

/// The longest query, in characters.
const LONGEST: usize = 1_000;

/// The most words and phrases of a query.
const MOST_CLAUSES: usize = 16;

/// The fewest letters before a `*`: with fewer, the passages are too many to be of use.
const SHORTEST_BEGINNING: usize = 3;

/// Which passages are looked for besides their words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassageFilter {
    pub source: Option<SourceName>,
    /// Only recordings of this time or later.
    pub since: Option<Timestamp>,
    /// Only recordings before this time.
    pub before: Option<Timestamp>,
    /// The name, or `Speaker 1`.
    pub speaker: Option<String>,
    pub language: Option<String>,
}

/// Why a query cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("the query has no word to look for: give a word, or a \"phrase\" in quotation marks")]
    Empty,
    #[error("the query only excludes words: give a word to look for, too")]
    OnlyExcluded,
    #[error("a quotation mark is not closed: a phrase is written \"like this\"")]
    OpenQuote,
    #[error("the query has more than {LONGEST} characters")]
    TooLong,
    #[error(
        "the query has more than {MOST_CLAUSES} words and phrases: put words that follow each other into quotation marks"
    )]
    TooMany,
    #[error(
        "a phrase has at most {LONGEST_PHRASE} words (in Chinese, Japanese and the like characters): shorten {0:?}"
    )]
    LongPhrase(String),
    #[error("before `*` there must be at least {SHORTEST_BEGINNING} letters of one word: {0:?} has not")]
    ShortBeginning(String),
}

/// A query that can be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedQuery {
    pub wanted: Vec<Clause>,
    excluded: Vec<Clause>,
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clause {
    /// Words that follow each other; at least one.
    Words(Vec<String>),
    /// A word that begins so.
    Beginning(String),
}

impl ParsedQuery {
    /// Parses a query.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.chars().count() > LONGEST {
            return Err(QueryError::TooLong);
        }
        let mut query = Self { wanted: Vec::new(), excluded: Vec::new() };
        for part in parts(text)? {
            let Some(clause) = part.clause()? else { continue };
            let clauses = if part.is_excluded { &mut query.excluded } else { &mut query.wanted };
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        }
        match (query.wanted.len(), query.excluded.len()) {
            (0, 0) => Err(QueryError::Empty),
            (0, _) => Err(QueryError::OnlyExcluded),
            (wanted, excluded) if wanted + excluded > MOST_CLAUSES => Err(QueryError::TooMany),
            _ => Ok(query),
        }
    }

    /// Returns the query as the index takes it. `times` finds the passages of the filter's time.
    pub fn build(&self, filter: &PassageFilter, times: Option<Box<dyn Query>>, fields: &IndexFields) -> Box<dyn Query> {
        let wanted = self.wanted.iter().map(|clause| (Occur::Must, clause.build(fields)));
        let excluded = self.excluded.iter().map(|clause| (Occur::MustNot, clause.build(fields)));
        let filters = filter.build(fields).into_iter().chain(times.map(unscored)).map(|filter| (Occur::Must, filter));
        let mut clauses: Vec<_> = wanted.chain(filters).chain(excluded).collect();
        match clauses.len() {
            1 => clauses.remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        }
    }
}

/// A part of a query as it is typed.
struct TypedPart<'t> {
    text: &'t str,
    is_excluded: bool,
    is_phrase: bool,
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}')
}

/// Divides a query at white space and quotation marks.
fn parts(text: &str) -> Result<Vec<TypedPart<'_>>, QueryError> {
    let (mut parts, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let unsigned = rest.strip_prefix('-').unwrap_or(rest);
        let is_excluded = first == '-';
        if let Some(behind) = unsigned.strip_prefix(is_quote) {
            let end = behind.find(is_quote).ok_or(QueryError::OpenQuote)?;
            parts.push(TypedPart { text: &behind[..end], is_excluded, is_phrase: true });
            rest = behind[end..].strip_prefix(is_quote).unwrap_or_default().trim_start();
        } else {
            let end = unsigned.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(unsigned.len());
            parts.push(TypedPart { text: &unsigned[..end], is_excluded, is_phrase: false });
            rest = unsigned[end..].trim_start();
        }
    }
    Ok(parts)
}

impl TypedPart<'_> {
    /// Returns what is looked for; `None` if the part has no letter and no digit.
    fn clause(&self) -> Result<Option<Clause>, QueryError> {
        let found: Vec<String> = words(self.text).map(|word| word.folded.into_owned()).collect();
        let is_beginning = !self.is_phrase && self.text.ends_with('*');
        match found.len() {
            0 => Ok(None),
            count if count > LONGEST_PHRASE => Err(QueryError::LongPhrase(self.text.to_owned())),
            // In scripts without spaces each run of characters is a beginning.
            _ if !is_beginning || found.iter().all(|word| word.contains(breaks_anywhere)) => {
                Ok(Some(Clause::Words(found)))
            }
            1 if found[0].chars().count() >= SHORTEST_BEGINNING => Ok(Some(Clause::Beginning(found[0].clone()))),
            _ => Err(QueryError::ShortBeginning(self.text.to_owned())),
        }
    }
}

impl Clause {
    fn build(&self, fields: &IndexFields) -> Box<dyn Query> {
        let term = |word: &str, option| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_text(fields.words, word), option))
        };
        match self {
            Self::Words(words) => match words.as_slice() {
                [word] => term(word, IndexRecordOption::WithFreqs),
                [left, right] if is_pair(left, right) => pair(fields, left, right, false),
                words => phrase(fields, words),
            },
            Self::Beginning(beginning) => {
                Box::new(FuzzyTermQuery::new_prefix(Term::from_field_text(fields.words, beginning), 0, true))
            }
        }
    }
}

fn pair(fields: &IndexFields, left: &str, right: &str, is_following: bool) -> Box<dyn Query> {
    let text = term_text(&format!("{left} {right}"), is_following);
    Box::new(TermQuery::new(Term::from_field_text(fields.pairs, &text), IndexRecordOption::Basic))
}

/// Returns a phrase, wherever it leaves the passage in which it begins: each passage has the first words of what follows,
/// marked.
fn phrase(fields: &IndexFields, words: &[String]) -> Box<dyn Query> {
    let variants = (1..=words.len()).map(|own| (Occur::Should, phrase_leaving(fields, words, own))).collect();
    Box::new(BooleanQuery::new(variants))
}

/// Returns a phrase of which the first `own` words are in the passage, and the others follow. Its pairs that are terms
/// have to be there as well, which is quicker to find out.
fn phrase_leaving(fields: &IndexFields, words: &[String], own: usize) -> Box<dyn Query> {
    let terms = words.iter().enumerate();
    let terms = terms.map(|(at, word)| Term::from_field_text(fields.words, &term_text(word, at >= own))).collect();
    let pairs = words.windows(2).enumerate().filter(|(_, pair)| is_pair(&pair[0], &pair[1]));
    let pairs = pairs.map(|(at, words)| pair(fields, &words[0], &words[1], at >= own));
    let pairs = pairs.map(|pair| (Occur::Must, unscored(pair)));
    let whole: Box<dyn Query> = Box::new(PhraseQuery::new(terms));
    let mut clauses: Vec<_> = pairs.chain([(Occur::Must, whole)]).collect();
    match clauses.len() {
        1 => clauses.remove(0).1,
        _ => Box::new(BooleanQuery::new(clauses)),
    }
}

impl PassageFilter {
    fn build(&self, fields: &IndexFields) -> Vec<Box<dyn Query>> {
        let text = |field, text: &str| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic))
        };
        let source = self.source.as_ref().map(|source| text(fields.source, source.as_str()));
        let speaker = self.speaker.as_ref().map(|speaker| text(fields.speaker, &folded_text(speaker)));
        let language = self.language.as_ref().map(|language| text(fields.language, &short_code(language)));
        [source, speaker, language].into_iter().flatten().map(unscored).collect()
    }
}

fn unscored(query: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words_of(clause: &Clause) -> String {
        match clause {
            Clause::Words(words) => words.join(" "),
            Clause::Beginning(beginning) => format!("{beginning}*"),
        }
    }

    fn of(text: &str) -> String {
        match ParsedQuery::parse(text) {
            Ok(query) => {
                let wanted = query.wanted.iter().map(words_of);
                wanted
                    .chain(query.excluded.iter().map(|one| format!("-{}", words_of(one))))
                    .collect::<Vec<_>>()
                    .join(" | ")
            }
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn words_phrases_exclusions_and_beginnings() {
        assert_eq!(of("Budget  café"), "budget | cafe");
        assert_eq!(of("\"the Budget,\" -\"last year\" -no"), "the budget | -last year | -no");
        assert_eq!(of("l'homme don\u{2019}t"), "l homme | don t");
        assert_eq!(of("budg* 今天* 今天"), "budg* | 今 天");
        assert_eq!(of("a\"b c\"d \u{201c}e f\u{201d}"), "a | b c | d | e f");
        assert_eq!(of("a & - a"), "a");
    }

    #[test]
    fn what_cannot_be_looked_for_is_told() {
        assert_eq!(of(" & \"\" "), "Empty");
        assert_eq!(of("-a"), "OnlyExcluded");
        assert_eq!(of("\"a b"), "OpenQuote");
        assert_eq!(of("ab*"), "ShortBeginning(\"ab*\")");
        assert_eq!(of("l'homme*"), "ShortBeginning(\"l'homme*\")");
        assert_eq!(of(&"x".repeat(1_001)), "TooLong");
        assert_eq!(of(&(0..17).map(|at| format!("w{at} ")).collect::<String>()), "TooMany");
        assert!(of(&format!("\"{}\"", "w ".repeat(17))).starts_with("LongPhrase"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_an_error(text in "\\PC{0,60}|[a\"“«* '今-]{0,40}") {
            if let Ok(query) = ParsedQuery::parse(&text) {
                query.build(&PassageFilter::default(), None, &IndexFields::new());
            }
        }
    }
}
