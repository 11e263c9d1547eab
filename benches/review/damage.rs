//! Damages results as recognisers and services do.

use super::Recorded;
use scribed::testing::domain::review::ReviewCheck as Check;
use scribed::testing::domain::transcript::{Transcript, Utterance, Word};
use scribed::testing::review::TimeSpan;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Damage {
    RemovedSpan,
    RemovedLongSpan,
    InventedWords,
    Loop,
    Squeezed,
    OtherLanguage,
    OtherScript,
    LowConfidence,
    ShiftedAll,
    ShiftedRest,
    Truncated,
}

impl Damage {
    pub const ALL: [Self; 11] = [
        Self::RemovedSpan,
        Self::RemovedLongSpan,
        Self::InventedWords,
        Self::Loop,
        Self::Squeezed,
        Self::OtherLanguage,
        Self::OtherScript,
        Self::LowConfidence,
        Self::ShiftedAll,
        Self::ShiftedRest,
        Self::Truncated,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::RemovedSpan => "the words of 5 to 8 s are removed",
            Self::RemovedLongSpan => "the words of 8 to 20 s are removed",
            Self::InventedWords => "4 to 10 words are put where nobody speaks",
            Self::Loop => "5 to 15 s are replaced by a loop of 1 to 6 words",
            Self::Squeezed => "the words of 10 s have times within 2 s",
            Self::OtherLanguage => "utterances of 30 letters or more have another language's code",
            Self::OtherScript => "utterances of 30 letters or more are in Cyrillic letters, without a code",
            Self::LowConfidence => "20 to 30 words have a third of their confidence",
            Self::ShiftedAll => "all times are 3 to 10 s later",
            Self::ShiftedRest => "from some point on all times are 3 to 10 s earlier or later",
            Self::Truncated => "the words of the last 5 to 30 s of speech are removed",
        }
    }

    /// Returns the checks one of which has to find it.
    pub fn expected(self) -> &'static [Check] {
        match self {
            Self::RemovedSpan | Self::RemovedLongSpan => &[Check::SpeechWithoutWords, Check::EarlyEnd],
            Self::InventedWords => &[Check::WordsWithoutSpeech],
            Self::Loop => &[Check::RepeatedPhrase],
            Self::Squeezed => &[Check::SpeakingRate],
            Self::OtherLanguage | Self::OtherScript => &[Check::UnexpectedLanguage],
            Self::LowConfidence => &[Check::LowConfidence],
            Self::ShiftedAll | Self::ShiftedRest => {
                &[Check::SpeechWithoutWords, Check::WordsWithoutSpeech, Check::EarlyEnd]
            }
            Self::Truncated => &[Check::EarlyEnd],
        }
    }
}

/// Returns a damaged transcript, and where the damage is; `None` if the recording is too short for it.
pub fn damaged(damage: Damage, one: &Recorded, random: &mut fastrand::Rng) -> Option<(Transcript, TimeSpan)> {
    let length = one.samples.len() as f64 / super::RATE as f64;
    let mut seconds = |least: f64, most: f64| least + (most - least) * random.f64();
    let words = || one.transcript.utterances.iter().flat_map(|utterance| &utterance.words);
    match damage {
        Damage::RemovedSpan | Damage::RemovedLongSpan | Damage::Loop | Damage::Squeezed => {
            let wanted = match damage {
                Damage::RemovedSpan => seconds(5.0, 8.0),
                Damage::RemovedLongSpan => seconds(8.0, 20.0),
                Damage::Loop => seconds(5.0, 15.0),
                _ => 10.0,
            };
            let span = spoken_span(one, wanted, random)?;
            let replaced = match damage {
                Damage::Loop => looped(span, random),
                Damage::Squeezed => squeezed(one, span),
                _ => Vec::new(),
            };
            Some((with(one, span, replaced), span))
        }
        Damage::InventedWords => {
            let empty = one.empty.get(random.usize(..one.empty.len().max(1)))?;
            let start = empty.start + 1.0 + (empty.end - empty.start - 5.0) * random.f64();
            let span = TimeSpan::new(start, start + 4.0);
            let texts = ["thank", "you", "very", "much", "for", "watching", "this", "video", "see", "you"];
            let many = random.usize(4..=texts.len());
            let word = |(n, text): (usize, &&str)| word(text, start + 0.35 * n as f64, 0.3);
            Some((with(one, span, texts[..many].iter().enumerate().map(word).collect()), span))
        }
        Damage::OtherLanguage | Damage::OtherScript => {
            let long = |(_, utterance): &(usize, &Utterance)| {
                utterance.text.chars().filter(|c| c.is_alphabetic()).count() >= 30
            };
            let long: Vec<usize> = one.transcript.utterances.iter().enumerate().filter(long).map(|(n, _)| n).collect();
            let mut transcript = one.transcript.clone();
            let utterance = &mut transcript.utterances[*long.get(random.usize(..long.len().max(1)))?];
            match damage {
                Damage::OtherLanguage => utterance.language = "de".to_owned(),
                _ => in_cyrillic(utterance),
            }
            let span = TimeSpan::new(utterance.start, utterance.end);
            Some((transcript, span))
        }
        Damage::LowConfidence => {
            let all = words().count();
            let many = random.usize(20..=30);
            let first = random.usize(..all.checked_sub(many)?.max(1));
            let mut transcript = one.transcript.clone();
            let words = transcript.utterances.iter_mut().flat_map(|utterance| &mut utterance.words);
            let (mut start, mut end) = (f64::MAX, 0.0_f64);
            for word in words.skip(first).take(many) {
                word.confidence /= 3.0;
                (start, end) = (start.min(word.start), end.max(word.end));
            }
            Some((transcript, TimeSpan::new(start, end)))
        }
        Damage::ShiftedAll | Damage::ShiftedRest => {
            let by = seconds(3.0, 10.0) * if damage == Damage::ShiftedRest && random.bool() { -1.0 } else { 1.0 };
            let from = if damage == Damage::ShiftedAll { 0.0 } else { length * (0.2 + 0.5 * random.f64()) };
            let mut transcript = one.transcript.clone();
            for utterance in transcript.utterances.iter_mut().filter(|utterance| utterance.start >= from) {
                *utterance = moved(utterance, by);
            }
            Some((transcript, TimeSpan::new(0.0, length)))
        }
        Damage::Truncated => {
            let last = words().map(|word| word.end).fold(0.0, f64::max);
            let span = TimeSpan::new(last - seconds(5.0, 30.0), length);
            (span.start > 0.0).then(|| (with(one, span, Vec::new()), span))
        }
    }
}

/// Returns an utterance at another time.
pub fn moved(utterance: &Utterance, by: f64) -> Utterance {
    let mut later = utterance.clone();
    (later.start, later.end) = ((later.start + by).max(0.0), (later.end + by).max(0.0));
    later
        .words
        .iter_mut()
        .for_each(|word| (word.start, word.end) = ((word.start + by).max(0.0), (word.end + by).max(0.0)));
    later
}

/// Chooses a span with words in most of its time.
fn spoken_span(one: &Recorded, seconds: f64, random: &mut fastrand::Rng) -> Option<TimeSpan> {
    let words: Vec<&Word> = one.transcript.utterances.iter().flat_map(|utterance| &utterance.words).collect();
    for _ in 0..200 {
        let start = words.get(random.usize(..words.len().max(1)))?.start;
        let inside = words.iter().filter(|word| word.start >= start && word.end <= start + seconds);
        let spoken: f64 = inside.map(|word| word.end - word.start).sum();
        if spoken >= 0.7 * seconds {
            return Some(TimeSpan::new(start, start + seconds));
        }
    }
    None
}

/// Returns the transcript with other words in a span.
fn with(one: &Recorded, span: TimeSpan, words: Vec<Word>) -> Transcript {
    let mut transcript = one.transcript.clone();
    for utterance in &mut transcript.utterances {
        let middle = |word: &Word| word.start.midpoint(word.end);
        utterance.words.retain(|word| !(span.start..span.end).contains(&middle(word)));
        utterance.text = utterance.words.iter().map(|word| word.text.trim()).collect::<Vec<_>>().join(" ");
    }
    transcript.utterances.retain(|utterance| !utterance.words.is_empty());
    if !words.is_empty() {
        let text = words.iter().map(|word| word.text.trim()).collect::<Vec<_>>().join(" ");
        let (language, confidence) = ("en".to_owned(), 0.9);
        let (start, end) = (span.start, span.end);
        let new = Utterance { text, start, end, confidence, channel: 0, speaker: None, language, words };
        let place = transcript.utterances.partition_point(|utterance| utterance.start < start);
        transcript.utterances.insert(place, new);
    }
    transcript
}

fn word(text: &str, start: f64, length: f64) -> Word {
    Word { text: format!(" {text}"), start, end: start + length, confidence: 0.9 }
}

fn looped(span: TimeSpan, random: &mut fastrand::Rng) -> Vec<Word> {
    let phrase = &["so", "we", "are", "going", "to", "see"][..random.usize(1..=6)];
    let many = ((span.end - span.start) * 3.0) as usize;
    (0..many).map(|n| word(phrase[n % phrase.len()], span.start + n as f64 / 3.0, 0.3)).collect()
}

fn squeezed(one: &Recorded, span: TimeSpan) -> Vec<Word> {
    let words = one.transcript.utterances.iter().flat_map(|utterance| utterance.words.clone());
    let inside = words.filter(|word| word.start >= span.start && word.end <= span.end);
    let share = 2.0 / (span.end - span.start);
    let sooner = |time: f64| span.start + (time - span.start) * share;
    inside.map(|word| Word { start: sooner(word.start), end: sooner(word.end), ..word }).collect()
}

fn in_cyrillic(utterance: &mut Utterance) {
    let letters: Vec<char> = "абцдефгхийклмнопярстувщыжз".chars().collect();
    let other = |c: char| match c.to_ascii_lowercase() {
        c @ 'a'..='z' => letters[c as usize - 'a' as usize],
        c => c,
    };
    utterance.text = utterance.text.chars().map(other).collect();
    utterance.words.iter_mut().for_each(|word| word.text = word.text.chars().map(other).collect());
    utterance.language = String::new();
}
