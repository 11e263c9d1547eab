//! Formats recognised text: the requested spellings, and punctuation and capitals by rules.

use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::server::english_calendar::{DAYS, MONTHS};
use std::collections::{BTreeMap, HashMap};

/// The requested spellings would make a text too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// The bytes that they would add.
    pub bytes: usize,
    /// The most bytes that they may add.
    pub most: usize,
}

/// Spellings may add this many times the length of the text, and this many bytes more: a short text may grow by a few
/// long names.
const TIMES: usize = 8;
const A_LITTLE: usize = 1 << 20;

/// Replaces words by the keys of the dictionary: a key is written as it stands, for one word or several words of an
/// utterance, whatever their case and the punctuation around them.
///
/// # Errors
/// The text would grow too much: each occurrence is replaced, so a long key multiplies. The text then stays unchanged.
pub fn respell(transcript: &mut Transcript, dictionary: &BTreeMap<String, Vec<String>>) -> Result<(), Grown> {
    let rules = rules(dictionary);
    if rules.keys.is_empty() {
        return Ok(());
    }
    let length: usize = transcript.utterances.iter().flat_map(|utterance| &utterance.words).map(|w| w.text.len()).sum();
    let most = length.saturating_mul(TIMES).saturating_add(A_LITTLE);
    let bytes =
        transcript.utterances.iter().fold(0, |sum: usize, spoken| sum.saturating_add(added(&spoken.words, &rules)));
    if bytes > most {
        return Err(Grown { bytes, most });
    }
    for utterance in &mut transcript.utterances {
        utterance.words = respelt(&utterance.words, &rules);
        utterance.text = text(&utterance.words);
    }
    Ok(())
}

/// The sequences of words that are replaced.
struct Rules<'a> {
    /// The replacement of a sequence, whose words are joined by spaces.
    keys: HashMap<String, &'a str>,
    /// The lengths of the sequences that begin with a word, longest first.
    lengths: HashMap<String, Vec<usize>>,
}

impl<'a> Rules<'a> {
    /// Returns the longest sequence at the start of `plain`: its number of words, and its replacement.
    fn at(&self, plain: &[String]) -> Option<(usize, &'a str)> {
        let lengths = self.lengths.get(plain.first()?)?;
        lengths.iter().find_map(|length| Some((*length, *self.keys.get(&plain.get(..*length)?.join(" "))?)))
    }
}

fn rules(dictionary: &BTreeMap<String, Vec<String>>) -> Rules<'_> {
    let mut rules = Rules { keys: HashMap::new(), lengths: HashMap::new() };
    for (key, values) in dictionary {
        for value in values {
            let words: Vec<String> = value.split_whitespace().map(bare).collect();
            if let Some(first) = words.first().filter(|first| !first.is_empty()) {
                let lengths = rules.lengths.entry(first.clone()).or_default();
                if !lengths.contains(&words.len()) {
                    lengths.push(words.len());
                }
                rules.keys.entry(words.join(" ")).or_insert(key);
            }
        }
    }
    rules.lengths.values_mut().for_each(|lengths| lengths.sort_unstable_by_key(|length| std::cmp::Reverse(*length)));
    rules
}

/// Counts the bytes of all replacements.
fn added(words: &[Word], rules: &Rules<'_>) -> usize {
    let plain: Vec<String> = words.iter().map(|word| bare(&word.text)).collect();
    let (mut added, mut at) = (0_usize, 0);
    while at < words.len() {
        let (taken, key) = rules.at(&plain[at..]).unwrap_or((1, ""));
        (added, at) = (added.saturating_add(key.len()), at + taken);
    }
    added
}

fn respelt(words: &[Word], rules: &Rules<'_>) -> Vec<Word> {
    let plain: Vec<String> = words.iter().map(|word| bare(&word.text)).collect();
    let mut respelt = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        let (taken, word) = match rules.at(&plain[at..]) {
            Some((taken, key)) => (taken, joined(&words[at..at + taken], key)),
            None => (1, words[at].clone()),
        };
        respelt.push(word);
        at += taken;
    }
    respelt
}

/// Joins several words to one, written as `key`.
fn joined(words: &[Word], key: &str) -> Word {
    let (first, last) = (&words[0], &words[words.len() - 1]);
    let lead: String = first.text.chars().take_while(|c| !c.is_alphanumeric()).collect();
    let tail = &last.text[last.text.trim_end_matches(|c: char| !c.is_alphanumeric()).len()..];
    let confidence = words.iter().map(|word| word.confidence).sum::<f64>() / words.len() as f64;
    let confidence = (confidence * 100.0).round() / 100.0;
    Word { text: format!("{lead}{key}{tail}"), start: first.start, end: last.end, confidence }
}

fn bare(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn text(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<String>().trim().to_owned()
}

/// The shortest pause between two words, in seconds, that is written as a comma.
const COMMA: f64 = 0.3;

/// Adds punctuation by pauses, question marks by the first two words, and capitals to titles, the names after them,
/// days and months. English only: other utterances stay as they are.
pub fn punctuate(transcript: &mut Transcript) {
    for utterance in transcript.utterances.iter_mut().filter(|utterance| utterance.language == "en") {
        capitals(&mut utterance.words);
        commas(&mut utterance.words);
        let mark = if asks(utterance) { '?' } else { '.' };
        if let Some(last) = utterance.words.last_mut().filter(|last| !is_marked(&last.text)) {
            last.text.push(mark);
        }
        utterance.text = text(&utterance.words);
    }
}

/// Whether a word has punctuation already; a marker or a mask of redacted text is none.
fn is_marked(text: &str) -> bool {
    text.ends_with(|c: char| !c.is_alphanumeric() && !matches!(c, ']' | '#'))
}

fn commas(words: &mut [Word]) {
    for at in 1..words.len() {
        let pause = words[at].start - words[at - 1].end;
        let before = &mut words[at - 1];
        if pause >= COMMA && !is_marked(&before.text) {
            before.text.push(',');
        }
    }
}

const TITLES: [&str; 7] = ["mister", "mr", "missus", "mrs", "doctor", "professor", "saint"];

/// Whether a word is the name of a day or a month, and no other word, as march and may are.
fn is_calendar_name(word: &str) -> bool {
    DAYS.contains(&word) || MONTHS.contains(&word) && !matches!(word, "march" | "may")
}

fn capitals(words: &mut [Word]) {
    let mut named = false;
    for word in words {
        let plain = bare(&word.text);
        if named || is_calendar_name(&plain) {
            word.text = capital(&word.text);
        }
        named = TITLES.contains(&plain.as_str());
        if named {
            word.text = capital(&word.text);
        }
    }
}

fn capital(text: &str) -> String {
    let Some((at, first)) = text.char_indices().find(|(_, c)| c.is_alphabetic()) else { return text.to_owned() };
    let (before, rest) = (&text[..at], &text[at + first.len_utf8()..]);
    before.chars().chain(first.to_uppercase()).chain(rest.chars()).collect()
}

const ASKING: [&str; 9] = ["who", "what", "when", "where", "why", "how", "which", "whose", "whom"];
const HELPING: [&str; 14] =
    ["is", "are", "am", "was", "were", "do", "does", "did", "can", "could", "will", "would", "shall", "should"];
const DOING: [&str; 9] = ["i", "you", "he", "she", "it", "we", "they", "this", "there"];
const HOW: [&str; 5] = ["much", "many", "long", "often", "far"];

/// Whether an utterance is a question: "what is …", "how many …", "do you …".
fn asks(utterance: &Utterance) -> bool {
    let mut words = utterance.words.iter().map(|word| bare(&word.text));
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return false };
    let (first, second) = (first.as_str(), second.as_str());
    (ASKING.contains(&first) && HELPING.contains(&second))
        || (first == "how" && HOW.contains(&second))
        || (HELPING.contains(&first) && DOING.contains(&second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a transcript of these words, with a pause of 0.4 s at each `|`.
    fn said(words: &str) -> Transcript {
        let mut at = 0.0;
        let mut spoken = Vec::new();
        for word in words.split(' ') {
            if word == "|" {
                at += 0.4;
                continue;
            }
            spoken.push(Word { text: format!(" {word}"), start: at, end: at + 0.2, confidence: 0.5 });
            at += 0.25;
        }
        let utterance = Utterance {
            text: text(&spoken),
            start: 0.0,
            end: at,
            confidence: 0.5,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words: spoken,
        };
        Transcript { languages: vec!["en".to_owned()], utterances: vec![utterance] }
    }

    fn respelling(words: &str, pairs: &[(&str, &[&str])]) -> Transcript {
        let pairs =
            pairs.iter().map(|(key, values)| ((*key).to_owned(), values.iter().map(|v| (*v).to_owned()).collect()));
        let mut transcript = said(words);
        respell(&mut transcript, &pairs.collect()).unwrap();
        transcript
    }

    #[test]
    fn a_long_spelling_does_not_multiply_the_text() {
        let key = "K".repeat(900_000);
        let pairs = BTreeMap::from([(key, vec!["b".to_owned()])]);
        let (few, many) = ("a b a", "a b ".repeat(10_000));
        let mut transcript = said(few);
        respell(&mut transcript, &pairs).unwrap();
        assert!(transcript.text().len() > 900_000, "once it is what was asked for");
        let mut transcript = said(many.trim());
        let before = transcript.clone();
        let grown = respell(&mut transcript, &pairs).unwrap_err();
        assert_eq!((grown.bytes, transcript == before), (900_000 * 10_000, true));
        assert!(grown.most < 2 << 20, "{grown:?}");
    }

    #[test]
    fn of_two_sequences_the_longer_one_counts_and_of_two_keys_the_first() {
        let pairs: &[(&str, &[&str])] = &[("AB", &["a b"]), ("ABC", &["a b c"]), ("X", &["a b c"])];
        assert_eq!(respelling("a b c a b a", pairs).text(), "ABC AB a");
    }

    #[test]
    fn words_are_written_as_asked() {
        let transcript = respelling(
            "The guerrilla ate cooper netties, and cooper",
            &[("Gorilla", &["GUERRILLA"]), ("Kubernetes", &["cooper netties"]), ("SQL", &["sequel", "Cooper"])],
        );
        assert_eq!(transcript.text(), "The Gorilla ate Kubernetes, and SQL");
        let word = &transcript.utterances[0].words[3];
        assert_eq!((word.text.as_str(), word.start, word.end), (" Kubernetes,", 0.75, 1.2));
    }

    #[test]
    fn an_empty_spelling_replaces_nothing() {
        assert_eq!(respelling("one two", &[("x", &["", "..."])]).text(), "one two");
    }

    #[test]
    fn pauses_and_rules_make_punctuation() {
        let written = |words| {
            let mut transcript = said(words);
            punctuate(&mut transcript);
            transcript.text()
        };
        assert_eq!(written("Then mister dashwood | on monday | left"), "Then Mister Dashwood, on Monday, left.");
        assert_eq!(written("What is it"), "What is it?");
        assert_eq!(written("What a day"), "What a day.");
        assert_eq!(written("Do you see"), "Do you see?");
        assert_eq!(written("How many were there"), "How many were there?");
        assert_eq!(written("Stop!"), "Stop!");
    }

    proptest! {
        /// Text and words agree, no time changes, and only replaced words are lost.
        #[test]
        fn words_and_text_stay_one(words in "[a-c]{1,2}( ([a-c]{1,2}|\\|)){0,20} a", key in "[A-C]{1,3}", value in "[a-c] [a-c]") {
            let before = said(&words);
            let mut after = respelling(&words, &[(key.as_str(), &[value.as_str()])]);
            punctuate(&mut after);
            let (before, after) = (&before.utterances[0], &after.utterances[0]);
            prop_assert_eq!(&after.text, &text(&after.words));
            prop_assert_eq!(after.words[0].start, before.words[0].start);
            prop_assert_eq!(after.words[after.words.len() - 1].end, before.words[before.words.len() - 1].end);
            prop_assert!(after.words.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }
}
