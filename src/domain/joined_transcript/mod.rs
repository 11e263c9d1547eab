//! Joins the transcripts of a recording's parts to one: no word of the sound that two parts share is lost or said twice,
//! and speakers keep their numbers where they can be told to be the same.

mod part_speakers;
mod shared_words;

pub use part_speakers::{KnownSpeakers, VoicePerson};

use crate::domain::split::PartRange;
use crate::domain::transcript::Transcript;
use crate::domain::word_overlap::Overlap;
use part_speakers::{EarlierSpeakers, Renumbered};
use shared_words::join_words;
use std::collections::BTreeMap;

/// The transcript of a whole recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JoinedTranscript {
    pub transcript: Transcript,
    /// The numbers of the parts, from 1, that have a speaker who may be one of the speakers before, and is not known to
    /// be. Such a speaker has a number of its own.
    pub unmatched: Vec<usize>,
    /// For each part, which number each of its speakers has in the whole.
    pub numbers: Vec<BTreeMap<u32, u32>>,
}

/// The transcript of a part, with the times of the recording.
pub struct PartTranscript {
    pub range: PartRange,
    pub transcript: Transcript,
    pub known: KnownSpeakers,
}

/// Joins the transcripts of parts, in the order of the recording. A range counts from `start_s`, where its sound track
/// begins.
pub fn join_transcripts(parts: Vec<PartTranscript>, start_s: f64) -> JoinedTranscript {
    let mut joined = JoinedTranscript::default();
    let mut languages: BTreeMap<String, usize> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut earlier = EarlierSpeakers::default();
    let mut before: Option<PartRange> = None;
    for (at, PartTranscript { range, transcript: mut part, known }) in parts.into_iter().enumerate() {
        for language in &part.languages {
            if !order.contains(language) {
                order.push(language.clone());
            }
        }
        let spoken = &mut joined.transcript.utterances;
        if let Some(before) = before {
            let seconds = |millis: u64| start_s + millis as f64 / 1e3;
            let overlap = Overlap { from: seconds(range.from_ms), to: seconds(before.to_ms), is_estimated: false };
            let same = earlier.same_speakers(spoken, &part.utterances, overlap, &known);
            join_words(spoken, &mut part.utterances, overlap);
            let Renumbered { numbers, all_known } = earlier.renumber(spoken, &mut part.utterances, same, &known);
            if !all_known {
                joined.unmatched.push(at + 1);
            }
            joined.numbers.push(numbers);
        } else {
            let speakers = part.utterances.iter().filter_map(|utterance| utterance.speaker);
            joined.numbers.push(speakers.map(|speaker| (speaker, speaker)).collect());
        }
        if let Some(numbers) = joined.numbers.last() {
            earlier.add(&known, numbers);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
    use crate::domain::transcript::{Utterance, Word};
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

    fn of_two(transcripts: [Transcript; 2], known: [KnownSpeakers; 2]) -> JoinedTranscript {
        let parts = RANGES.into_iter().zip(transcripts).zip(known);
        let part = |((range, transcript), known)| PartTranscript { range, transcript, known };
        join_transcripts(parts.map(part).collect(), 0.0)
    }

    fn joined(one: Vec<Utterance>, other: Vec<Utterance>) -> JoinedTranscript {
        let of = |utterances| Transcript { languages: vec!["en".to_owned()], utterances };
        of_two([of(one), of(other)], [KnownSpeakers::default(), KnownSpeakers::default()])
    }

    /// Two speakers in each part, who say nothing in the shared sound: their numbers in the whole, and the parts with
    /// unmatched speakers.
    fn numbered(known: [KnownSpeakers; 2]) -> (Vec<u32>, Vec<usize>) {
        let said = |speaker, start| utterance(0, Some(speaker), vec![word("hm", start, start + 0.4)]);
        let of = |utterances| Transcript { languages: vec!["en".to_owned()], utterances };
        let joined = of_two([of(vec![said(0, 1.0), said(1, 3.0)]), of(vec![said(0, 14.0), said(1, 16.0)])], known);
        let speakers: Vec<_> = joined.transcript.utterances.iter().filter_map(|one| one.speaker).collect();
        assert_eq!(joined.numbers[1].values().copied().collect::<Vec<_>>(), speakers[2..]);
        (speakers, joined.unmatched)
    }

    fn called(speaker: u32, name: &str) -> KnownSpeakers {
        let mut names = SpeakerNames::default();
        names.add(speaker, SpeakerName::parse(name).unwrap(), 1.0);
        KnownSpeakers { names, ..KnownSpeakers::default() }
    }

    #[test]
    fn a_speaker_who_has_a_name_in_both_parts_is_one() {
        assert_eq!(numbered([called(1, "Ann"), called(0, "Ann")]), (vec![0, 1, 1, 2], vec![2]));
        assert_eq!(numbered([called(1, "Ann"), called(0, "Bob")]), (vec![0, 1, 2, 3], vec![2]));
        assert_eq!(numbered(Default::default()), (vec![0, 1, 2, 3], vec![2]));
    }

    fn heard(voices: &[(u32, usize, bool)]) -> KnownSpeakers {
        let person = |(speaker, number, is_new): &(u32, usize, bool)| {
            (*speaker, VoicePerson { number: *number, is_new: *is_new })
        };
        KnownSpeakers { voices: voices.iter().map(person).collect(), ..KnownSpeakers::default() }
    }

    #[test]
    fn a_speaker_who_has_the_same_voice_in_both_parts_is_one() {
        let first = || heard(&[(0, 0, true), (1, 1, true)]);
        assert_eq!(numbered([first(), heard(&[(0, 1, false), (1, 0, false)])]), (vec![0, 1, 1, 0], vec![]));
        // A voice that is clearly another one is somebody new, and one that may be the same is not known.
        assert_eq!(numbered([first(), heard(&[(0, 1, false), (1, 2, true)])]), (vec![0, 1, 1, 2], vec![]));
        assert_eq!(numbered([first(), heard(&[(0, 1, false), (1, 2, false)])]), (vec![0, 1, 1, 2], vec![2]));
        // Somebody new might be the one who said too little before.
        assert_eq!(
            numbered([heard(&[(1, 0, true)]), heard(&[(0, 0, false), (1, 1, true)])]),
            (vec![0, 1, 1, 2], vec![2])
        );
        assert_eq!(numbered([first(), heard(&[(0, 1, false)])]), (vec![0, 1, 1, 2], vec![2]));
    }

    #[test]
    fn a_name_counts_more_than_a_voice() {
        let [mut one, mut other] = [called(1, "Ann"), called(0, "Ann")];
        one.voices = heard(&[(0, 0, true), (1, 1, true)]).voices;
        other.voices = heard(&[(0, 0, false), (1, 1, false)]).voices;
        assert_eq!(numbered([one, other]), (vec![0, 1, 1, 2], vec![2]));
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
