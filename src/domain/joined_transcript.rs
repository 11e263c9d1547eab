//! Joins the transcripts of a recording's parts to one: no word of the sound that two parts share is lost or said twice,
//! and speakers keep their numbers where they can be told to be the same.

use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::domain::split::PartRange;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::domain::word_overlap::{JoinableWord, Overlap, covers, seam};
use std::collections::{BTreeMap, BTreeSet};

/// How far from the shared sound words are still compared, in seconds: the times of a word differ a little between two
/// recognitions.
const NEAR: f64 = 5.0;

/// The transcript of a whole recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JoinedTranscript {
    pub transcript: Transcript,
    /// The numbers of the parts, from 1, that have a speaker who is not known to be one of the speakers before. Such a
    /// speaker has a number of its own.
    pub unmatched: Vec<usize>,
    /// For each part, which number each of its speakers has in the whole.
    pub numbers: Vec<BTreeMap<u32, u32>>,
}

/// Joins the transcripts of parts, in the order of the recording. Times are those of the recording: a range counts from
/// `start_s`, where its sound track begins. `names` has the speakers of each part whose voices are known.
pub fn join_transcripts(parts: Vec<(PartRange, Transcript)>, names: &[SpeakerNames], start_s: f64) -> JoinedTranscript {
    let mut joined = JoinedTranscript::default();
    let mut languages: BTreeMap<String, usize> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut before: Option<PartRange> = None;
    for (at, (range, mut part)) in parts.into_iter().enumerate() {
        for language in &part.languages {
            if !order.contains(language) {
                order.push(language.clone());
            }
        }
        let mut numbers = BTreeMap::new();
        if let Some(before) = before {
            let seconds = |millis: u64| start_s + millis as f64 / 1e3;
            let overlap = Overlap { from: seconds(range.from_ms), to: seconds(before.to_ms), is_estimated: false };
            let spoken = &mut joined.transcript.utterances;
            let known = same_names(&names[..at.min(names.len())], &joined.numbers, names.get(at));
            let speakers = same_speakers(spoken, &part.utterances, overlap, known);
            join_words(spoken, &mut part.utterances, overlap);
            let (given, all_known) = renumber(spoken, &mut part.utterances, speakers);
            numbers = given;
            if !all_known {
                joined.unmatched.push(at + 1);
            }
        } else {
            let speakers = part.utterances.iter().filter_map(|utterance| utterance.speaker);
            numbers.extend(speakers.map(|speaker| (speaker, speaker)));
        }
        joined.numbers.push(numbers);
        joined.transcript.utterances.append(&mut part.utterances);
        before = Some(range);
    }
    for utterance in &joined.transcript.utterances {
        *languages.entry(utterance.language.clone()).or_default() += utterance.words.len().max(1);
    }
    order.sort_by_key(|language| std::cmp::Reverse(languages.get(language).copied().unwrap_or(0)));
    joined.transcript.languages = order;
    joined.transcript.utterances.sort_by(|one, other| one.start.total_cmp(&other.start));
    joined
}

/// A word with its utterance.
struct Spoken<'u> {
    utterance: usize,
    text: &'u str,
    times: (f64, f64),
    speaker: Option<u32>,
}

impl JoinableWord for Spoken<'_> {
    fn text(&self) -> &str {
        self.text
    }

    fn times(&self) -> (f64, f64) {
        self.times
    }
}

/// Returns the words of a channel whose time `is_near` the cut, in order of time.
fn words_of<'u>(utterances: &'u [Utterance], channel: u32, is_near: &dyn Fn(f64, f64) -> bool) -> Vec<Spoken<'u>> {
    let mut words = Vec::new();
    for (at, utterance) in utterances.iter().enumerate().filter(|(_, utterance)| utterance.channel == channel) {
        let speaker = utterance.speaker;
        let of_word = |word: &'u Word| Spoken { utterance: at, text: &word.text, times: word.times(), speaker };
        words.extend(utterance.words.iter().map(of_word));
    }
    words.retain(|word| is_near(word.times.0, word.times.1));
    words.sort_by(|one, other| one.times.0.total_cmp(&other.times.0));
    words
}

fn words_before(utterances: &[Utterance], channel: u32, overlap: Overlap) -> Vec<Spoken<'_>> {
    words_of(utterances, channel, &|_, end| end > overlap.from - NEAR)
}

fn words_after(utterances: &[Utterance], channel: u32, overlap: Overlap) -> Vec<Spoken<'_>> {
    words_of(utterances, channel, &|start, _| start < overlap.to + NEAR)
}

fn channels(utterances: &[Utterance]) -> BTreeSet<u32> {
    utterances.iter().map(|utterance| utterance.channel).collect()
}

/// Leaves each word of the shared sound in one of the two.
fn join_words(before: &mut Vec<Utterance>, after: &mut Vec<Utterance>, overlap: Overlap) {
    let both: Vec<u32> = channels(before).intersection(&channels(after)).copied().collect();
    let (mut gone_before, mut gone_after) = (BTreeMap::new(), BTreeMap::new());
    for channel in both {
        let (left, right) = (words_before(before, channel, overlap), words_after(after, channel, overlap));
        let (kept, dropped) = seam(&left, &right, overlap);
        count(&left[kept..], &mut gone_before);
        count(&right[..dropped], &mut gone_after);
    }
    drop_repeated_texts(before, after, overlap);
    shorten(before, &gone_before, |words, gone| words.truncate(words.len() - gone));
    shorten(after, &gone_after, |words, gone| drop(words.drain(..gone)));
}

/// Removes the utterances of the second that have a text alone, begin in the shared sound, and are in the first.
fn drop_repeated_texts(before: &[Utterance], after: &mut Vec<Utterance>, overlap: Overlap) {
    let is_repeated = |utterance: &Utterance| {
        let is_same = |known: &&Utterance| known.channel == utterance.channel && covers(*known, utterance);
        utterance.words.is_empty() && utterance.start < overlap.to && before.iter().any(|known| is_same(&known))
    };
    after.retain(|utterance| !is_repeated(utterance));
}

/// Counts how many words each utterance loses.
fn count(words: &[Spoken<'_>], gone: &mut BTreeMap<usize, usize>) {
    for word in words {
        *gone.entry(word.utterance).or_default() += 1;
    }
}

/// Takes words from utterances. An utterance that has none left is removed.
fn shorten(utterances: &mut Vec<Utterance>, gone: &BTreeMap<usize, usize>, take: impl Fn(&mut Vec<Word>, usize)) {
    let mut at = 0;
    utterances.retain_mut(|utterance| {
        let lost = gone.get(&at).copied().unwrap_or(0);
        at += 1;
        if lost == 0 {
            return true;
        }
        let mut words = std::mem::take(&mut utterance.words);
        let left = words.len().saturating_sub(lost);
        if left > 0 {
            take(&mut words, lost);
            *utterance = utterance.with_words(words);
        }
        left > 0
    });
}

/// Returns which speakers of a part have the name of a speaker of a part before it: their numbers in the whole.
fn same_names(
    before: &[SpeakerNames],
    numbers: &[BTreeMap<u32, u32>],
    part: Option<&SpeakerNames>,
) -> BTreeMap<u32, u32> {
    let known = |name: &SpeakerName| {
        before.iter().zip(numbers).find_map(|(names, numbers)| {
            let (speaker, _) = names.iter().find(|(_, known)| *known == name)?;
            numbers.get(&speaker).copied()
        })
    };
    let mut same: BTreeMap<u32, u32> = BTreeMap::new();
    for (speaker, name) in part.into_iter().flat_map(SpeakerNames::iter) {
        if let Some(number) = known(name).filter(|number| !same.values().any(|taken| taken == number)) {
            same.insert(speaker, number);
        }
    }
    same
}

/// Returns which speakers of the second are speakers of the first: beside those who are known to be, those who say the
/// same words in the shared sound, and those who are alone on their channel in both.
fn same_speakers(
    before: &[Utterance],
    after: &[Utterance],
    overlap: Overlap,
    known: BTreeMap<u32, u32>,
) -> BTreeMap<u32, u32> {
    let mut votes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let all = channels(after);
    for channel in &all {
        let left = words_before(before, *channel, overlap);
        for word in words_after(after, *channel, overlap) {
            let same = left.iter().find(|other| covers(*other, &word));
            if let Some((known, new)) = same.and_then(|same| same.speaker.zip(word.speaker)) {
                *votes.entry((new, known)).or_default() += 1;
            }
        }
    }
    if all.len() > 1 {
        for channel in &all {
            if let Some((known, new)) = only_speaker(before, *channel).zip(only_speaker(after, *channel)) {
                *votes.entry((new, known)).or_default() += 1;
            }
        }
    }
    let mut by_votes: Vec<_> = votes.into_iter().collect();
    by_votes.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    let mut same = known;
    for ((new, known), _) in by_votes {
        if !same.contains_key(&new) && !same.values().any(|taken| *taken == known) {
            same.insert(new, known);
        }
    }
    same
}

/// Returns the speaker of a channel, if all its utterances have the same one and no other channel has it.
fn only_speaker(utterances: &[Utterance], channel: u32) -> Option<u32> {
    let (here, elsewhere): (Vec<_>, Vec<_>) = utterances.iter().partition(|utterance| utterance.channel == channel);
    let speakers: BTreeSet<Option<u32>> = here.iter().map(|utterance| utterance.speaker).collect();
    let only = speakers.first().copied().flatten().filter(|_| speakers.len() == 1)?;
    (!elsewhere.iter().any(|utterance| utterance.speaker == Some(only))).then_some(only)
}

/// Gives the speakers of the second their numbers in the whole. Returns these, and whether all of them are known.
fn renumber(before: &[Utterance], after: &mut [Utterance], same: BTreeMap<u32, u32>) -> (BTreeMap<u32, u32>, bool) {
    let first_free = before.iter().filter_map(|utterance| utterance.speaker).max();
    let mut next = first_free.map_or(0, |most| most.saturating_add(1));
    let (mut numbers, mut all_known) = (same, true);
    for utterance in after {
        let Some(speaker) = utterance.speaker else { continue };
        let number = *numbers.entry(speaker).or_insert_with(|| {
            all_known &= first_free.is_none();
            next = next.saturating_add(1);
            next - 1
        });
        utterance.speaker = Some(number);
    }
    (numbers, all_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANGES: [PartRange; 2] =
        [PartRange { from_ms: 0, to_ms: 11_000 }, PartRange { from_ms: 10_000, to_ms: 20_000 }];

    fn word(text: &str, start: f64, end: f64) -> Word {
        Word { text: format!(" {text}"), start, end, confidence: 0.5 }
    }

    fn utterance(channel: u32, speaker: Option<u32>, words: Vec<Word>) -> Utterance {
        let empty = Utterance {
            text: String::new(),
            start: 0.0,
            end: 0.0,
            confidence: 0.0,
            channel,
            speaker,
            language: "en".to_owned(),
            words: Vec::new(),
        };
        empty.with_words(words)
    }

    fn joined(one: Vec<Utterance>, other: Vec<Utterance>) -> JoinedTranscript {
        let of = |utterances| Transcript { languages: vec!["en".to_owned()], utterances };
        join_transcripts(vec![(RANGES[0], of(one)), (RANGES[1], of(other))], &[], 0.0)
    }

    #[test]
    fn a_speaker_who_has_a_name_in_both_parts_is_one() {
        let called = |speaker, name: &str| {
            let mut names = SpeakerNames::default();
            names.add(speaker, SpeakerName::parse(name).unwrap(), 1.0);
            names
        };
        let said = |speaker, start| utterance(0, Some(speaker), vec![word("hm", start, start + 0.4)]);
        let parts = || {
            let of = |utterances| Transcript { languages: vec!["en".to_owned()], utterances };
            vec![(RANGES[0], of(vec![said(0, 1.0), said(1, 3.0)])), (RANGES[1], of(vec![said(0, 14.0), said(1, 16.0)]))]
        };
        let numbers = |names: &[SpeakerNames]| {
            let joined = join_transcripts(parts(), names, 0.0);
            let speakers: Vec<_> = joined.transcript.utterances.iter().filter_map(|one| one.speaker).collect();
            assert_eq!(joined.numbers[1].values().copied().collect::<Vec<_>>(), speakers[2..]);
            (speakers, joined.unmatched)
        };
        assert_eq!(numbers(&[called(1, "Ann"), called(0, "Ann")]), (vec![0, 1, 1, 2], vec![2]));
        assert_eq!(numbers(&[called(1, "Ann"), called(0, "Bob")]), (vec![0, 1, 2, 3], vec![2]));
        assert_eq!(numbers(&[]), (vec![0, 1, 2, 3], vec![2]));
    }

    #[test]
    fn a_word_that_both_parts_have_is_said_once_and_keeps_its_speaker() {
        let one =
            vec![utterance(0, Some(1), vec![word("so", 9.0, 9.4), word("we", 10.2, 10.4), word("go", 10.5, 10.8)])];
        let other = vec![
            utterance(0, Some(0), vec![word("we", 10.2, 10.4), word("go", 10.5, 10.8), word("home", 11.2, 11.6)]),
            utterance(0, Some(1), vec![word("yes", 12.0, 12.3)]),
        ];
        let JoinedTranscript { transcript, unmatched, .. } = joined(one, other);
        assert_eq!(transcript.text(), "so we go home yes");
        let speakers: Vec<_> = transcript.utterances.iter().map(|utterance| utterance.speaker).collect();
        // The speaker of the shared words is known; the other one is new.
        assert_eq!((speakers.first(), speakers.last(), unmatched), (Some(&Some(1)), Some(&Some(2)), vec![2]));
        assert!(speakers[..speakers.len() - 1].iter().all(|speaker| *speaker == Some(1)));
    }

    #[test]
    fn a_speaker_who_is_alone_on_a_channel_stays_the_same() {
        let said = |channel, speaker, text: &str, start: f64| {
            utterance(channel, Some(speaker), vec![word(text, start, start + 0.4)])
        };
        let one = vec![said(0, 0, "hello", 1.0), said(1, 1, "hi", 2.0)];
        let other = vec![said(1, 0, "well", 12.0), said(0, 1, "bye", 13.0)];
        let JoinedTranscript { transcript, unmatched, .. } = joined(one, other);
        let speakers: Vec<_> = transcript.utterances.iter().map(|u| (u.channel, u.speaker)).collect();
        assert_eq!(speakers, [(0, Some(0)), (1, Some(1)), (1, Some(1)), (0, Some(0))]);
        assert_eq!(unmatched, Vec::<usize>::new());
    }

    #[test]
    fn texts_without_words_and_parts_without_speech_are_joined_too() {
        let mut plain = utterance(0, None, vec![word("alone", 3.0, 4.0)]);
        plain.words.clear();
        let JoinedTranscript { transcript, unmatched, .. } = joined(vec![plain.clone()], Vec::new());
        assert_eq!((transcript.text().as_str(), unmatched.len()), ("alone", 0));
        let twice = Utterance { start: 10.1, end: 10.9, ..plain };
        assert_eq!(joined(vec![twice.clone()], vec![twice]).transcript.text(), "alone");
    }

    proptest! {
        /// A recording that both parts recognise alike is joined as it was said, on each channel.
        #[test]
        fn what_was_said_comes_back(
            lengths in prop::collection::vec((0.1..0.7_f64, 0.0..0.4_f64, 0..2_u32), 20..60),
            per_utterance in 1..9_usize,
        ) {
            let mut ends = [0.0_f64; 2];
            let mut spoken: [Vec<Word>; 2] = [Vec::new(), Vec::new()];
            for (number, (length, gap, channel)) in lengths.into_iter().enumerate() {
                let at = channel as usize;
                let start = ends[at] + gap;
                ends[at] = start + length;
                spoken[at].push(word(&format!("w{number}"), start, start + length));
            }
            let part = |from: f64, to: f64| -> Vec<Utterance> {
                let within = |word: &&Word| word.start >= from && word.end <= to;
                let of = |(channel, words): (usize, &Vec<Word>)| {
                    let words: Vec<Word> = words.iter().filter(within).cloned().collect();
                    let chunks: Vec<_> = words.chunks(per_utterance).map(<[Word]>::to_vec).collect();
                    chunks.into_iter().map(move |words| utterance(channel as u32, None, words)).collect::<Vec<_>>()
                };
                spoken.iter().enumerate().flat_map(of).collect()
            };
            let whole = joined(part(0.0, 11.0), part(10.0, 99.0)).transcript;
            for channel in 0..2_u32 {
                let of_channel = whole.utterances.iter().filter(|utterance| utterance.channel == channel);
                let texts: Vec<&str> = of_channel.flat_map(|u| &u.words).map(|word| word.text.as_str()).collect();
                let said: Vec<&str> = spoken[channel as usize].iter().map(|word| word.text.as_str()).collect();
                prop_assert_eq!(texts, said);
            }
        }
    }
}
