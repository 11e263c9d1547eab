//! The lines of a transcript as a page shows them: one for each utterance, in blocks that a browser lays out only when
//! they come into view.

use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance};
use crate::html::figures::moment;
use crate::html::word_times::{plain, word_times};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of a block. Speech of one speaker is divided too, so that no block is long.
const PER_BLOCK: usize = 20;

/// How many colours there are for speakers; after that they repeat. The names tell speakers apart.
const COLOURS: u32 = 8;

/// A passage of speech that was probably not recognised as it was said.
#[derive(Debug, Clone, PartialEq)]
pub struct DoubtfulPassage {
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// From 0; `None` for all channels.
    pub channel: Option<u32>,
    /// Why; empty if the service does not say.
    pub detail: String,
}

/// Consecutive lines of one speaker.
#[derive(Debug, Serialize)]
pub struct Block {
    /// The name of the speaker, where another one begins to speak.
    speaker: Option<String>,
    /// The number of the speaker's colour; `None` if there is one speaker only.
    colour: Option<u32>,
    lines: Vec<SpeechLine>,
}

impl Block {
    pub fn speaker(&self) -> Option<&str> {
        self.speaker.as_deref()
    }

    pub fn colour(&self) -> Option<u32> {
        self.colour
    }

    pub fn lines(&self) -> &[SpeechLine] {
        &self.lines
    }
}

#[derive(Debug, Serialize)]
pub struct SpeechLine {
    /// The number of the line, from 0: links lead to it.
    pub number: usize,
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// The start for people.
    pub at: String,
    pub text: String,
    /// A language code, if it is not that of the transcript.
    pub language: Option<String>,
    /// Whether it was probably not recognised as it was said.
    pub is_doubtful: bool,
    /// See [`word_times`].
    pub words: String,
}

/// What speakers are called who are not only numbered, by number.
pub type SpeakerLabels = BTreeMap<u32, String>;

/// Returns the labels of speakers: the name of a known voice, or what the speaker reidentification says in its text
/// (`Speaker 0: Anna` on each line) beside the number.
pub fn speaker_labels(known: &SpeakerNames, text: &str) -> SpeakerLabels {
    let said = |line: &str| {
        let (number, name) = line.trim().strip_prefix("Speaker ")?.split_once(": ")?;
        let (number, name): (u32, _) = (number.parse().ok()?, plain(name.trim()));
        (!name.is_empty()).then(|| (number, format!("{} ({name})", numbered(number))))
    };
    let known = known.iter().map(|(number, name)| (number, name.to_string()));
    text.lines().filter_map(said).chain(known).collect()
}

fn numbered(speaker: u32) -> String {
    format!("Speaker {}", u64::from(speaker) + 1)
}

/// Who speaks: a speaker, or a channel where speakers were not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Voice {
    Speaker(u32),
    Channel(u32),
}

impl Voice {
    fn of(utterance: &Utterance) -> Self {
        utterance.speaker.map_or(Self::Channel(utterance.channel), Self::Speaker)
    }

    fn name(self, labels: &SpeakerLabels) -> String {
        match self {
            Self::Speaker(number) => labels.get(&number).cloned().unwrap_or_else(|| numbered(number)),
            Self::Channel(number) => format!("Channel {}", u64::from(number) + 1),
        }
    }

    fn number(self) -> u32 {
        let (Self::Speaker(number) | Self::Channel(number)) = self;
        number
    }
}

/// Returns the blocks of a transcript. Channels are named only where there are several.
pub fn blocks(transcript: &Transcript, labels: &SpeakerLabels, doubtful: &[DoubtfulPassage]) -> Vec<Block> {
    let voices: BTreeSet<Voice> = transcript.utterances.iter().map(Voice::of).collect();
    let is_named = voices.len() > 1 || voices.iter().any(|voice| matches!(voice, Voice::Speaker(_)));
    let main_language = transcript.languages.first().map(String::as_str).unwrap_or_default();
    let mut number = 0;
    let mut blocks = Vec::new();
    for turn in transcript.utterances.chunk_by(|left, right| Voice::of(left) == Voice::of(right)) {
        let voice = Voice::of(&turn[0]);
        for (nth, part) in turn.chunks(PER_BLOCK).enumerate() {
            let lines = part.iter().map(|utterance| {
                number += 1;
                SpeechLine {
                    is_doubtful: is_doubtful(utterance, doubtful),
                    ..line(utterance, number - 1, main_language)
                }
            });
            blocks.push(Block {
                speaker: (is_named && nth == 0).then(|| voice.name(labels)),
                colour: is_named.then(|| voice.number() % COLOURS),
                lines: lines.collect(),
            });
        }
    }
    blocks
}

fn line(utterance: &Utterance, number: usize, main_language: &str) -> SpeechLine {
    let text = plain(&utterance.text).trim().to_owned();
    let words = word_times(&text, utterance.start, &utterance.words);
    let language = Some(&utterance.language).filter(|language| *language != main_language && is_language(language));
    let rounded = |seconds: f64| if seconds.is_finite() { (seconds * 100.0).round() / 100.0 } else { 0.0 };
    let (start, end) = (rounded(utterance.start), rounded(utterance.end));
    SpeechLine { number, start, end, at: moment(start), text, language: language.cloned(), is_doubtful: false, words }
}

/// Whether an utterance and one of the passages overlap.
fn is_doubtful(utterance: &Utterance, doubtful: &[DoubtfulPassage]) -> bool {
    // A passage ends with a word, and times are rounded.
    const ROUNDING: f64 = 0.01;
    let overlaps = |passage: &DoubtfulPassage| {
        let is_same_channel = passage.channel.is_none_or(|channel| channel == utterance.channel);
        is_same_channel && utterance.start + ROUNDING < passage.end && passage.start + ROUNDING < utterance.end
    };
    doubtful.iter().any(overlaps)
}

/// Whether a text is a plain language code, which the attribute `lang` may have.
pub fn is_language(code: &str) -> bool {
    (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the number of the line that is spoken at this time, or that was spoken last before it.
pub fn line_at(transcript: &Transcript, seconds: f64) -> Option<usize> {
    let begun = transcript.utterances.partition_point(|utterance| utterance.start <= seconds + 0.005);
    (!transcript.utterances.is_empty()).then(|| begun.saturating_sub(1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::speaker_names::SpeakerName;

    fn said(start: f64, speaker: Option<u32>, channel: u32) -> Utterance {
        Utterance {
            text: format!("at {start}"),
            start,
            end: start + 1.0,
            confidence: 0.5,
            channel,
            speaker,
            language: "en".to_owned(),
            words: Vec::new(),
        }
    }

    fn heads(utterances: Vec<Utterance>) -> Vec<(Option<String>, Option<u32>, usize)> {
        let transcript = Transcript { languages: vec!["en".to_owned()], utterances };
        let mut known = SpeakerNames::default();
        known.add(2, SpeakerName::parse("Zoë").unwrap(), 0.95);
        let labels = speaker_labels(&known, "Speaker 1: Anna\nnonsense\nSpeaker x: y\nSpeaker 7:  \nSpeaker 2: Bob");
        blocks(&transcript, &labels, &[])
            .into_iter()
            .map(|block| (block.speaker, block.colour, block.lines.len()))
            .collect()
    }

    #[test]
    fn speakers_have_a_name_and_a_colour_where_they_begin() {
        let name = |name: &str| Some(name.to_owned());
        let turns = [(0.0, 0), (1.0, 1), (2.0, 1), (3.0, 8), (4.0, 2)];
        assert_eq!(
            heads(turns.map(|(start, speaker)| said(start, Some(speaker), 0)).to_vec()),
            [
                (name("Speaker 1"), Some(0), 1),
                (name("Speaker 2 (Anna)"), Some(1), 2),
                (name("Speaker 9"), Some(0), 1),
                (name("Zoë"), Some(2), 1)
            ]
        );
        assert_eq!(heads(vec![said(0.0, None, 0), said(1.0, None, 0)]), [(None, None, 2)], "one channel has no name");
        let channels = heads(vec![said(0.0, None, 0), said(1.0, None, 1)]);
        assert_eq!(channels, [(name("Channel 1"), Some(0), 1), (name("Channel 2"), Some(1), 1)]);
        let long = heads((0..45).map(|at| said(f64::from(at), Some(0), 0)).collect());
        assert_eq!(long, [(name("Speaker 1"), Some(0), 20), (None, Some(0), 20), (None, Some(0), 5)]);
    }

    #[test]
    fn a_line_in_doubt_is_one_that_a_passage_of_its_channel_overlaps() {
        let passage = |channel| DoubtfulPassage { start: 1.0, end: 3.0, channel, detail: String::new() };
        let is_in_doubt = |start, channel| is_doubtful(&said(start, None, 0), &[passage(channel)]);
        assert_eq!(
            [0.0, 0.5, 1.0, 2.9, 3.0].map(|start| is_in_doubt(start, Some(0))),
            [false, true, true, true, false]
        );
        assert!(is_in_doubt(1.0, None) && !is_in_doubt(1.0, Some(1)));
    }

    #[test]
    fn a_time_leads_to_the_line_that_is_spoken() {
        let utterances = vec![said(1.0, None, 0), said(3.0, None, 0)];
        let transcript = Transcript { languages: Vec::new(), utterances };
        assert_eq!([0.0, 1.0, 2.9, 2.996, 99.0].map(|at| line_at(&transcript, at)), [0, 0, 0, 1, 1].map(Some));
        assert_eq!(line_at(&Transcript::default(), 1.0), None);
    }

    /// The relative luminance of `#rgb` or `#rrggbb` (WCAG 2.2, "relative luminance").
    fn luminance(colour: &str) -> f64 {
        let digits = colour.trim_start_matches('#');
        let width = digits.len() / 3;
        let channel = |at: usize| {
            let digits = &digits[at * width..(at + 1) * width];
            let value = f64::from(u8::from_str_radix(&digits.repeat(3 - width), 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
    }

    /// Every text has the contrast that WCAG 2.2 (1.4.3, AA) wants, on every background that it may have.
    #[test]
    fn every_colour_can_be_read_light_and_dark() {
        let style = include_str!("pages.css");
        let schemes: Vec<&str> = style.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        assert_eq!(schemes.len(), 2, "light and dark");
        for scheme in schemes {
            let colours: BTreeMap<&str, f64> = scheme
                .split([';', '\n'])
                .filter_map(|rule| rule.trim().strip_prefix("--")?.split_once(": "))
                .map(|(name, colour)| (name, luminance(colour)))
                .collect();
            let texts: Vec<String> = (0..COLOURS).map(|number| format!("s{number}")).collect();
            let texts = texts.iter().map(String::as_str).chain(["text", "muted", "link", "failed", "done", "warn"]);
            let pairs = texts.flat_map(|text| ["back", "card", "soft"].map(|back| (text, back)));
            for (text, back) in pairs.chain([("text", "mark")]) {
                let (one, other) = (colours[text], colours[back]);
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 4.5, "{text} on {back}: {contrast}");
            }
            let (edge, card) = (colours["edge"], colours["card"]);
            assert!((edge.max(card) + 0.05) / (edge.min(card) + 0.05) >= 3.0, "edges of controls (1.4.11)");
        }
    }
}
