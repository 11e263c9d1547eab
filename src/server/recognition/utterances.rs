//! Joins the words of the chunks of a recording into utterances, and the utterances into a transcript. Pure.

use super::recogniser::{ChunkWord, RecognisedChunk};
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::domain::word_overlap::{self, Overlap};
use std::collections::BTreeMap;

/// How many seconds without a word end an utterance.
const PAUSE: f64 = 0.6;

/// The confidence of words of a recogniser that says nothing about it: neither sure nor unsure.
pub(super) const UNKNOWN_CONFIDENCE: f64 = 0.5;

/// Where a chunk is in its recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkSpan {
    /// Seconds from the recording's start.
    pub(super) begin: f64,
    /// The sound that it shares with the next chunk, if speech was cut there.
    pub(super) overlap: Option<Overlap>,
}

impl From<f64> for ChunkSpan {
    /// A chunk that was cut at pauses.
    fn from(begin: f64) -> Self {
        Self { begin, overlap: None }
    }
}

/// What was recognised on one channel so far.
#[derive(Default, Clone)]
pub(super) struct ChannelSpeech {
    utterances: Vec<Utterance>,
    /// Words since the last pause, with times from the recording's start.
    open: Vec<ChunkWord>,
    /// The language of the open words.
    language: String,
    /// Whether the open words have their case, punctuation and spaces.
    is_written: bool,
    /// The last chunk, if the next one shares sound with it: the two are joined first.
    held: Option<HeldChunk>,
}

/// A chunk with times from the recording's start.
#[derive(Clone)]
struct HeldChunk {
    words: Vec<ChunkWord>,
    overlap: Overlap,
    language: String,
    is_written: bool,
}

impl ChannelSpeech {
    /// Adds the words of the next chunk, which is in this language.
    pub(super) fn add(&mut self, chunk: RecognisedChunk, span: impl Into<ChunkSpan>, channel: usize, language: &str) {
        let ChunkSpan { begin, overlap } = span.into();
        let timed = |word: ChunkWord| ChunkWord { start: word.start + begin, end: word.end + begin, ..word };
        let mut words: Vec<ChunkWord> = chunk.words.into_iter().map(timed).collect();
        if let Some(mut held) = self.held.take() {
            held.overlap.is_estimated |= chunk.has_estimated_times;
            word_overlap::join(&mut held.words, &mut words, held.overlap);
            self.add_words(held.words, channel, &held.language, held.is_written);
        }
        match overlap {
            Some(overlap) => {
                let language = language.to_owned();
                self.held = Some(HeldChunk { words, overlap, language, is_written: chunk.is_written });
            }
            None => self.add_words(words, channel, language, chunk.is_written),
        }
    }

    fn add_words(&mut self, words: Vec<ChunkWord>, channel: usize, language: &str, is_written: bool) {
        if self.language != language || self.is_written != is_written {
            self.end_utterance(channel);
            (self.language, self.is_written) = (language.to_owned(), is_written);
        }
        for word in words {
            if word.begins || self.open.last().is_some_and(|before| word.start - before.end > PAUSE) {
                self.end_utterance(channel);
            }
            self.open.push(word);
        }
    }

    /// Ends the channel and returns its utterances.
    fn finish(mut self, channel: usize) -> Vec<Utterance> {
        if let Some(held) = self.held.take() {
            self.add_words(held.words, channel, &held.language, held.is_written);
        }
        self.end_utterance(channel);
        self.utterances
    }

    fn end_utterance(&mut self, channel: usize) {
        let channel = u32::try_from(channel).unwrap_or(u32::MAX);
        let words = std::mem::take(&mut self.open);
        self.utterances
            .extend((!words.is_empty()).then(|| utterance(&words, channel, &self.language, self.is_written)));
    }

    /// Returns a copy for another channel.
    pub(super) fn copy_for(&self, channel: usize) -> Self {
        let mut parted = self.clone();
        let channel = u32::try_from(channel).unwrap_or(u32::MAX);
        parted.utterances.iter_mut().for_each(|utterance| utterance.channel = channel);
        parted
    }

    pub(super) fn size(&self) -> TextSize {
        let ended = self.utterances.iter().flat_map(|utterance| &utterance.words).map(|word| word.text.len());
        let held = self.held.iter().flat_map(|held| &held.words);
        let open = self.open.iter().chain(held).map(|heard| heard.text.len());
        ended.chain(open).fold(TextSize::default(), TextSize::add_word)
    }
}

/// An amount of recognised text.
#[derive(Default, Clone, Copy)]
pub(super) struct TextSize {
    pub(super) words: usize,
    pub(super) bytes: usize,
}

impl TextSize {
    /// Returns the amount of text of a chunk.
    pub(super) fn of_chunk(chunk: &RecognisedChunk) -> Self {
        chunk.words.iter().map(|word| word.text.len()).fold(Self::default(), Self::add_word)
    }

    fn add_word(self, bytes: usize) -> Self {
        Self { words: self.words + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    pub(super) fn add(self, more: Self) -> Self {
        Self { words: self.words.saturating_add(more.words), bytes: self.bytes.saturating_add(more.bytes) }
    }
}

/// Joins all channels in order of time.
pub(super) fn transcript(spoken: BTreeMap<usize, ChannelSpeech>) -> Transcript {
    let mut utterances: Vec<Utterance> = Vec::new();
    for (channel, spoken) in spoken {
        utterances.append(&mut spoken.finish(channel));
    }
    utterances.sort_by(|one, other| one.start.total_cmp(&other.start));
    Transcript { languages: languages(&utterances), utterances }
}

/// Returns the known languages, that with the most utterances first.
fn languages(utterances: &[Utterance]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for code in utterances.iter().map(|one| one.language.as_str()).filter(|code| !code.is_empty()) {
        match counts.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => counts.push((code, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().map(|(code, _)| code.to_owned()).collect()
}

/// Makes an utterance of at least one word.
fn utterance(heard: &[ChunkWord], channel: u32, language: &str, is_written: bool) -> Utterance {
    let words: Vec<Word> = heard.iter().enumerate().map(|(at, heard)| word(at, heard, is_written)).collect();
    let text: String = words.iter().map(|word| word.text.as_str()).collect();
    let sum: f64 = words.iter().map(|word| word.confidence).sum();
    Utterance {
        text: text.trim().to_owned(),
        start: words.first().map_or(0.0, |word| word.start),
        end: words.last().map_or(0.0, |word| word.end),
        confidence: rounded(sum / words.len() as f64, 2),
        channel,
        speaker: None,
        language: language.to_owned(),
        words,
    }
}

fn word(at: usize, heard: &ChunkWord, is_written: bool) -> Word {
    Word {
        text: if is_written { heard.text.clone() } else { format!(" {}", cased(at == 0, &heard.text)) },
        start: rounded(heard.start, 3),
        end: rounded(heard.end, 3),
        confidence: rounded(heard.confidence.unwrap_or(UNKNOWN_CONFIDENCE), 2),
    }
}

/// Writes a word as the first one of an utterance, for recognisers that return lower case.
pub(super) fn begin_sentence(word: &mut Word) {
    word.text = format!(" {}", cased(true, word.text.trim_start()));
}

/// The recogniser returns lower case: an utterance's first letter and the word "I" (also "I'm" and the like) become
/// upper case. A word of the vocabulary that contains a capital stays as it was given.
fn cased(first: bool, word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(letter) if (first && !word.contains(char::is_uppercase)) || word == "i" || word.starts_with("i'") => {
            letter.to_uppercase().chain(letters).collect()
        }
        _ => word.to_owned(),
    }
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript<const N: usize>(channels: [(usize, Vec<ChunkWord>); N]) -> Transcript {
        let mut spoken = BTreeMap::<usize, ChannelSpeech>::new();
        for (channel, heard) in channels {
            let chunk = RecognisedChunk { words: heard, ..RecognisedChunk::default() };
            spoken.entry(channel).or_default().add(chunk, 0.0, channel, "en");
        }
        super::transcript(spoken)
    }

    fn heard(word: &str, start: f64, end: f64, confidence: f64) -> ChunkWord {
        ChunkWord { text: word.to_owned(), start, end, confidence: Some(confidence), begins: false }
    }

    #[test]
    fn what_is_written_stays_as_it_is_and_begins_where_the_recogniser_says() {
        let word = |text: &str, start: f64, begins| ChunkWord {
            text: text.to_owned(),
            start,
            end: start + 0.2,
            confidence: None,
            begins,
        };
        let chunk = |words, language: &str| RecognisedChunk {
            words,
            language: Some(language.to_owned()),
            is_written: true,
            has_estimated_times: false,
        };
        let mut spoken = ChannelSpeech::default();
        spoken.add(
            chunk(vec![word(" i", 0.0, true), word(" ragazzi.", 0.2, false), word(" Sì.", 0.4, true)], "it"),
            10.0,
            0,
            "it",
        );
        spoken.add(chunk(vec![word("你", 0.0, false), word("好", 0.2, false)], "zh"), 10.6, 0, "zh");
        let transcript = super::transcript(BTreeMap::from([(0, spoken)]));
        let told: Vec<(&str, &str, f64)> =
            transcript.utterances.iter().map(|one| (one.text.as_str(), one.language.as_str(), one.start)).collect();
        assert_eq!(told, [("i ragazzi.", "it", 10.0), ("Sì.", "it", 10.4), ("你好", "zh", 10.6)]);
        assert_eq!(transcript.languages, ["it", "zh"]);
        assert_eq!(transcript.utterances[0].confidence, UNKNOWN_CONFIDENCE);
    }

    #[test]
    fn chunks_that_share_sound_are_joined_by_their_texts_if_the_times_of_one_are_estimated() {
        let chunk = |texts: [&str; 4], start: f64, has_estimated_times| RecognisedChunk {
            words: (0..4)
                .map(|at| heard(texts[at], start + 0.5 * at as f64, start + 0.5 * at as f64 + 0.5, 1.0))
                .collect(),
            has_estimated_times,
            ..RecognisedChunk::default()
        };
        for (first, second) in [(false, true), (true, false)] {
            let mut spoken = ChannelSpeech::default();
            let overlap = Some(Overlap { from: 10.0, to: 12.0, is_estimated: first });
            spoken.add(chunk(["a", "b", "c", "d"], 0.0, first), ChunkSpan { begin: 10.0, overlap }, 0, "en");
            // The times of the same words differ by a second.
            spoken.add(chunk(["b", "c", "d", "e"], 1.5, second), 10.0, 0, "en");
            let transcript = super::transcript(BTreeMap::from([(0, spoken)]));
            assert_eq!(transcript.text().to_lowercase(), "a b c d e", "{first} {second}");
        }
    }

    #[test]
    fn a_long_pause_ends_an_utterance() {
        let words = vec![
            heard("now", 1.0, 1.23456, 0.911),
            heard("i'm", 1.3, 1.5, 0.5),
            heard("i", 1.6, 1.7, 0.5),
            heard("in", 2.31, 2.5, 1.0),
        ];
        let transcript = transcript([(0, words)]);
        assert_eq!(transcript.text(), "Now I'm I In");
        let [first, second] = &transcript.utterances[..] else { panic!("{transcript:?}") };
        assert_eq!((first.start, first.end, first.confidence), (1.0, 1.7, 0.64));
        assert_eq!((first.words[0].end, first.words[0].confidence), (1.235, 0.91));
        assert_eq!((second.start, second.words[0].text.as_str()), (2.31, " In"));
        assert_eq!(transcript.languages, ["en"]);
    }

    #[test]
    fn only_the_word_i_is_upper_case_inside() {
        let words = ["in", "i", "i'll", "it", "élan"].map(|word| cased(false, word));
        assert_eq!(words, ["in", "I", "I'll", "it", "élan"]);
        assert_eq!(cased(true, "élan"), "Élan");
        assert_eq!(cased(true, ""), "");
        assert_eq!(cased(true, "iPhone"), "iPhone");
    }

    #[test]
    fn channels_are_told_in_order_of_time() {
        let left = vec![heard("one", 0.0, 0.5, 1.0), heard("three", 4.0, 4.5, 1.0)];
        let transcript = transcript([(0, left), (2, vec![heard("two", 2.0, 2.5, 1.0)])]);
        let told: Vec<(&str, u32)> = transcript.utterances.iter().map(|u| (u.text.as_str(), u.channel)).collect();
        assert_eq!(told, [("One", 0), ("Two", 2), ("Three", 0)]);
    }

    #[test]
    fn nothing_heard_is_an_empty_transcript() {
        assert_eq!(transcript([]), Transcript::default());
    }
}
