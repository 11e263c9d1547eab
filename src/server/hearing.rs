//! A file in, what was said in it out: decode, cut at the silences, recognise, put together.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::recogniser::{Heard, Recogniser, RecogniserError};
use super::segment::{Segment, Segmenter};
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};

/// Why a file could not be transcribed.
#[derive(Debug, thiserror::Error)]
pub enum HearingError {
    /// The file gave no sound.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The recogniser is not available, or failed.
    #[error(transparent)]
    Recogniser(#[from] RecogniserError),
    /// The thread of the recogniser ended in the middle; a fault of this program.
    #[error("the recogniser's thread ended before the file did; this is a fault in scribed")]
    Stopped,
}

/// Transcribes the first audio track of `path`, all channels mixed into one. Silence gives an empty
/// transcript.
///
/// Memory does not grow with the file but by its words. The segments of one file are recognised in
/// order by one thread; several files at once use as many as the recogniser allows. When this
/// future is dropped, ffmpeg is ended at once and the thread after its current segment.
///
/// # Errors
/// See [`HearingError`].
pub async fn transcribe(path: &Path, recogniser: Arc<dyn Recogniser>) -> Result<Transcript, HearingError> {
    let language = recogniser.languages().first().copied().unwrap_or_default();
    let decoder = Decoder::open(path, INACTIVITY).await?;
    let (sender, receiver) = mpsc::channel(WAITING_SEGMENTS);
    let dropped = CancellationToken::new();
    let guard = dropped.clone().drop_guard();
    let listening = tokio::task::spawn_blocking(move || listen(receiver, &*recogniser, &dropped));
    let cut = cut(decoder, sender).await;
    let _guard = cut.is_ok().then_some(guard);
    // A recogniser that failed is why nobody took the segments: its error says more.
    let words = listening.await.map_err(|_| HearingError::Stopped)??;
    cut?;
    Ok(transcript(words, language))
}

/// Segments decoded ahead of the recogniser, each at most 1 MB.
const WAITING_SEGMENTS: usize = 2;

/// Seconds without a word that end an utterance.
const PAUSE: f64 = 0.6;

async fn cut(mut decoder: Decoder, sender: mpsc::Sender<Segment>) -> Result<(), HearingError> {
    let mut segmenter = Segmenter::new();
    while let Some(samples) = decoder.next().await? {
        for segment in segmenter.push(&samples) {
            sender.send(segment).await.map_err(|_| HearingError::Stopped)?;
        }
    }
    if let Some(segment) = segmenter.finish() {
        sender.send(segment).await.map_err(|_| HearingError::Stopped)?;
    }
    Ok(())
}

/// On a thread that may block, until the segments end or nobody wants them any more.
fn listen(
    mut segments: mpsc::Receiver<Segment>,
    recogniser: &dyn Recogniser,
    dropped: &CancellationToken,
) -> Result<Vec<Heard>, RecogniserError> {
    let mut words = Vec::new();
    while let Some(segment) = segments.blocking_recv() {
        if dropped.is_cancelled() {
            break;
        }
        let begin = segment.start_sample as f64 / f64::from(SAMPLE_RATE);
        let heard = recogniser.recognise(&segment.samples)?;
        words.extend(heard.into_iter().map(|heard| Heard {
            start: heard.start + begin,
            end: heard.end + begin,
            ..heard
        }));
    }
    Ok(words)
}

/// `words` in seconds from the recording's start.
fn transcript(words: Vec<Heard>, language: &str) -> Transcript {
    let utterances: Vec<Utterance> = words
        .chunk_by(|before, after| after.start - before.end <= PAUSE)
        .map(|words| utterance(words, language))
        .collect();
    let languages = utterances.first().map(|first| first.language.clone());
    Transcript { languages: languages.into_iter().collect(), utterances }
}

/// `heard` holds a word at least, as every chunk does.
fn utterance(heard: &[Heard], language: &str) -> Utterance {
    let words: Vec<Word> = heard.iter().enumerate().map(|(at, heard)| word(at, heard)).collect();
    let text: String = words.iter().map(|word| word.text.as_str()).collect();
    let sum: f64 = words.iter().map(|word| word.confidence).sum();
    Utterance {
        text: text.trim().to_owned(),
        start: words.first().map_or(0.0, |word| word.start),
        end: words.last().map_or(0.0, |word| word.end),
        confidence: rounded(sum / words.len() as f64, 2),
        channel: 0,
        speaker: None,
        language: language.to_owned(),
        words,
    }
}

fn word(at: usize, heard: &Heard) -> Word {
    Word {
        text: format!(" {}", cased(at == 0, &heard.word)),
        start: rounded(heard.start, 3),
        end: rounded(heard.end, 3),
        confidence: rounded(heard.confidence, 2),
    }
}

/// The recogniser knows lower case only: an utterance's first letter and the word "I" (with "I'm"
/// and its like) are upper case.
fn cased(first: bool, word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(letter) if first || word == "i" || word.starts_with("i'") => {
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

    fn heard(word: &str, start: f64, end: f64, confidence: f64) -> Heard {
        Heard { word: word.to_owned(), start, end, confidence }
    }

    #[test]
    fn a_long_pause_ends_an_utterance() {
        let words = vec![
            heard("now", 1.0, 1.23456, 0.911),
            heard("i'm", 1.3, 1.5, 0.5),
            heard("i", 1.6, 1.7, 0.5),
            heard("in", 2.31, 2.5, 1.0),
        ];
        let transcript = transcript(words, "en");
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
    }

    #[test]
    fn nothing_heard_is_an_empty_transcript() {
        assert_eq!(transcript(Vec::new(), "en"), Transcript::default());
    }
}
