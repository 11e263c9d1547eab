//! Numbers, letters and codes in a text, spoken or written: what numbers of cards, telephones and papers are made of.

use super::voice_text::{TextToken, VoiceText};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Digits,
    /// `fourth`, `4th`.
    Ordinal,
    /// Letters that are read one by one, or written in capitals.
    Letters,
    /// Letters and digits in one word: `D1234567`.
    Code,
}

/// A number, a letter or a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpeechElement {
    pub(super) kind: ElementKind,
    /// Its digits and capital letters.
    pub(super) chars: String,
    /// Bytes of the text.
    pub(super) range: Range<usize>,
    /// The tokens that it consists of, or is a part of.
    pub(super) tokens: Range<usize>,
    pub(super) is_spoken: bool,
}

impl SpeechElement {
    /// Returns the number; `None` if it is none, or too large.
    pub(super) fn number(&self) -> Option<u64> {
        let is_number = matches!(self.kind, ElementKind::Digits | ElementKind::Ordinal);
        is_number.then(|| self.chars.parse().ok()).flatten()
    }

    pub(super) fn is_digits(&self) -> bool {
        self.kind == ElementKind::Digits
    }
}

const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const ORDINAL_UNITS: [&str; 20] = [
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];
const ORDINAL_TENS: [&str; 10] =
    ["", "", "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"];

fn position(words: &[&str], word: &str) -> Option<u64> {
    words.iter().position(|one| !one.is_empty() && *one == word).map(|at| at as u64)
}

/// Returns a number below 20.
fn unit(word: &str) -> Option<u64> {
    match word {
        "nought" | "naught" => Some(0),
        _ => position(&UNITS, word),
    }
}

fn digit(word: &str) -> Option<u64> {
    unit(word).filter(|unit| *unit < 10)
}

fn tens(word: &str) -> Option<u64> {
    position(&TENS, word).map(|tens| tens * 10)
}

/// Returns the elements of a text, in order.
pub(super) fn elements(text: &VoiceText) -> Vec<SpeechElement> {
    let mut found: Vec<SpeechElement> = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let spoken = spoken_element(text, at, &found);
        at = match spoken {
            Some(element) => {
                let end = element.tokens.end;
                found.push(element);
                end
            }
            None => {
                written_elements(text, at, &mut found);
                at + 1
            }
        };
    }
    found
}

fn spoken_element(text: &VoiceText, at: usize, before: &[SpeechElement]) -> Option<SpeechElement> {
    let (kind, chars, end) = spoken_number(text, at).or_else(|| weak_digit(text, at, before))?;
    Some(SpeechElement { kind, chars, range: text.bytes(at..end), tokens: at..end, is_spoken: true })
}

type Spoken = (ElementKind, String, usize);

fn spoken_number(text: &VoiceText, at: usize) -> Option<Spoken> {
    let word = text.plain(at);
    if let (times @ 2.., Some(digit)) = (repetition(word), digit_or_oh(text.plain(at + 1))) {
        return Some((ElementKind::Digits, digit.to_string().repeat(times), at + 2));
    }
    if let Some(ordinal) = ordinal(word) {
        return Some((ElementKind::Ordinal, ordinal.to_string(), at + 1));
    }
    let is_lone_factor = word == "hundred" || factor(word).is_some();
    let (number, mut end) = below_hundred(text, at).or_else(|| is_lone_factor.then_some((1, at)))?;
    if let (20.., Some(unit)) = (number, position(&ORDINAL_UNITS[..10], text.plain(end)))
        && number.is_multiple_of(10)
    {
        return Some((ElementKind::Ordinal, (number + unit).to_string(), end + 1));
    }
    let mut number = number;
    if text.plain(end) == "hundred" {
        (number, end) = with_tail(text, number * 100, end + 1);
    }
    while let Some(factor) = factor(text.plain(end)) {
        number = number.saturating_mul(factor);
        end += 1;
        if let Some((more, after)) = below_thousand(text, end + usize::from(text.plain(end) == "and")) {
            (number, end) = (number.saturating_add(more), after);
        }
    }
    Some((ElementKind::Digits, number.to_string(), end))
}

fn repetition(word: &str) -> usize {
    match word {
        "double" => 2,
        "triple" | "treble" => 3,
        _ => 1,
    }
}

fn digit_or_oh(word: &str) -> Option<u64> {
    if matches!(word, "oh" | "o") { Some(0) } else { digit(word) }
}

fn ordinal(word: &str) -> Option<u64> {
    let hyphenated = || {
        let (high, low) = word.split_once('-')?;
        Some(tens(high)? + position(&ORDINAL_UNITS[..10], low)?)
    };
    position(&ORDINAL_UNITS, word).or_else(|| position(&ORDINAL_TENS, word).map(|tens| tens * 10)).or_else(hyphenated)
}

fn factor(word: &str) -> Option<u64> {
    match word {
        "thousand" => Some(1_000),
        "million" => Some(1_000_000),
        "billion" => Some(1_000_000_000),
        _ => None,
    }
}

fn below_hundred(text: &VoiceText, at: usize) -> Option<(u64, usize)> {
    let word = text.plain(at);
    if let Some(unit) = unit(word) {
        return Some((unit, at + 1));
    }
    if let Some((high, low)) = word.split_once('-') {
        return Some((tens(high)? + digit(low)?, at + 1));
    }
    let tens = tens(word)?;
    match digit(text.plain(at + 1)) {
        Some(unit @ 1..) => Some((tens + unit, at + 2)),
        _ => Some((tens, at + 1)),
    }
}

/// Adds what follows "hundred": "eight hundred and five", "four hundred fifteen"; but "eight hundred five five five" is
/// read digit by digit.
fn with_tail(text: &VoiceText, hundreds: u64, at: usize) -> (u64, usize) {
    let has_and = text.plain(at) == "and";
    let tail = below_hundred(text, at + usize::from(has_and))
        .filter(|(tail, end)| *tail > 0 && (*tail > 9 || has_and || digit_or_oh(text.plain(*end)).is_none()));
    tail.map_or((hundreds, at), |(tail, end)| (hundreds + tail, end))
}

fn below_thousand(text: &VoiceText, at: usize) -> Option<(u64, usize)> {
    let (number, end) = below_hundred(text, at)?;
    match text.plain(end) {
        "hundred" => Some(with_tail(text, number * 100, end + 1)),
        // "two thousand nineteen eighty" has two numbers, and so have the digits after "two thousand".
        _ if number < 10 && digit_or_oh(text.plain(end)).is_some() => None,
        _ => Some((number, end)),
    }
}

/// Reads a word that is a digit only among digits: "oh", and words that recognisers write for the digits of that sound.
fn weak_digit(text: &VoiceText, at: usize, before: &[SpeechElement]) -> Option<Spoken> {
    let word = text.plain(at);
    let follows = |count: usize| {
        let last = before.iter().rev().take(count).filter(|one| one.is_spoken && one.is_digits()).count() == count;
        last && before.last().is_some_and(|last| last.tokens.end == at)
    };
    let is_next = digit_or_oh(text.plain(at + 1)).is_some();
    let (digit, is_digit) = match word {
        "oh" | "o" => ("0", follows(1) || is_next),
        "to" | "too" => ("2", follows(2) && is_next),
        "for" => ("4", follows(2) && is_next),
        "ate" => ("8", follows(2) && is_next),
        "won" => ("1", follows(2) && is_next),
        _ => return None,
    };
    is_digit.then(|| (ElementKind::Digits, digit.to_owned(), at + 1))
}

/// Capitals that are no part of a code: they say what a number is, or its unit.
const ABBREVIATIONS: [&str; 36] = [
    "CVV", "CVC", "CID", "SSN", "PIN", "EXP", "IBAN", "BIC", "DOB", "VIN", "MRN", "EIN", "VAT", "ICD", "CPT", "USA",
    "UK", "US", "EU", "AM", "PM", "ZIP", "URL", "IP", "MAC", "USD", "EUR", "GBP", "ID", "NHS", "ABA", "TEL", "FAX",
    "AND", "OR", "NO",
];

/// A longer word with digits is one code, whatever is in it.
const LONGEST_NUMBER: usize = 500;

/// The longest code that is read.
const LONGEST_CODE: usize = 40;

fn written_elements(text: &VoiceText, at: usize, found: &mut Vec<SpeechElement>) {
    let token = &text.tokens[at];
    let core = &text.text[token.range.clone()];
    let element =
        |kind, chars: String, range| SpeechElement { kind, chars, range, tokens: at..at + 1, is_spoken: false };
    if let Some(kind) = letters_kind(text, token, core) {
        let chars = core.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
        found.push(element(kind, chars, token.range.clone()));
        return;
    }
    if !core.bytes().any(|byte| byte.is_ascii_digit()) {
        return;
    }
    // "555-0198x42" has an extension.
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || "-./()".contains(c));
    let extended = core.split_once(['x', 'X']).filter(|(number, extension)| {
        number.len() > 6
            && is_number(number)
            && !extension.is_empty()
            && extension.bytes().all(|byte| byte.is_ascii_digit())
    });
    if let Some((number, _)) = extended {
        push_groups(number, token.range.start, at, found);
        push_groups(&core[number.len() + 1..], token.range.start + number.len() + 1, at, found);
        return;
    }
    let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|ending| token.plain.strip_suffix(ending));
    if let Some(number) = ordinal.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() < 4)
    {
        found.push(element(ElementKind::Ordinal, number.to_owned(), token.range.clone()));
    } else if is_grouped(core) {
        found.push(element(ElementKind::Digits, core.replace(',', ""), token.range.clone()));
    } else if core.len() > LONGEST_NUMBER {
        let chars = core.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
        found.push(element(ElementKind::Code, chars, token.range.clone()));
    } else if core.chars().all(|c| c.is_ascii_digit() || "-.,/():+–".contains(c)) {
        push_groups(core, token.range.start, at, found);
    } else if core.len() <= LONGEST_CODE && core.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let chars = core.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_uppercase();
        found.push(element(ElementKind::Code, chars, token.range.clone()));
    }
}

/// Adds each group of digits of a word, which begins at this byte of the text.
fn push_groups(core: &str, start: usize, token: usize, found: &mut Vec<SpeechElement>) {
    let mut start = start;
    for group in core.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = group.trim_end_matches(|c: char| !c.is_ascii_digit());
        if !digits.is_empty() {
            found.push(SpeechElement {
                kind: ElementKind::Digits,
                chars: digits.to_owned(),
                range: start..start + digits.len(),
                tokens: token..token + 1,
                is_spoken: false,
            });
        }
        start += group.len();
    }
}

/// Whether these are thousands with commas: `1,250,000`.
fn is_grouped(core: &str) -> bool {
    let mut groups = core.split(',');
    let is_number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && is_number(first));
    let rest: Vec<&str> = groups.collect();
    first && !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_number(group))
}

fn letters_kind(text: &VoiceText, token: &TextToken, core: &str) -> Option<ElementKind> {
    let is_letter = |part: &str| part.len() == 1 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_spelled = core.split(['-', '.']).all(is_letter);
    let is_capitals = text.is_cased
        && core.len() <= 4
        && core.bytes().all(|byte| byte.is_ascii_uppercase())
        && !ABBREVIATIONS.contains(&core);
    ((is_spelled && core.len() <= LONGEST_CODE) || (is_capitals && token.range.len() > 1))
        .then_some(ElementKind::Letters)
}

/// Words between the parts of a number that do not end it.
const FILLERS: [&str; 12] = ["uh", "um", "er", "ah", "hmm", "dash", "hyphen", "space", "okay", "ok", "then", "and"];

/// Returns the runs of elements that belong together: only separators and fillers are between them.
pub(super) fn runs(text: &VoiceText, elements: &[SpeechElement]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 0..elements.len() {
        let is_last = elements.get(at + 1).is_none_or(|next| !is_joined(text, &elements[at], next));
        if is_last {
            runs.push(start..at + 1);
            start = at + 1;
        }
    }
    runs
}

fn is_joined(text: &VoiceText, one: &SpeechElement, next: &SpeechElement) -> bool {
    if one.kind == ElementKind::Ordinal || next.kind == ElementKind::Ordinal {
        return false;
    }
    let between = one.tokens.end..next.tokens.start.max(one.tokens.end);
    if between.len() > 2 || !between.clone().all(|token| FILLERS.contains(&text.plain(token))) {
        return false;
    }
    // "two and three" are two numbers; "four two, and then four two" is one.
    let is_long = |element: &SpeechElement| element.chars.len() > 2;
    if between.clone().any(|token| text.plain(token) == "and") && !(is_long(one) && is_long(next)) {
        return false;
    }
    let gap = &text.text[one.range.end..next.range.start];
    if !between.is_empty() {
        return !gap.contains(['?', '!', '$', '€', '£', '%', ';']);
    }
    let is_short = |element: &SpeechElement| !element.is_spoken && element.chars.len() < 3;
    let ends = gap.contains(". ") && (is_short(one) || is_short(next));
    !ends && gap.chars().all(|c| c.is_whitespace() || "-–.,/()+'x".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::voice_text::tests::utterance;
    use super::super::voice_text::{TextOf, voice_texts};
    use super::*;

    fn text(said: &str) -> VoiceText {
        voice_texts(&[utterance(said, 0.0)], false, TextOf::Speaker).remove(0)
    }

    /// Returns the characters of the runs, the elements of a run separated by spaces.
    fn read(said: &str) -> Vec<String> {
        let text = text(said);
        let all = elements(&text);
        let chars = |run: Range<usize>| all[run].iter().map(|one| one.chars.as_str()).collect::<Vec<_>>().join(" ");
        runs(&text, &all).into_iter().map(chars).collect()
    }

    #[test]
    fn spoken_numbers_are_digits() {
        assert_eq!(read("call four one five five five five oh one nine eight now"), ["4 1 5 5 5 5 0 1 9 8"]);
        assert_eq!(read("nineteen seventy six or two thousand and four"), ["19 76", "2004"]);
        assert_eq!(read("twenty twenty four"), ["20 24"]);
        assert_eq!(read("one eight hundred five five five"), ["1 800 5 5 5"]);
        assert_eq!(read("four hundred and fifteen people"), ["415"]);
        assert_eq!(read("two hundred fifty thousand three hundred dollars"), ["250300"]);
        assert_eq!(read("double five triple seven"), ["55 777"]);
        assert_eq!(read("the twenty first and the fourth"), ["21", "4"]);
        assert_eq!(read("thirty-one"), ["31"]);
        assert_eq!(read("two million"), ["2000000"]);
    }

    #[test]
    fn numbers_are_read_over_fillers_and_with_words_of_the_same_sound() {
        assert_eq!(read("four two uh four two dash four two"), ["4 2 4 2 4 2"]);
        assert_eq!(read("one two for five six"), ["1 2 4 5 6"]);
        assert_eq!(read("oh well it is two to five"), ["2", "5"]);
    }

    #[test]
    fn written_numbers_are_digits() {
        assert_eq!(read("(415) 555-0198, $1,250 on the 4th"), ["415 555 0198", "1250", "4"]);
        assert_eq!(read("D1234567 or A B C 123"), ["D1234567", "A B C 123"]);
        assert_eq!(read("It was 76. 45 came"), ["76", "45"]);
    }

    #[test]
    fn parts_with_full_stops_are_one_number() {
        assert_eq!(read("four one five. five five five."), ["4 1 5 5 5 5"]);
        assert_eq!(read("415. 555. 0198."), ["415 555 0198"]);
    }
}
