//! The interface of speech recognisers. A transcription uses [`Recogniser::recognise_chunk`] only. A recogniser of
//! single segments implements [`Recogniser::recognise`] and has the rest for nothing; a recogniser of long chunks, which
//! finds languages and punctuation itself, implements `recognise_chunk`.

use crate::domain::word_overlap::JoinableWord;
use crate::media::speech_segments::CutRule;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Recognises the words of one segment of speech. Many threads may call it at once; the implementation decides how many
/// run at once ([`Recogniser::at_once`]), and the others wait.
pub trait Recogniser: Send + Sync {
    /// Returns its name for people.
    #[expect(clippy::unnecessary_literal_bound, reason = "recognisers that have a name return their own")]
    fn name(&self) -> &str {
        "a recogniser without a name"
    }

    /// Returns what decides, beside what is requested, which words are recognised: its name, and its model. It is stored:
    /// what was recognised before is only used while this stays the same.
    fn identity(&self) -> String {
        self.name().to_owned()
    }

    /// Returns codes such as `en`; the first one is assumed where no language is given. Empty: it recognises any
    /// language, and finds out which one it is.
    fn languages(&self) -> &[&'static str];

    /// Returns how long the chunks are that it recognises, and where they may be cut.
    fn cut_rule(&self) -> CutRule {
        CutRule::EachPause
    }

    /// Returns how many chunks it recognises at once.
    fn at_once(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Checks whether chunks can be recognised now, without waiting and without recognising anything.
    ///
    /// # Errors
    /// [`RecogniserError::Down`].
    fn check_ready(&self) -> Result<(), RecogniserError> {
        Ok(())
    }

    /// Recognises a chunk. Blocks for seconds, or for minutes: call it from a thread of a runtime that may block. Ends
    /// within a second when the chunk is cancelled, if it may take longer than that.
    ///
    /// # Errors
    /// See [`RecogniserError`].
    fn recognise_chunk(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        self.recognise(chunk.samples).map(RecognisedChunk::of_words)
    }

    /// Returns the words in `samples` (16 kHz, mono, as long as [`Recogniser::cut_rule`] says), in order of time; none
    /// for silence. Equal samples give equal words, whatever was recognised before. Blocks for seconds: call it from a
    /// thread that may block.
    ///
    /// # Errors
    /// Something that the recogniser needs is missing or broken; see [`RecogniserError`].
    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError>;

    /// Returns the vocabulary that the recogniser can learn of these terms. Blocks on the disk. A recogniser that
    /// cannot learn returns all of them as unknown.
    ///
    /// # Errors
    /// Something that the recogniser needs is missing.
    fn learn(&self, terms: &[Term]) -> Result<LearntVocabulary, RecogniserError> {
        Ok(LearntVocabulary { words: Vec::new(), unknown: terms.iter().map(|term| term.value.clone()).collect() })
    }
}

/// Whether a recogniser of these languages recognises this one.
pub fn knows_language(languages: &[&str], code: &str) -> bool {
    languages.is_empty() || languages.contains(&code)
}

/// A stretch of speech to be recognised, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct SpeechChunk<'a> {
    /// 16 kHz, mono.
    pub samples: &'a [i16],
    /// The code of its language, if the client has named one.
    pub language: Option<&'a str>,
    /// What was learnt of the requested vocabulary.
    pub vocabulary: &'a Arc<LearntVocabulary>,
    /// What the client says about the recording; may be empty.
    pub prompt: &'a str,
    /// Cancelled when nobody needs the words any more.
    pub cancelled: &'a CancellationToken,
}

/// What was recognised in a chunk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecognisedChunk {
    /// In order of time.
    pub words: Vec<ChunkWord>,
    /// The code of the language that was found, if the recogniser finds languages.
    pub language: Option<String>,
    /// Whether the words have their case, punctuation and spaces. If not, they are lower case without punctuation.
    pub is_written: bool,
    /// Whether the recogniser gave no times of words, so that they were spread over the speech of the chunk.
    pub has_estimated_times: bool,
}

/// A word of a chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkWord {
    /// In a chunk that is written: with the space before it, if there is one.
    pub text: String,
    /// Seconds from the chunk's start.
    pub start: f64,
    /// Seconds from the chunk's start, not before `start`.
    pub end: f64,
    /// 0 (a guess) to 1 (certain), if the recogniser says so.
    pub confidence: Option<f64>,
    /// Whether the recogniser begins a sentence or a paragraph here.
    pub begins: bool,
}

impl RecognisedChunk {
    /// Returns a chunk of plain words, without a language of its own.
    pub fn of_words(words: Vec<RecognisedWord>) -> Self {
        Self { words: words.into_iter().map(ChunkWord::from).collect(), ..Self::default() }
    }
}

impl JoinableWord for ChunkWord {
    fn text(&self) -> &str {
        &self.text
    }

    fn times(&self) -> (f64, f64) {
        (self.start, self.end)
    }
}

impl From<RecognisedWord> for ChunkWord {
    fn from(heard: RecognisedWord) -> Self {
        let RecognisedWord { word, start, end, confidence } = heard;
        Self { text: word, start, end, confidence: Some(confidence), begins: false }
    }
}

impl From<ChunkWord> for RecognisedWord {
    fn from(word: ChunkWord) -> Self {
        let ChunkWord { text, start, end, confidence, .. } = word;
        Self { word: text.trim().to_owned(), start, end, confidence: confidence.unwrap_or_default() }
    }
}

/// A word, or several, expected in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// How it is written.
    pub value: String,
    /// How it may sound, in spelling or in sounds; may be empty.
    pub pronunciations: Vec<String>,
}

/// What a recogniser can learn of some terms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearntVocabulary {
    /// The words that it can recognise.
    pub words: Vec<LearntWord>,
    /// The terms that it cannot learn, as they were given.
    pub unknown: Vec<String>,
}

impl LearntVocabulary {
    /// Returns the vocabulary of a recogniser that gets terms in its prompt. `room` says for how many of them, from the
    /// first on, there is room after a text.
    pub(super) fn of_prompt(terms: &[Term], room: impl Fn(&str, &[String]) -> usize) -> Self {
        let mut values: Vec<String> = terms.iter().map(|term| term.value.clone()).collect();
        let unknown = values.split_off(room("", &values));
        let words = values.into_iter().map(|value| LearntWord { value, sounds: Vec::new() }).collect();
        Self { words, unknown }
    }
}

/// A word and its sounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntWord {
    /// How it is written.
    pub value: String,
    /// Its pronunciations, each in the recogniser's own symbols with spaces between; none for a recogniser that gets
    /// the word alone.
    pub sounds: Vec<String>,
}

/// One word as it was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct RecognisedWord {
    /// The word in lower case, as the dictionary spells it; a learnt word as the vocabulary spells it.
    pub word: String,
    /// Seconds from the segment's start.
    pub start: f64,
    /// Seconds from the segment's start, after `start`.
    pub end: f64,
    /// 0 (a guess) to 1 (certain).
    pub confidence: f64,
}

/// Whether this program is static. Such a program loads no library, and has no recogniser in its process.
pub const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// Why nothing can be recognised. All errors except [`RecogniserError::Recognition`], [`RecogniserError::Refused`] and
/// [`RecogniserError::Cancelled`] pass by themselves, or need an administrator.
#[derive(Debug, thiserror::Error)]
pub enum RecogniserError {
    /// The program is static: see [`IS_STATIC`].
    #[error(
        "this build of scribed is a static program without an embedded recogniser; use a hosted service \
         (`[service] url`) or a recogniser of your own (`[serve.recognisers.NAME]`), or install the Debian package \
         `scribed`"
    )]
    Static,
    /// The library is not installed.
    #[error(
        "the speech recogniser's library `{library}` was not found; install the package \
         `libpocketsphinx3` ({reason})"
    )]
    LibraryMissing { library: String, reason: String },
    /// A library of that name is there, but in another version.
    #[error(
        "the speech recogniser's library `{library}` has another interface than the one of \
         `libpocketsphinx.so.3` that is needed ({reason}); install the package `libpocketsphinx3` \
         beside it"
    )]
    LibraryIncompatible {
        library: String,
        /// How that was found out.
        reason: String,
    },
    /// A file of the language model is missing or cannot be read.
    #[error(
        "the speech recogniser's model is incomplete: {}: {reason}; install the package \
         `pocketsphinx-en-us`", path.display()
    )]
    ModelMissing {
        /// The file.
        path: PathBuf,
        reason: String,
    },
    /// The library does not accept the model.
    #[error(
        "the speech recogniser did not start with the model in {}; reinstall the package \
         `pocketsphinx-en-us`, and see that 120 MB of memory are free", model.display()
    )]
    Start { model: PathBuf },
    /// One segment failed; others may succeed.
    #[error("the speech recogniser failed on a segment of {seconds:.1} s")]
    Recognition {
        /// Length of the segment.
        seconds: f64,
    },
    /// A recogniser elsewhere does not answer well at the moment: nothing is wrong with the chunk.
    #[error("the recogniser `{name}` cannot be used now: {reason}")]
    Down {
        name: String,
        reason: String,
        /// When it may be tried again.
        wait: Duration,
    },
    /// A recogniser elsewhere does not take this chunk: another attempt does not help.
    #[error("the recogniser `{name}` refused the recording: {reason}")]
    Refused { name: String, reason: String },
    /// A recogniser elsewhere cannot be asked with these settings.
    #[error("the recogniser `{name}` cannot be used: {reason}")]
    Unusable { name: String, reason: String },
    /// The chunk was cancelled.
    #[error("the recognition was cancelled")]
    Cancelled,
}
