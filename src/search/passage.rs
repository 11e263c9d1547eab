//! Divides a transcript into passages: what one speaker says in one language, at most a minute of it. A passage is what
//! a search finds. Each also has the first words of what follows, so that a phrase is found that goes on there. Pure.

use super::words::words;
use crate::domain::language_codes::short_code;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance};
use crate::output::accepted::line_words;

/// The longest phrase, in words.
pub const LONGEST_PHRASE: usize = 16;

/// The length of a passage in seconds. It ends with the word that reaches it.
const SECONDS: f64 = 60.0;

/// The most words of a passage, where times say nothing.
const MOST_WORDS: usize = 250;

/// A part of a transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Passage {
    /// The name of the speaker, or `Speaker 1`; `None` without diarization.
    pub speaker: Option<String>,
    /// A short code as `en`; `None` if it is not known.
    pub language: Option<String>,
    pub text: String,
    /// The first words of what follows.
    pub next: String,
    /// When each word of `text` begins, in milliseconds from the start of the recording.
    pub starts: Vec<u64>,
}

/// Returns the passages of a transcript, in the order of time.
pub fn passages(transcript: &Transcript, names: &SpeakerNames) -> Vec<Passage> {
    let mut passages: Vec<OpenPassage> = Vec::new();
    for utterance in &transcript.utterances {
        let voice = Voice::of(utterance, transcript);
        for piece in pieces(utterance) {
            match passages.last_mut().filter(|open| open.voice == voice && !open.is_full(piece.start)) {
                Some(open) => open.add(&piece),
                None => {
                    let mut open = OpenPassage::new(voice.clone());
                    open.add(&piece);
                    passages.push(open);
                }
            }
        }
    }
    let mut passages: Vec<Passage> =
        passages.into_iter().map(|open| open.finish(names)).filter(|passage| !passage.starts.is_empty()).collect();
    let following: Vec<String> = (1..=passages.len()).map(|at| first_words(&passages[at..])).collect();
    passages.iter_mut().zip(following).for_each(|(passage, next)| passage.next = next);
    passages
}

/// Who speaks how.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Voice {
    speaker: Option<u32>,
    channel: u32,
    language: Option<String>,
}

impl Voice {
    fn of(utterance: &Utterance, transcript: &Transcript) -> Self {
        let own = Some(utterance.language.as_str()).filter(|code| !code.is_empty());
        let language = own.or(transcript.languages.first().map(String::as_str));
        Self {
            speaker: utterance.speaker,
            channel: utterance.channel,
            language: language.map(short_code).filter(|code| !code.is_empty()),
        }
    }
}

/// A word as a transcript has it, with the space that precedes it.
struct Piece {
    text: String,
    start: f64,
}

/// Returns the words of an utterance. Where only its text is known, they are spread over its time.
fn pieces(utterance: &Utterance) -> Vec<Piece> {
    let piece = |text: String, start: f64| Piece { text, start: if start.is_finite() { start.max(0.0) } else { 0.0 } };
    if !utterance.words.is_empty() {
        return utterance.words.iter().map(|word| piece(word.text.clone(), word.start)).collect();
    }
    let words = line_words(&utterance.text);
    let seconds = (utterance.end - utterance.start).max(0.0) / words.len().max(1) as f64;
    words.iter().enumerate().map(|(at, word)| piece(word.with_space(), utterance.start + seconds * at as f64)).collect()
}

struct OpenPassage {
    voice: Voice,
    text: String,
    /// Where each piece begins in the text, and when it is said.
    pieces: Vec<(usize, f64)>,
}

impl OpenPassage {
    fn new(voice: Voice) -> Self {
        Self { voice, text: String::new(), pieces: Vec::new() }
    }

    fn is_full(&self, next: f64) -> bool {
        self.pieces.len() >= MOST_WORDS || self.pieces.first().is_some_and(|(_, first)| next - first >= SECONDS)
    }

    fn add(&mut self, piece: &Piece) {
        // The first word of an utterance has no space before it.
        if self.needs_space_before(&piece.text) {
            self.text.push(' ');
        }
        self.pieces.push((self.text.len(), piece.start));
        let text = if self.text.is_empty() { piece.text.trim_start() } else { &piece.text };
        self.text.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }

    fn needs_space_before(&self, piece: &str) -> bool {
        let is_alone = |c: char| crate::captions::breaks_anywhere(c);
        let is_glued = self.text.ends_with(char::is_alphanumeric) && piece.starts_with(char::is_alphanumeric);
        is_glued && !(self.text.ends_with(is_alone) || piece.starts_with(is_alone))
            || self.text.ends_with(['.', '?', '!']) && piece.starts_with(char::is_alphanumeric)
    }

    fn finish(self, names: &SpeakerNames) -> Passage {
        let start_of = |at: usize| {
            let piece = self.pieces.partition_point(|(begin, _)| *begin <= at).saturating_sub(1);
            self.pieces.get(piece).map_or(0, |(_, seconds)| (seconds * 1_000.0).round() as u64)
        };
        let starts = words(&self.text).map(|word| start_of(word.place.start)).collect();
        Passage {
            speaker: self.voice.speaker.map(|speaker| names.name_of(speaker)),
            language: self.voice.language,
            starts,
            next: String::new(),
            text: self.text.trim_end().to_owned(),
        }
    }
}

/// Returns the text of the first words of passages: so many that a phrase which begins before them ends in them.
fn first_words(passages: &[Passage]) -> String {
    let (mut text, mut found) = (String::new(), 0);
    for passage in passages {
        let room = LONGEST_PHRASE - 1 - found;
        let ends: Vec<usize> = words(&passage.text).take(room + 1).map(|word| word.place.end).collect();
        if !text.is_empty() {
            text.push(' ');
        }
        let is_whole = ends.len() <= room;
        text.push_str(if is_whole { &passage.text } else { &passage.text[..ends[room - 1]] });
        found += ends.len().min(room);
        if found == LONGEST_PHRASE - 1 {
            break;
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::speaker_names::SpeakerName;
    use crate::domain::transcript::Word;

    fn utterance(text: &str, start: f64, speaker: Option<u32>, with_words: bool) -> Utterance {
        let count = text.split(' ').count();
        let word = |(at, text): (usize, &str)| Word {
            text: if at == 0 { text.to_owned() } else { format!(" {text}") },
            start: start + at as f64,
            end: start + at as f64 + 0.5,
            confidence: 1.0,
        };
        Utterance {
            text: text.to_owned(),
            start,
            end: start + count as f64,
            confidence: 1.0,
            channel: 0,
            speaker,
            language: "en-GB".to_owned(),
            words: if with_words { text.split(' ').enumerate().map(word).collect() } else { Vec::new() },
        }
    }

    fn of(utterances: Vec<Utterance>) -> Vec<Passage> {
        let mut names = SpeakerNames::default();
        names.add(1, SpeakerName::parse("Ada").unwrap(), 1.0);
        passages(&Transcript { languages: vec!["en".to_owned()], utterances }, &names)
    }

    #[test]
    fn a_turn_is_a_passage_and_knows_what_follows() {
        let found = of(vec![
            utterance("Good morning.", 0.0, Some(0), true),
            utterance("How are you?", 2.0, Some(0), true),
            utterance("Fine.", 5.0, Some(1), true),
            utterance("And you?", 6.0, Some(0), false),
        ]);
        let texts: Vec<_> = found.iter().map(|one| (one.speaker.as_deref().unwrap(), &*one.text, &*one.next)).collect();
        assert_eq!(
            texts,
            [
                ("Speaker 1", "Good morning. How are you?", "Fine. And you?"),
                ("Ada", "Fine.", "And you?"),
                ("Speaker 1", "And you?", "")
            ]
        );
        assert_eq!(found[0].starts, [0, 1_000, 2_000, 3_000, 4_000]);
        assert_eq!(found[2].starts, [6_000, 7_000], "without times of words they are spread");
        assert_eq!(found[0].language.as_deref(), Some("en"));
    }

    #[test]
    fn a_long_turn_is_divided_after_a_minute() {
        let text = (0..150).map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
        for with_words in [true, false] {
            let found = of(vec![utterance(&text, 0.0, None, with_words)]);
            assert_eq!(found.iter().map(|one| one.starts.len()).collect::<Vec<_>>(), [60, 60, 30]);
            assert_eq!(found[0].next.split(' ').count(), LONGEST_PHRASE - 1);
            assert!(found[0].next.starts_with("w60 ") && found[2].next.is_empty());
        }
    }

    #[test]
    fn silence_and_marks_alone_are_no_passages() {
        assert!(of(Vec::new()).is_empty());
        assert!(of(vec![utterance("…", 0.0, None, true)]).is_empty());
        let odd = Utterance { start: f64::NAN, end: f64::INFINITY, ..utterance("a b", 0.0, None, false) };
        assert_eq!(of(vec![odd])[0].starts.len(), 2);
    }
}
