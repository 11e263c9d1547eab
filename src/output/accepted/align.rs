//! Gives the words of a text the times of the words that were recognised. Pure.

use super::matching::{Run, runs};
use super::text_words::{TextWord, join, line_words};
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance, Word};

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLine<'a> {
    /// The number of the speaker, from 0, if a heading names one.
    pub speaker: Option<u32>,
    pub words: Vec<TextWord<'a>>,
}

/// A text with times.
#[derive(Debug, Clone, PartialEq)]
pub struct Aligned {
    /// One for each line.
    pub utterances: Vec<Utterance>,
    pub words: usize,
    /// The number of words that were recognised too; the others have times between those of their neighbours.
    pub recognised: usize,
}

/// Reads a plain text: an utterance a line, and lines such as `Speaker 1:` above those of one speaker, with the number or
/// the name.
pub fn read_lines<'t>(text: &'t str, names: &SpeakerNames) -> Vec<TextLine<'t>> {
    let (mut speaker, mut lines) = (None, Vec::new());
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        if let Some(number) = line.strip_suffix(':').and_then(|called| names.speaker_of(called)) {
            speaker = Some(number);
        } else if !line.is_empty() {
            lines.push(TextLine { speaker, words: line_words(line) });
        }
    }
    lines
}

/// A recognised word with what is known of its utterance.
pub(super) struct TranscriptWord<'a> {
    pub(super) key: String,
    pub(super) start: f64,
    pub(super) end: f64,
    confidence: f64,
    pub(super) utterance: &'a Utterance,
}

/// Aligns a text with the recognised words: equal words, in the same order, get their times; runs of others share the
/// time between their neighbours by their lengths. Times never go back.
pub fn align(lines: &[TextLine<'_>], heard: &Transcript) -> Aligned {
    let heard = heard_words(heard);
    let words: Vec<&str> = lines.iter().flat_map(|line| line.words.iter().map(|word| word.text)).collect();
    let new: Vec<String> = words.iter().map(|word| key(word)).collect();
    let old: Vec<&str> = heard.iter().map(|word| word.key.as_str()).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let mut timed: Vec<TimedWord> = Vec::with_capacity(words.len());
    let mut recognised = 0;
    for run in runs(&old, &new) {
        match run {
            Run::Equal { old, .. } => {
                recognised += old.len();
                timed.extend(heard[old].iter().map(TimedWord::of));
            }
            Run::Other { old, new } => spread(&mut timed, &words[new], &heard, old),
        }
    }
    forward(&mut timed);
    Aligned { utterances: utterances(lines, timed), words: words.len(), recognised }
}

/// A word of the text with its time.
pub(super) struct TimedWord<'a> {
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) confidence: f64,
    pub(super) utterance: Option<&'a Utterance>,
}

impl<'a> TimedWord<'a> {
    pub(super) fn of(heard: &TranscriptWord<'a>) -> Self {
        let TranscriptWord { start, end, confidence, utterance, .. } = *heard;
        Self { start, end, confidence, utterance: Some(utterance) }
    }
}

/// Returns the recognised words in order of time. An utterance without words is divided by the lengths of those in its
/// text.
pub(super) fn heard_words(transcript: &Transcript) -> Vec<TranscriptWord<'_>> {
    let mut words: Vec<TranscriptWord<'_>> = Vec::new();
    for utterance in &transcript.utterances {
        let heard = |(text, (start, end)): (&str, (f64, f64)), confidence| TranscriptWord {
            key: key(text),
            start,
            end,
            confidence,
            utterance,
        };
        if utterance.words.is_empty() {
            let parts = texts(&utterance.text);
            let times = shares(&parts, utterance.start, utterance.end);
            words.extend(parts.into_iter().zip(times).map(|part| heard(part, utterance.confidence)));
        }
        for word in &utterance.words {
            words.extend(parts_of(word).into_iter().map(|part| heard(part, word.confidence)));
        }
    }
    words.retain(|word| word.start.is_finite() && word.end.is_finite());
    words.sort_by(|one, other| one.start.total_cmp(&other.start));
    words
}

fn texts(text: &str) -> Vec<&str> {
    line_words(text).into_iter().map(|word| word.text).collect()
}

/// Divides a recognised word as the text is divided, where a service sends several characters of a script without spaces
/// as one word. They share its time.
fn parts_of(word: &Word) -> Vec<(&str, (f64, f64))> {
    let parts = texts(&word.text);
    if parts.len() < 2 || !(word.start.is_finite() && word.end.is_finite()) {
        return vec![(word.text.as_str(), (word.start, word.end))];
    }
    let times = shares(&parts, word.start, word.end);
    parts.into_iter().zip(times).collect()
}

/// Returns the word without case and punctuation; as it is, if nothing else is in it.
pub(super) fn key(word: &str) -> String {
    let letters: String = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    if letters.is_empty() { word.trim().to_owned() } else { letters }
}

/// Gives words the time of the recognised words `range` that they stand for, or the silence there.
fn spread<'a>(
    timed: &mut Vec<TimedWord<'a>>,
    words: &[&str],
    heard: &[TranscriptWord<'a>],
    range: std::ops::Range<usize>,
) {
    let before = range.start.checked_sub(1).map(|last| &heard[last]);
    let after = heard.get(range.end);
    let inside = &heard[range];
    let edge = before.map_or(0.0, |word| word.end);
    let start = inside.first().map_or(edge, |word| word.start);
    let end = inside.last().map(|word| word.end).or(after.map(|word| word.start)).unwrap_or(start);
    let utterance = inside.first().or(before).or(after).map(|word| word.utterance);
    let times = shares(words, start, end);
    timed.extend(times.into_iter().map(|(start, end)| TimedWord { start, end, confidence: 1.0, utterance }));
}

/// Divides a time among words by their lengths.
pub(super) fn shares(words: &[&str], start: f64, end: f64) -> Vec<(f64, f64)> {
    let lengths: Vec<usize> = words.iter().map(|word| word.chars().count().max(1)).collect();
    let total: usize = lengths.iter().sum::<usize>().max(1);
    let length = (end - start).max(0.0);
    let at = |sum: usize| start + length * sum as f64 / total as f64;
    let sums = lengths.iter().scan(0, |sum, length| {
        let from = *sum;
        *sum += length;
        Some((at(from), at(*sum)))
    });
    sums.collect()
}

/// Moves what begins before the word before it.
pub(super) fn forward(timed: &mut [TimedWord<'_>]) {
    let mut last = 0.0_f64;
    for word in timed {
        word.start = word.start.max(last);
        word.end = word.end.max(word.start);
        last = word.start;
    }
}

fn utterances(lines: &[TextLine<'_>], timed: Vec<TimedWord<'_>>) -> Vec<Utterance> {
    let mut timed = timed.into_iter();
    let utterance = |line: &TextLine<'_>| {
        let times: Vec<TimedWord<'_>> = timed.by_ref().take(line.words.len()).collect();
        let heard = times.iter().find_map(|word| word.utterance);
        let words = line.words.iter().zip(&times).map(|(word, time)| {
            let TimedWord { start, end, confidence, .. } = *time;
            Word { text: word.with_space(), start, end, confidence }
        });
        let mean = times.iter().map(|word| word.confidence).sum::<f64>() / times.len().max(1) as f64;
        Utterance {
            text: join(&line.words),
            start: times.first().map_or(0.0, |word| word.start),
            end: times.iter().map(|word| word.end).fold(0.0, f64::max),
            confidence: mean,
            channel: heard.map_or(0, |heard| heard.channel),
            speaker: line.speaker.or(heard.and_then(|heard| heard.speaker)),
            language: heard.map(|heard| heard.language.clone()).unwrap_or_default(),
            words: words.collect(),
        }
    };
    lines.iter().map(utterance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One utterance, a word a second.
    fn heard(text: &str) -> Transcript {
        let words = text.split_whitespace().enumerate();
        let words: Vec<Word> = words
            .map(|(n, text)| Word { text: format!(" {text}"), start: n as f64, end: n as f64 + 0.5, confidence: 0.5 })
            .collect();
        let utterance = Utterance {
            text: text.to_owned(),
            start: 0.0,
            end: words.len() as f64,
            confidence: 0.5,
            channel: 0,
            speaker: Some(3),
            language: "en".into(),
            words,
        };
        Transcript { languages: vec!["en".into()], utterances: vec![utterance] }
    }

    fn times(text: &str, recognised: &str) -> Vec<(String, f64, f64)> {
        let aligned = align(&read_lines(text, &SpeakerNames::default()), &heard(recognised));
        let words = aligned.utterances.into_iter().flat_map(|utterance| utterance.words);
        words.map(|word| (word.text.trim().to_owned(), word.start, word.end)).collect()
    }

    #[test]
    fn equal_words_keep_their_times_and_others_share_those_between() {
        let timed = times("The quick, brown\nfoxes jump!", "the quick red fox jump");
        let of =
            |word: &str| timed.iter().find(|(text, ..)| text == word).map(|(_, start, end)| (*start, *end)).unwrap();
        assert_eq!((of("The"), of("quick,"), of("jump!")), ((0.0, 0.5), (1.0, 1.5), (4.0, 4.5)));
        // "brown foxes" stand for "red fox", from 2.0 to 3.5.
        assert_eq!(of("brown").0, 2.0);
        assert!((of("foxes").1 - 3.5).abs() < 1e-9 && of("brown").1 <= of("foxes").0 + 1e-9);
    }

    #[test]
    fn headings_name_speakers_and_are_no_text() {
        let aligned = align(
            &read_lines("Speaker 2:\none two\n\nSpeaker 1:\nthree\n", &SpeakerNames::default()),
            &heard("one two three"),
        );
        let speakers: Vec<_> = aligned.utterances.iter().map(|utterance| utterance.speaker).collect();
        assert_eq!((speakers, aligned.words, aligned.recognised), (vec![Some(1), Some(0)], 3, 3));
        assert_eq!(
            align(&read_lines("one", &SpeakerNames::default()), &heard("one")).utterances[0].speaker,
            Some(3),
            "as it was heard"
        );
        assert_eq!(align(&read_lines("a b", &SpeakerNames::default()), &Transcript::default()).recognised, 0);
    }

    /// A service sends Chinese in words of some characters, and a line of it has no spaces.
    #[test]
    fn characters_of_a_script_without_spaces_keep_their_times() {
        let word = |text: &str, start: f64| Word { text: text.to_owned(), start, end: start + 1.0, confidence: 0.5 };
        let mut transcript = heard("");
        transcript.utterances[0].words = vec![word("今天", 0.0), word("天气", 1.0), word("很好", 2.0)];
        let aligned = align(&read_lines("今天天氣\n很好！ OK\n", &SpeakerNames::default()), &transcript);
        assert_eq!((aligned.words, aligned.recognised), (7, 5));
        let said: Vec<&Utterance> = aligned.utterances.iter().collect();
        assert_eq!((said[0].text.as_str(), said[1].text.as_str()), ("今天天氣", "很好！ OK"));
        let times = |utterance: &Utterance| utterance.words.iter().map(|word| word.start).collect::<Vec<_>>();
        assert_eq!((times(said[0]), &times(said[1])[..2]), (vec![0.0, 0.5, 1.0, 1.5], &[2.0, 2.5][..]));
        let texts: Vec<&str> = said[1].words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["很", "好！", " OK"]);
        // The same without words of the service.
        transcript.utterances[0] =
            Utterance { text: "今天天气很好".into(), end: 6.0, words: vec![], ..said[0].clone() };
        let aligned = align(&read_lines("今天天氣很好", &SpeakerNames::default()), &transcript);
        assert_eq!((aligned.recognised, times(&aligned.utterances[0])), (5, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    }

    proptest! {
        #[test]
        fn times_never_go_back_and_every_word_is_there(text in "([a-d]{1,2}[ \n]){0,40}", recognised in "([a-d]{1,2} ){0,40}") {
            let timed = times(&text, &recognised);
            let words: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(timed.iter().map(|(word, ..)| word.as_str()).collect::<Vec<_>>(), words);
            prop_assert!(timed.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let last = recognised.split_whitespace().count() as f64;
            prop_assert!(timed.iter().all(|(_, start, end)| *start >= 0.0 && start <= end && *end <= last.max(1.0)));
        }
    }
}
