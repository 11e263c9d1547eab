//! Finds the speakers of a recording, and gives each word its speaker.

use super::clusters::{self, Cluster, VoicePiece};
use super::realign::{self, Labels};
use super::stretch::{self, Stretch};
use super::turns;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::voice::voice_frames::VoiceFrames;

/// How many people speak, as far as the client says (interface, `diarization_config`). Hints: a recording in which fewer
/// voices can be told apart has fewer speakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpeakerHints {
    pub exact: Option<usize>,
    pub least: Option<usize>,
    pub most: Option<usize>,
}

impl SpeakerHints {
    /// Whether two of `count` voices are joined whose difference is this; below 0 they are probably one.
    pub fn joins(self, count: usize, difference: f64) -> bool {
        match self.exact {
            Some(exact) => count > exact.max(1),
            None if count <= self.least.unwrap_or(1).max(1) => false,
            None if self.most.is_some_and(|most| count > most.max(1)) => true,
            None => difference < 0.0,
        }
    }
}

/// Who speaks when in one channel.
#[derive(Debug, Default)]
pub struct Speakers {
    /// The first frame of each stretch and its labels, in order.
    stretches: Vec<(usize, Labels)>,
}

/// Finds the speakers in stretches of sound, which are in order and do not overlap.
pub fn find_speakers(recording: Vec<VoiceFrames>, hints: SpeakerHints) -> Speakers {
    let stretches: &[Stretch] = &stretch::stretches(recording);
    let pieces = stretches.iter().enumerate().flat_map(|(stretch, frames)| {
        turns::pieces(frames).into_iter().map(move |frames| VoicePiece { stretch, frames })
    });
    let single: Vec<Cluster> = pieces.filter_map(|piece| Cluster::of(piece, stretches)).collect();
    let clusters = clusters::join(single, hints);
    let labels = realign::realign(realign::labels_of(&clusters, stretches), clusters.len(), stretches);
    Speakers { stretches: stretches.iter().map(|stretch| stretch.first).zip(labels).collect() }
}

/// Frames in a second.
const RATE: f64 = 100.0;

impl Speakers {
    /// Returns who speaks in each frame of 10 ms, from the start of the recording; `None` where nobody does.
    pub fn frames(&self) -> Labels {
        let mut all = Labels::new();
        for (first, labels) in &self.stretches {
            all.resize(*first, None);
            all.extend_from_slice(labels);
        }
        all
    }

    /// Returns who says what is said from `start` to `end`, in seconds: whoever speaks longest in it, otherwise who
    /// speaks nearest to it. 0 if nobody speaks anywhere.
    fn speaker_of(&self, start: f64, end: f64) -> u16 {
        let [from, to] = [start, end].map(|time| (time.max(0.0) * RATE) as usize);
        let to = to.max(from + 1);
        let next = self.stretches.partition_point(|(first, labels)| first + labels.len() <= from);
        let inside = self.stretches[next..].iter().take_while(|(first, _)| *first < to).flat_map(|(first, labels)| {
            let range = from.saturating_sub(*first).min(labels.len())..to.saturating_sub(*first).min(labels.len());
            labels[range].iter().flatten()
        });
        let mut counts: Vec<(u16, usize)> = Vec::new();
        for speaker in inside {
            match counts.iter_mut().find(|(known, _)| known == speaker) {
                Some((_, count)) => *count += 1,
                None => counts.push((*speaker, 1)),
            }
        }
        let longest = counts.into_iter().max_by_key(|(_, count)| *count).map(|(speaker, _)| speaker);
        longest.or_else(|| self.nearest(from, next)).unwrap_or(0)
    }

    /// Returns who speaks nearest to a frame, looking from this stretch outward; `None` if nobody speaks anywhere.
    fn nearest(&self, frame: usize, stretch: usize) -> Option<u16> {
        let nearest_in = |number: usize| {
            let (first, labels) = self.stretches.get(number)?;
            let spoken = labels.iter().enumerate().filter_map(|(at, label)| Some((first + at, (*label)?)));
            spoken.min_by_key(|(at, _)| at.abs_diff(frame))
        };
        (0..=self.stretches.len()).find_map(|distance| {
            let before = stretch.checked_sub(distance + 1).and_then(nearest_in);
            let after = stretch.checked_add(distance).and_then(nearest_in);
            before.into_iter().chain(after).min_by_key(|(at, _)| at.abs_diff(frame)).map(|(_, speaker)| speaker)
        })
    }

    /// Gives each utterance its speaker, and splits it where the speaker changes. Speakers are numbered from 0, in the
    /// order in which they begin to speak.
    pub fn label(&self, transcript: &mut Transcript, begins_sentence: impl Fn(&mut Word)) {
        let utterances = std::mem::take(&mut transcript.utterances);
        let mut numbers: Vec<u16> = Vec::new();
        for utterance in utterances {
            for (speaker, mut part) in self.parts(utterance, &begins_sentence) {
                let known = numbers.iter().position(|known| *known == speaker);
                let number = known.unwrap_or_else(|| {
                    numbers.push(speaker);
                    numbers.len() - 1
                });
                part.speaker = u32::try_from(number).ok();
                transcript.utterances.push(part);
            }
        }
    }

    fn parts(&self, utterance: Utterance, begins_sentence: &impl Fn(&mut Word)) -> Vec<(u16, Utterance)> {
        let of_word = |word: &Word| self.speaker_of(word.start, word.end);
        let spoken: Vec<(u16, Word)> = utterance.words.iter().map(|word| (of_word(word), word.clone())).collect();
        let first = spoken.first().map_or_else(|| self.speaker_of(utterance.start, utterance.end), |(first, _)| *first);
        if spoken.iter().all(|(speaker, _)| *speaker == first) {
            return vec![(first, utterance)];
        }
        let runs = spoken.chunk_by(|(one, _), (other, _)| one == other);
        let part = |(number, run): (usize, &[(u16, Word)])| {
            let mut words: Vec<Word> = run.iter().map(|(_, word)| word.clone()).collect();
            if let Some(first) = words.first_mut().filter(|_| number > 0) {
                begins_sentence(first);
            }
            (run[0].0, utterance.with_words(words))
        };
        runs.enumerate().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::cepstrum::Band;

    fn speakers(labels: &[(usize, Option<u16>)]) -> Speakers {
        let all = labels.iter().flat_map(|(count, label)| vec![*label; *count]).collect();
        Speakers { stretches: vec![(100, all)] }
    }

    fn transcript(words: &[(&str, f64, f64)]) -> Transcript {
        let words: Vec<Word> = words
            .iter()
            .map(|(text, start, end)| Word { text: (*text).to_owned(), start: *start, end: *end, confidence: 0.5 })
            .collect();
        let whole = Utterance {
            text: String::new(),
            start: 0.0,
            end: 0.0,
            confidence: 0.5,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words: Vec::new(),
        };
        Transcript { languages: vec!["en".to_owned()], utterances: vec![whole.with_words(words)] }
    }

    #[test]
    fn an_utterance_is_split_where_the_speaker_changes() {
        // Frames 100 to 199 are of one speaker, 200 to 299 of another, 300 to 349 of nobody, and 350 to 399 of the first.
        let speakers = speakers(&[(100, Some(7)), (100, Some(2)), (50, None), (50, Some(7))]);
        let mut said = transcript(&[
            (" Did", 0.5, 0.9),
            (" you", 1.2, 1.9),
            (" no", 1.95, 2.5),
            (" never", 3.1, 3.2),
            (" well", 3.45, 3.9),
        ]);
        speakers.label(&mut said, |word| word.text = word.text.to_uppercase());
        let told: Vec<(Option<u32>, &str, f64, f64)> =
            said.utterances.iter().map(|one| (one.speaker, one.text.as_str(), one.start, one.end)).collect();
        let expected = [(Some(0), "Did you", 0.5, 1.9), (Some(1), "NO never", 1.95, 3.2), (Some(0), "WELL", 3.45, 3.9)];
        assert_eq!(told, expected);
    }

    #[test]
    fn who_speaks_in_silence_is_whoever_speaks_nearest_to_it() {
        let silent = |first| (first, vec![None; 100]);
        let stretches = vec![(0, vec![Some(0); 100]), silent(200), silent(400), silent(600), (800, vec![Some(1); 100])];
        let speakers = Speakers { stretches };
        let of = |second: f64| speakers.speaker_of(second, second + 0.2);
        assert_eq!([of(0.5), of(2.1), of(4.1), of(6.5), of(7.5), of(8.2), of(12.0)], [0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn without_any_voice_there_is_one_speaker() {
        let mut said = transcript(&[(" Hello", 0.0, 0.4), (" world", 0.5, 0.9)]);
        find_speakers(Vec::new(), SpeakerHints::default()).label(&mut said, |_| {});
        assert_eq!((said.utterances.len(), said.utterances[0].speaker), (1, Some(0)));
        let silence = VoiceFrames::of(&[0; 32_000], 0, Band::WIDE);
        let found = find_speakers(vec![silence], SpeakerHints { exact: Some(2), ..SpeakerHints::default() });
        assert_eq!(found.speaker_of(0.5, 0.9), 0);
        // A second of sound of which less than half a second is audible has no voice that could be compared.
        let click: Vec<i16> = (0..16_000).map(|n| if n < 6_400 { (n * 97 % 8_000) as i16 } else { 0 }).collect();
        let short = find_speakers(vec![VoiceFrames::of(&click, 0, Band::WIDE)], SpeakerHints::default());
        assert_eq!((short.speaker_of(0.1, 0.3), short.frames().iter().flatten().count()), (0, 0));
    }
}
