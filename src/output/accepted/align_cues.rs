//! Gives the words of captions what is known of the recognised words that were said while they are shown. Pure.

use super::align::{HeardWord, TimedWord, forward, heard_words, key, shares};
use super::matching::{Run, runs};
use crate::captions::Cue;
use crate::domain::transcript::{Transcript, Utterance, Word};
use std::ops::Range;

/// How long before or after its caption a word may begin, in seconds: captions are shown somewhat longer than they are
/// said, and people move words from one to the next.
const SLACK: f64 = 1.0;

/// The most recognised words that are compared with one caption. A caption that is shown during more is no caption, and
/// a file of many such is still compared in a short time.
const MOST_COMPARED: usize = 512;

/// Captions with what was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedCues {
    /// They begin and end with those that were recognised; a caption during which nothing was recognised is one of its
    /// own.
    pub utterances: Vec<Utterance>,
    /// Who speaks in each caption, where that is one person.
    pub speakers: Vec<Option<u32>>,
    pub words: usize,
    /// The number of words that were recognised too; the others have times within their captions.
    pub recognised: usize,
}

/// Aligns captions with the recognised words: equal words, in the same order, that were said about when their caption is
/// shown, get their times. Others share the time that is left of their caption. Times never go back.
pub fn align_cues(cues: &[Cue], heard: &Transcript) -> AlignedCues {
    let said = heard_words(heard);
    let words = cue_words(cues);
    let found = found_words(cues, &words, &said);
    let recognised = found.iter().flatten().count();
    let mut timed = Alignment { cues, words: &words, heard: &said, found: &found }.timed();
    forward(&mut timed);
    let speakers = speakers(cues, &words, &timed);
    let language = heard.languages.first().map_or("", String::as_str);
    AlignedCues {
        utterances: utterances(&words, &timed, &speakers, language),
        speakers: cues_of_one(cues.len(), &words, &speakers),
        words: words.len(),
        recognised,
    }
}

/// A word of a caption.
struct CueWord<'a> {
    text: &'a str,
    key: String,
    cue: usize,
}

fn cue_words(cues: &[Cue]) -> Vec<CueWord<'_>> {
    let texts = cues.iter().enumerate().flat_map(|(cue, shown)| {
        let texts = shown.rows.iter().flat_map(|row| row.split_whitespace());
        texts.map(move |text| (cue, text))
    });
    texts.map(|(cue, text)| CueWord { text, key: key(text), cue }).collect()
}

/// Returns the recognised word that each word is, if any; their order is the same.
fn found_words(cues: &[Cue], words: &[CueWord<'_>], heard: &[HeardWord<'_>]) -> Vec<Option<usize>> {
    let mut found = vec![None; words.len()];
    for (old, new) in equal_words(heard, 0..heard.len(), words, 0..words.len()) {
        let (start, end) = times(&cues[words[new].cue]);
        found[new] = (start - SLACK..=end + SLACK).contains(&heard[old].start).then_some(old);
    }
    find_by_caption(cues, words, heard, &mut found);
    found
}

/// Looks for the other words caption by caption: the whole texts may have been compared so that a word fell to one that
/// was said at another time.
fn find_by_caption(cues: &[Cue], words: &[CueWord<'_>], heard: &[HeardWord<'_>], found: &mut [Option<usize>]) {
    let next = next_found(found, heard.len());
    let (mut at, mut free) = (0, 0);
    while at < words.len() {
        let part = open_part(words, found, at);
        if let (true, Some(old)) = (part.is_empty(), found[at]) {
            (at, free) = (at + 1, old + 1);
            continue;
        }
        let window = said_during(heard, free..next[part.end], times(&cues[words[at].cue]), SLACK);
        if window.len() <= MOST_COMPARED {
            for (old, new) in equal_words(heard, window, words, part.clone()) {
                (found[new], free) = (Some(old), old + 1);
            }
        }
        at = part.end;
    }
}

/// Returns the words from `at` that are in one caption and were not found.
fn open_part(words: &[CueWord<'_>], found: &[Option<usize>], at: usize) -> Range<usize> {
    let is_open = |(word, found): &(&CueWord<'_>, &Option<usize>)| found.is_none() && word.cue == words[at].cue;
    at..at + words[at..].iter().zip(&found[at..]).take_while(is_open).count()
}

/// Returns, for each place among the words and the end, the recognised word that is found next; `end` if none is.
fn next_found(found: &[Option<usize>], end: usize) -> Vec<usize> {
    let mut next = vec![end; found.len() + 1];
    for at in (0..found.len()).rev() {
        next[at] = found[at].unwrap_or(next[at + 1]);
    }
    next
}

fn equal_words(
    heard: &[HeardWord<'_>],
    old_part: Range<usize>,
    words: &[CueWord<'_>],
    new_part: Range<usize>,
) -> Vec<(usize, usize)> {
    let old: Vec<&str> = heard[old_part.clone()].iter().map(|word| word.key.as_str()).collect();
    let new: Vec<&str> = words[new_part.clone()].iter().map(|word| word.key.as_str()).collect();
    let pairs = runs(&old, &new).into_iter().filter_map(|run| match run {
        Run::Equal { old, new } => Some(old.zip(new)),
        Run::Other { .. } => None,
    });
    pairs.flatten().map(|(old, new)| (old + old_part.start, new + new_part.start)).collect()
}

/// Returns those of the recognised words in `part` that begin in this time, or `slack` seconds beside it.
fn said_during(heard: &[HeardWord<'_>], part: Range<usize>, (start, end): (f64, f64), slack: f64) -> Range<usize> {
    if part.is_empty() {
        return part.start..part.start;
    }
    let words = &heard[part.clone()];
    let first = words.partition_point(|word| word.start < start - slack);
    let last = words.partition_point(|word| word.start <= end + slack);
    part.start + first..part.start + last.max(first)
}

fn times(cue: &Cue) -> (f64, f64) {
    (cue.start.as_secs_f64(), cue.end.as_secs_f64())
}

/// The words of captions, and those of the recognised words that they are.
struct Alignment<'a, 'h> {
    cues: &'a [Cue],
    words: &'a [CueWord<'a>],
    heard: &'a [HeardWord<'h>],
    found: &'a [Option<usize>],
}

impl<'h> Alignment<'_, 'h> {
    fn timed(&self) -> Vec<TimedWord<'h>> {
        let next = next_found(self.found, self.heard.len());
        let (mut timed, mut free) = (Vec::with_capacity(self.words.len()), 0);
        while timed.len() < self.words.len() {
            let at = timed.len();
            if let Some(old) = self.found[at] {
                timed.push(TimedWord::of(&self.heard[old]));
                free = old + 1;
            } else {
                let part = open_part(self.words, self.found, at);
                timed.extend(self.spread(part.clone(), free..next[part.end]));
            }
        }
        timed
    }

    /// Gives words that were not recognised the time of those of `unused` that were said instead; if there are none,
    /// the time that is left of their caption.
    fn spread(&self, part: Range<usize>, unused: Range<usize>) -> impl Iterator<Item = TimedWord<'h>> + use<'h> {
        let shown = times(&self.cues[self.words[part.start].cue]);
        let (before, after) = (self.beside(&part, part.start.checked_sub(1)), self.beside(&part, Some(part.end)));
        let until = after.map_or(shown.1, |word| word.start);
        let from = before.map_or(shown.0, |word| word.end).min(until);
        let instead = &self.heard[said_during(self.heard, unused, shown, 0.0)];
        let said = instead.first().or(before).or(after);
        // A caption of other words alone is shown while they are said.
        let instead = if before.or(after).is_some() { instead } else { &[] };
        let start = instead.first().map_or(from, |word| word.start.clamp(from, until));
        let end = instead.last().map_or(until, |word| word.end.clamp(start, until));
        let utterance = said.map(|word| word.utterance);
        let texts: Vec<&str> = self.words[part].iter().map(|word| word.text).collect();
        let shares = shares(&texts, start, end).into_iter();
        shares.map(move |(start, end)| TimedWord { start, end, confidence: 1.0, utterance })
    }

    /// Returns the recognised word at a place beside a part, if it is in the same caption.
    fn beside(&self, part: &Range<usize>, at: Option<usize>) -> Option<&HeardWord<'h>> {
        let at = at.filter(|at| self.words.get(*at).is_some_and(|word| word.cue == self.words[part.start].cue))?;
        self.found[at].map(|old| &self.heard[old])
    }
}

/// Returns who says each word. The speaker that a caption names counts where nobody heard that speaker in it: else a
/// caption of two people would be one person's.
fn speakers(cues: &[Cue], words: &[CueWord<'_>], timed: &[TimedWord<'_>]) -> Vec<Option<u32>> {
    let heard: Vec<Option<u32>> = timed.iter().map(|word| word.utterance.and_then(|said| said.speaker)).collect();
    let mut named: Vec<Option<u32>> = cues.iter().map(|cue| cue.speaker).collect();
    for (word, speaker) in words.iter().zip(&heard).filter(|(_, speaker)| speaker.is_some()) {
        named[word.cue].take_if(|named| Some(*named) == *speaker);
    }
    words.iter().zip(heard).map(|(word, heard)| named[word.cue].or(heard)).collect()
}

fn cues_of_one(cues: usize, words: &[CueWord<'_>], speakers: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut of: Vec<Option<Option<u32>>> = vec![None; cues];
    for (word, speaker) in words.iter().zip(speakers) {
        let speaker = of[word.cue].map_or(*speaker, |before| before.filter(|before| Some(*before) == *speaker));
        of[word.cue] = Some(speaker);
    }
    of.into_iter().map(Option::flatten).collect()
}

fn utterances(
    words: &[CueWord<'_>],
    timed: &[TimedWord<'_>],
    speakers: &[Option<u32>],
    language: &str,
) -> Vec<Utterance> {
    let belong = |one: usize, other: usize| {
        let is_same = match (timed[one].utterance, timed[other].utterance) {
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            (None, None) => words[one].cue == words[other].cue,
            _ => false,
        };
        is_same && speakers[one] == speakers[other]
    };
    let places: Vec<usize> = (0..words.len()).collect();
    let parts = places.chunk_by(|one, other| belong(*one, *other));
    let parts = parts.map(|part| part[0]..part[0] + part.len());
    parts.map(|part| utterance(&words[part.clone()], &timed[part.clone()], speakers[part.start], language)).collect()
}

/// Makes an utterance of words; there is at least one.
fn utterance(words: &[CueWord<'_>], timed: &[TimedWord<'_>], speaker: Option<u32>, language: &str) -> Utterance {
    let heard = timed[0].utterance;
    let texts: Vec<&str> = words.iter().map(|word| word.text).collect();
    let word = |(text, time): (&&str, &TimedWord<'_>)| {
        let TimedWord { start, end, confidence, .. } = *time;
        Word { text: format!(" {text}"), start, end, confidence }
    };
    Utterance {
        text: texts.join(" "),
        start: timed[0].start,
        end: timed.iter().map(|word| word.end).fold(0.0, f64::max),
        confidence: timed.iter().map(|word| word.confidence).sum::<f64>() / timed.len() as f64,
        channel: heard.map_or(0, |heard| heard.channel),
        speaker,
        language: heard.map_or(language, |heard| heard.language.as_str()).to_owned(),
        words: texts.iter().zip(timed).map(word).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// An utterance with a word a second from `start`, each half a second long.
    fn said(speaker: u32, start: f64, text: &str) -> Utterance {
        let words = text.split_whitespace().enumerate();
        let word = |(n, text): (usize, &str)| {
            let start = start + n as f64;
            Word { text: format!(" {text}"), start, end: start + 0.5, confidence: 0.5 }
        };
        let words: Vec<Word> = words.map(word).collect();
        let end = words.last().map_or(start, |word| word.end);
        let (text, language) = (text.to_owned(), "en".to_owned());
        Utterance { text, start, end, confidence: 0.5, channel: 1, speaker: Some(speaker), language, words }
    }

    fn heard(utterances: &[(u32, f64, &str)]) -> Transcript {
        let utterances = utterances.iter().map(|(speaker, start, text)| said(*speaker, *start, text)).collect();
        Transcript { languages: vec!["en".into()], utterances }
    }

    fn cue(start: u64, end: u64, text: &str) -> Cue {
        let time = Duration::from_secs;
        Cue { start: time(start), end: time(end), rows: vec![text.into()], speaker: None }
    }

    /// The words with their times and confidences.
    fn words(aligned: &AlignedCues) -> Vec<(&str, f64, f64, f64)> {
        let words = aligned.utterances.iter().flat_map(|utterance| &utterance.words);
        words.map(|word| (word.text.trim(), word.start, word.end, word.confidence)).collect()
    }

    #[test]
    fn unchanged_words_keep_all_that_is_known_of_them() {
        let heard = heard(&[(0, 0.0, "good morning to all"), (1, 4.0, "thank you")]);
        let cues = [cue(0, 2, "Good mourning"), cue(2, 5, "to all - thank"), cue(5, 7, "you.")];
        let aligned = align_cues(&cues, &heard);
        let expected = [
            ("Good", 0.0, 0.5, 0.5),
            ("mourning", 1.0, 1.5, 1.0),
            ("to", 2.0, 2.5, 0.5),
            ("all", 3.0, 3.5, 0.5),
            ("-", 3.5, 4.0, 1.0),
            ("thank", 4.0, 4.5, 0.5),
            ("you.", 5.0, 5.5, 0.5),
        ];
        assert_eq!(words(&aligned), expected);
        let of = |utterance: &Utterance| (utterance.text.clone(), utterance.speaker, utterance.channel);
        let utterances: Vec<_> = aligned.utterances.iter().map(of).collect();
        let expected = [("Good mourning to all -".into(), Some(0), 1), ("thank you.".into(), Some(1), 1)];
        assert_eq!(utterances, expected);
        assert_eq!((aligned.words, aligned.recognised), (7, 5));
        assert_eq!(aligned.speakers, [Some(0), None, Some(1)]);
    }

    #[test]
    fn a_word_said_at_another_time_is_another_word() {
        let heard = heard(&[(0, 0.0, "yes"), (0, 60.0, "no yes")]);
        let aligned = align_cues(&[cue(60, 62, "yes"), cue(90, 92, "no")], &heard);
        assert_eq!(words(&aligned), [("yes", 61.0, 61.5, 0.5), ("no", 90.0, 92.0, 1.0)]);
        assert_eq!(aligned.utterances[1].speaker, None, "nobody was heard then");
    }

    #[test]
    fn a_speaker_that_a_caption_names_counts_if_another_one_was_heard() {
        let heard = heard(&[(0, 0.0, "one two"), (1, 2.0, "three four")]);
        let named = |speaker, cue: Cue| Cue { speaker: Some(speaker), ..cue };
        let aligned = align_cues(&[named(5, cue(0, 2, "one two")), named(1, cue(2, 4, "three four"))], &heard);
        let speakers: Vec<_> = aligned.utterances.iter().map(|utterance| utterance.speaker).collect();
        assert_eq!(speakers, [Some(5), Some(1)]);
        let aligned = align_cues(&[named(1, cue(0, 4, "one two three four"))], &heard);
        let speakers: Vec<_> = aligned.utterances.iter().map(|utterance| utterance.speaker).collect();
        assert_eq!(speakers, [Some(0), Some(1)], "a caption of two people");
    }

    proptest! {
        #[test]
        fn times_never_go_back_and_every_word_is_there(
            rows in prop::collection::vec("[a-c]{1,2}( [a-c]{1,2}){0,4}", 1..12),
            recognised in "([a-c]{1,2} ){0,40}",
            length in 1..6_u64,
        ) {
            let heard = heard(&[(0, 0.0, recognised.as_str())]);
            let cues: Vec<Cue> =
                (0..).zip(&rows).map(|(n, row)| cue(n * length, (n + 1) * length, row)).collect();
            let aligned = align_cues(&cues, &heard);
            let timed = words(&aligned);
            let all = rows.join(" ");
            prop_assert_eq!(timed.iter().map(|word| word.0).collect::<Vec<_>>(), all.split(' ').collect::<Vec<_>>());
            prop_assert!(timed.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            prop_assert!(timed.iter().all(|word| word.1 <= word.2));
            prop_assert!(aligned.recognised <= recognised.split_whitespace().count());
        }
    }
}
