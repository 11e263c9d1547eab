//! The fields of the index, and how texts become terms. A change of anything here, in `words`, `passage` or `stored` needs
//! another [`VERSION`]: then the index is built again.

use super::passage::Passage;
use super::stored;
use super::words::{folded_text, words};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{IndexSettings, TantivyDocument, Term};

/// The version of the index. It is in the name of a field, so that an index of another version has another schema.
const VERSION: u32 = 2;

/// Stands between the text of a passage and what follows, and begins the terms of what follows: a word of it is found in
/// its own passage only, and a phrase in the passage in which it begins.
pub const FOLLOWING: char = '\u{1}';

/// The most letters of a short word. Pairs of short words are terms, too: phrases of the most frequent words would
/// otherwise be looked for in most passages.
const SHORT: usize = 5;

/// The most letters of a word whose pairs with every other word are terms: articles and prepositions are in most passages.
const VERY_SHORT: usize = 3;

pub const AT: &str = "at";
pub const JOB: &str = "job";

const WORDS: &str = "words";
const PAIRS: &str = "pairs";

/// The fields of the index.
#[derive(Debug, Clone)]
pub struct IndexFields {
    pub schema: Schema,
    /// The words of a passage and of what follows, with their positions.
    pub words: Field,
    /// The pairs of words of [`is_pair`].
    pub pairs: Field,
    pub job: Field,
    /// Of one document for each job: what of the job the index has, by its version.
    pub head: Field,
    pub source: Field,
    pub speaker: Field,
    pub language: Field,
    /// The date of the recording, as a column.
    pub at: Field,
    /// The date of the recording, as a term: which recordings are the newest ones is known without the column.
    pub date: Field,
    /// What is kept of the passage.
    pub stored: Field,
}

impl IndexFields {
    pub fn new() -> Self {
        let mut builder = Schema::builder();
        let text = |tokenizer: &str, option| {
            let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
            TextOptions::default().set_indexing_options(indexing.set_fieldnorms(tokenizer == WORDS))
        };
        let words = builder.add_text_field(WORDS, text(WORDS, IndexRecordOption::WithFreqsAndPositions));
        let pairs = builder.add_text_field(PAIRS, text(PAIRS, IndexRecordOption::Basic));
        let job = builder.add_u64_field(JOB, FAST | INDEXED);
        let head = builder.add_text_field(&format!("head{VERSION}"), STRING);
        let source = builder.add_text_field("source", STRING);
        let speaker = builder.add_text_field("speaker", STRING);
        let language = builder.add_text_field("language", STRING);
        let at = builder.add_i64_field(AT, FAST);
        let date = builder.add_i64_field("date", INDEXED);
        let stored = builder.add_bytes_field("stored", STORED);
        Self { schema: builder.build(), words, pairs, job, head, source, speaker, language, at, date, stored }
    }

    /// Returns the documents of a job.
    pub fn documents<'a>(&'a self, job: &'a JobText, passages: &'a [Passage]) -> impl Iterator<Item = TantivyDocument> {
        let mut head = TantivyDocument::default();
        head.add_u64(self.job, job.job.0);
        head.add_text(self.head, head_term(job.job, &job.version));
        std::iter::once(head).chain(passages.iter().map(|passage| self.document(job, passage)))
    }

    fn document(&self, job: &JobText, passage: &Passage) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        let text = format!("{}{FOLLOWING}{}", passage.text, passage.next);
        document.add_text(self.pairs, &text);
        document.add_text(self.words, text);
        document.add_u64(self.job, job.job.0);
        document.add_text(self.source, job.source.as_str());
        document.add_i64(self.at, job.at.0);
        document.add_i64(self.date, job.at.0);
        if let Some(speaker) = &passage.speaker {
            document.add_text(self.speaker, folded_text(speaker));
        }
        if let Some(language) = &passage.language {
            document.add_text(self.language, language);
        }
        document.add_bytes(self.stored, &stored::encode(passage));
        document
    }

    /// Returns the term of all documents of a job.
    pub fn job_term(&self, job: JobId) -> Term {
        Term::from_field_u64(self.job, job.0)
    }

    /// Returns the term of the job's head, if the index has this version of it.
    pub fn head_term(&self, job: JobId, version: &Hash) -> Term {
        Term::from_field_text(self.head, &head_term(job, version))
    }
}

fn head_term(job: JobId, version: &Hash) -> String {
    format!("{job} {version}")
}

/// What the index has of a job besides its passages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobText {
    pub job: JobId,
    pub source: SourceName,
    /// The date of the recording.
    pub at: Timestamp,
    /// Another one if anything of the job that the index has is different.
    pub version: Hash,
}

/// Whether two words that follow each other are a term.
pub fn is_pair(left: &str, right: &str) -> bool {
    let is_at_most = |word: &str, letters| word.chars().nth(letters).is_none();
    is_at_most(left, SHORT) && is_at_most(right, SHORT) || [left, right].iter().any(|word| is_at_most(word, VERY_SHORT))
}

/// Returns the term of a word in `words`, or of a pair in `pairs`.
pub fn term_text(word: &str, is_following: bool) -> String {
    if is_following { format!("{FOLLOWING}{word}") } else { word.to_owned() }
}

pub fn settings() -> IndexSettings {
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}

pub fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    manager.register(WORDS, PassageTokenizer { pairs: false });
    manager.register(PAIRS, PassageTokenizer { pairs: true });
    manager
}

/// Divides the text of a passage and of what follows, as [`IndexFields::documents`] joins them, into terms.
#[derive(Clone)]
struct PassageTokenizer {
    pairs: bool,
}

impl Tokenizer for PassageTokenizer {
    type TokenStream<'a> = PassageTokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PassageTokens<'a> {
        let (own, following) = text.split_once(FOLLOWING).unwrap_or((text, ""));
        let folded = |text: &'a str| words(text).map(|word| word.folded);
        let all = folded(own).map(|word| (word, false)).chain(folded(following).map(|word| (word, true)));
        PassageTokens { words: Box::new(all), last: None, pairs: self.pairs, token: Token::default() }
    }
}

/// The terms of a passage.
pub struct PassageTokens<'a> {
    words: Box<dyn Iterator<Item = (std::borrow::Cow<'a, str>, bool)> + Send + 'a>,
    /// The word before, for pairs.
    last: Option<(std::borrow::Cow<'a, str>, bool)>,
    pairs: bool,
    token: Token,
}

impl PassageTokens<'_> {
    fn put(&mut self, word: &str, second: Option<&str>, is_following: bool) {
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text.clear();
        if is_following {
            self.token.text.push(FOLLOWING);
        }
        self.token.text.push_str(word);
        if let Some(second) = second {
            self.token.text.push(' ');
            self.token.text.push_str(second);
        }
    }
}

impl TokenStream for PassageTokens<'_> {
    fn advance(&mut self) -> bool {
        while let Some((word, is_following)) = self.words.next() {
            if !self.pairs {
                self.put(&word, None, is_following);
                return true;
            }
            let Some((left, is_left_following)) = self.last.replace((word.clone(), is_following)) else { continue };
            if is_pair(&left, &word) {
                self.put(&left, Some(&word), is_left_following);
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(pairs: bool) -> Vec<(usize, String)> {
        let mut tokenizer = PassageTokenizer { pairs };
        let mut stream = tokenizer.token_stream("It is The End\u{1}of 今天");
        let mut found = Vec::new();
        stream.process(&mut |token| found.push((token.position, token.text.clone())));
        found
    }

    #[test]
    fn words_of_what_follows_are_marked_and_stand_behind() {
        let expected = ["it", "is", "the", "end", "\u{1}of", "\u{1}今", "\u{1}天"];
        assert_eq!(terms(false), expected.map(str::to_owned).into_iter().enumerate().collect::<Vec<_>>());
        let pairs: Vec<String> = terms(true).into_iter().map(|(_, text)| text).collect();
        assert_eq!(pairs, ["it is", "is the", "the end", "end of", "\u{1}of 今", "\u{1}今 天"]);
        assert!(is_pair("there", "would") && is_pair("nobody", "is") && !is_pair("nobody", "would"));
    }
}
