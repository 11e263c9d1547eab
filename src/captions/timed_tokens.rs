//! Splits an utterance's text into timed pieces that no row break may divide.
//!
//! The text decides what was said, the words only when: a service may redact or respell the text, send fewer words than
//! it contains, or none at all.

use crate::domain::transcript::{Utterance, Word};

/// A piece of text that is never divided: a word, or characters of a script without spaces that stay together.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedToken {
    /// Never empty; contains no white space except no-break spaces.
    pub text: String,
    /// Whether a space precedes the piece if it does not begin a row.
    pub spaced: bool,
    /// In seconds, 0 to [`LATEST`]; never before the previous piece's start.
    pub start: f64,
    /// In seconds; never before `start`, never after the next piece's start.
    pub end: f64,
}

impl TimedToken {
    /// Returns the length in characters.
    pub fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// The latest accepted time, in seconds: a second before a thousand hours. Players read no hours of four digits.
pub const LATEST: f64 = 3_599_999.0;

/// Returns the utterance's pieces with their times. `after`, in seconds, is the start of an utterance that has none
/// itself.
pub fn pieces(utterance: &Utterance, after: f64) -> Vec<TimedToken> {
    let tokens = tokens(&text_of(utterance));
    let span = span(utterance, after, &tokens);
    let anchors = anchors(&tokens, &spoken(&utterance.words));
    let mut pieces = interpolate(tokens, &anchors, span);
    put_in_order(&mut pieces);
    pieces
}

/// Returns the time, limited to the accepted range, if it is a finite number.
fn believable(seconds: f64) -> Option<f64> {
    seconds.is_finite().then(|| seconds.clamp(0.0, LATEST))
}

/// Returns the utterance's text; the joined text of its words if it has none.
fn text_of(utterance: &Utterance) -> String {
    if !utterance.text.trim().is_empty() {
        return utterance.text.clone();
    }
    let words: Vec<&str> = utterance.words.iter().map(|word| word.text.as_str()).collect();
    // Some services omit the leading spaces that words should carry.
    let bare = !words.iter().skip(1).any(|word| word.starts_with(char::is_whitespace));
    let unspaced = words.iter().any(|word| word.chars().any(breaks_anywhere));
    words.join(if bare && !unspaced { " " } else { "" })
}

/// Pieces of text, each with whether a space precedes it.
type Tokens = Vec<(String, bool)>;

/// Splits at white space, at control characters, and between the characters of scripts that write no spaces.
fn tokens(text: &str) -> Tokens {
    let mut pieces = Tokens::new();
    for run in text.split(separates).filter(|run| !run.trim().is_empty()) {
        let mut last = None;
        for c in run.chars() {
            match pieces.last_mut() {
                Some((piece, _)) if last.is_some_and(|l| stay_together(l, c)) => piece.push(c),
                _ => pieces.push((c.to_string(), last.is_none())),
            }
            last = Some(c);
        }
    }
    pieces
}

/// Whether `c` separates words and is not shown. No-break spaces are part of a word: French writes one before `!`.
pub(super) fn separates(c: char) -> bool {
    let joins = matches!(c, '\u{a0}' | '\u{2007}' | '\u{202f}');
    (c.is_whitespace() || c.is_control() || c == '\u{feff}') && !joins
}

/// Whether no row may break between these two characters. This is the short form of the Japanese rules (JIS X 4051): no
/// row begins with a closing mark, none ends with an opening one.
pub(super) fn stay_together(left: char, right: char) -> bool {
    let may_break = breaks_anywhere(left) || breaks_anywhere(right);
    !may_break || clings_to_previous(right) || clings_to_next(left)
}

/// Whether the script of `c` writes words without spaces: Thai, Lao, Myanmar, Khmer, kana and
/// the Chinese characters with their punctuation and full-width forms.
pub(crate) fn breaks_anywhere(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3000}'..='\u{312f}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether `c` must not end a row: opening marks, and vowels written before their consonant.
pub(crate) fn clings_to_next(c: char) -> bool {
    matches!(c, '\u{0e40}'..='\u{0e44}' | '\u{0ec0}'..='\u{0ec4}') || "「『（【〈《〔［｛“‘([{".contains(c)
}

/// Whether `c` must not begin a row: combining marks, vowels written after their consonant,
/// closing punctuation, small kana.
fn clings_to_previous(c: char) -> bool {
    let marks = matches!(c,
        '\u{0300}'..='\u{036f}' | '\u{0e30}'..='\u{0e3a}' | '\u{0e45}'..='\u{0e4e}'
        | '\u{0eb0}'..='\u{0ebc}' | '\u{0ec8}'..='\u{0ecd}' | '\u{102b}'..='\u{103e}'
        | '\u{17b6}'..='\u{17d3}' | '\u{3099}'..='\u{309c}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{200d}' | '\u{ff9e}' | '\u{ff9f}');
    marks
        || "、。，．・：；？！」』）】〉》〕］｝”’ー々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ…‥,.!?:;)]}%".contains(c)
}

/// Returns when the utterance starts and ends, in seconds.
fn span(utterance: &Utterance, after: f64, tokens: &Tokens) -> (f64, f64) {
    let words = &utterance.words;
    let first_word = words.iter().filter(|word| word.end > 0.0).find_map(|word| believable(word.start));
    let last_word = words.iter().filter_map(|word| believable(word.end)).reduce(f64::max);
    // Both times are 0 where the service gave none.
    let own = believable(utterance.start).filter(|start| *start > 0.0 || utterance.end > 0.0);
    let start = own.or(first_word).unwrap_or(after);
    let end = believable(utterance.end).into_iter().chain(last_word).fold(0.0, f64::max);
    if end > start { (start, end) } else { (start, start + time_to_say(tokens)) }
}

/// Estimates how long the text takes to say, in seconds: people speak about 15 characters a second.
fn time_to_say(tokens: &Tokens) -> f64 {
    let characters: usize = tokens.iter().map(|(text, _)| text.chars().count()).sum();
    characters as f64 / 15.0
}

/// One character of a word, with its share of the word's time.
struct Spoken {
    c: char,
    time: Option<(f64, f64)>,
    begins_word: bool,
}

fn spoken(words: &[Word]) -> Vec<Spoken> {
    words.iter().flat_map(spoken_word).collect()
}

fn spoken_word(word: &Word) -> Vec<Spoken> {
    let shown: Vec<char> = word.text.chars().filter(|c| !separates(*c)).collect();
    let time = believable(word.start).zip(believable(word.end));
    let share = |i: usize| {
        let (start, end) = time?;
        let step = (end - start).max(0.0) / shown.len() as f64;
        Some((start + step * i as f64, start + step * (i + 1) as f64))
    };
    let one = |(i, c): (usize, &char)| Spoken { c: *c, time: share(i), begins_word: i == 0 };
    shown.iter().enumerate().map(one).collect()
}

/// Returns the time of each piece that the words contain; `None` where text and words differ.
fn anchors(tokens: &Tokens, spoken: &[Spoken]) -> Vec<Option<(f64, f64)>> {
    let mut next = 0;
    let mut anchors = Vec::with_capacity(tokens.len());
    for (i, (text, _)) in tokens.iter().enumerate() {
        let following = tokens.get(i + 1).map_or("", |(text, _)| text.as_str());
        let found = find(text, following, spoken, next);
        let length = text.chars().count();
        anchors.push(found.and_then(|at| time_of(&spoken[at..at + length])));
        next = found.map_or(next, |at| at + length);
    }
    anchors
}

/// Returns where `text` is spoken: at `next`, or up to 64 characters later if the text that follows matches too. The
/// second condition keeps a short word from matching its next occurrence.
fn find(text: &str, following: &str, spoken: &[Spoken], next: usize) -> Option<usize> {
    /// The most characters of the words that are skipped to find the text again.
    const REACH: usize = 64;
    if matches_at(text.chars(), spoken, next) {
        return Some(next);
    }
    let end = spoken.len().min(next + REACH);
    let both = || text.chars().chain(following.chars());
    (next..end).find(|at| spoken[*at].begins_word && matches_at(both(), spoken, *at))
}

fn matches_at(mut text: impl Iterator<Item = char>, spoken: &[Spoken], at: usize) -> bool {
    let mut heard = spoken.get(at..).unwrap_or_default().iter();
    text.all(|c| heard.next().is_some_and(|s| s.c.to_lowercase().eq(c.to_lowercase())))
}

fn time_of(spoken: &[Spoken]) -> Option<(f64, f64)> {
    let (start, _) = spoken.first()?.time?;
    let (_, end) = spoken.last()?.time?;
    Some((start, end))
}

/// Gives the pieces their times. Pieces between two known times share the gap in proportion to their length.
fn interpolate(tokens: Tokens, anchors: &[Option<(f64, f64)>], span: (f64, f64)) -> Vec<TimedToken> {
    let mut pieces: Vec<TimedToken> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().zip(anchors).peekable();
    let mut known_from = 0;
    let mut left = span.0;
    while let Some(((text, spaced), anchor)) = tokens.next() {
        let (start, end) = anchor.unwrap_or((left, left));
        pieces.push(TimedToken { text, spaced, start, end });
        let right = match (anchor, tokens.peek()) {
            (Some(_), _) => start,
            (None, None) => span.1,
            (None, Some(_)) => continue,
        };
        let known_to = pieces.len() - usize::from(anchor.is_some());
        share_out(&mut pieces[known_from..known_to], left, right);
        (known_from, left) = (pieces.len(), end);
    }
    pieces
}

/// Spreads the pieces from `left` to `right` by their length; puts all at `left` if there is no room.
fn share_out(pieces: &mut [TimedToken], left: f64, right: f64) {
    let total: usize = pieces.iter().map(TimedToken::width).sum();
    let step = (right - left).max(0.0) / total.max(1) as f64;
    let mut before = 0;
    for piece in pieces {
        piece.start = left + step * before as f64;
        before += piece.width();
        piece.end = left + step * before as f64;
    }
}

/// Makes the times ascend, whatever the service sent.
fn put_in_order(pieces: &mut [TimedToken]) {
    let mut earliest = 0.0;
    for piece in pieces.iter_mut() {
        piece.start = piece.start.clamp(earliest, LATEST.max(earliest));
        piece.end = piece.end.max(piece.start);
        earliest = piece.start;
    }
    for i in 1..pieces.len() {
        pieces[i - 1].end = pieces[i - 1].end.min(pieces[i].start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utterance(text: &str, start: f64, end: f64, words: &[(&str, f64, f64)]) -> Utterance {
        let word = |(text, start, end): &(&str, f64, f64)| Word {
            text: (*text).into(),
            start: *start,
            end: *end,
            confidence: 1.0,
        };
        Utterance {
            text: text.into(),
            start,
            end,
            confidence: 1.0,
            channel: 0,
            speaker: None,
            language: String::new(),
            words: words.iter().map(word).collect(),
        }
    }

    fn shown(utterance: &Utterance) -> String {
        let one = |p: &TimedToken| format!("{}@{:.1}-{:.1}", p.text, p.start, p.end);
        pieces(utterance, 0.0).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_give_the_times() {
        let u = utterance("One two.", 0.0, 2.0, &[("One", 0.2, 0.5), (" two.", 0.9, 1.6)]);
        assert_eq!(shown(&u), "One@0.2-0.5 two.@0.9-1.6");
    }

    #[test]
    fn what_the_words_lack_is_interpolated() {
        let u = utterance("aa bb cc dd", 0.0, 4.0, &[("bb", 1.0, 2.0)]);
        assert_eq!(shown(&u), "aa@0.0-1.0 bb@1.0-2.0 cc@2.0-3.0 dd@3.0-4.0");
    }

    #[test]
    fn redacted_text_is_kept_and_the_times_are_found_again() {
        let words = [("I", 0.0, 0.1), (" am", 0.2, 0.4), (" Ann", 0.5, 1.0), (" now.", 1.5, 2.0)];
        let u = utterance("I am [NAME_1] now.", 0.0, 2.0, &words);
        assert_eq!(shown(&u), "I@0.0-0.1 am@0.2-0.4 [NAME_1]@0.4-1.5 now.@1.5-2.0");
    }

    #[test]
    fn without_words_the_text_is_spread_evenly() {
        assert_eq!(shown(&utterance(" aa bb", 1.0, 3.0, &[])), "aa@1.0-2.0 bb@2.0-3.0");
    }

    #[test]
    fn words_without_spaces_are_joined_with_them() {
        let u = utterance("", 0.0, 2.0, &[("Smoke", 0.0, 1.0), ("from", 1.0, 2.0)]);
        assert_eq!(shown(&u), "Smoke@0.0-1.0 from@1.0-2.0");
    }

    #[test]
    fn scripts_without_spaces_are_cut_by_characters() {
        let words = [("「今日", 0.0, 1.0), ("は」。", 1.0, 2.0)];
        let u = utterance("「今日は」。", 0.0, 2.0, &words);
        let texts: Vec<String> = pieces(&u, 0.0).into_iter().map(|p| p.text).collect();
        assert_eq!(texts, ["「今", "日", "は」。"]);
    }

    #[test]
    fn odd_times_are_put_in_order() {
        let words = [("a", f64::NAN, 1.0), (" b", 5.0, -3.0), (" c", 2.0, f64::INFINITY)];
        let u = utterance("a b c", f64::NAN, f64::NEG_INFINITY, &words);
        let pieces = pieces(&u, 0.5);
        assert!(pieces.windows(2).all(|p| p[0].start <= p[0].end && p[0].end <= p[1].start));
    }
}
