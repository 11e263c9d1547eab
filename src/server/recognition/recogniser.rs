//! The door to whatever turns sound into words.

use std::path::PathBuf;
use std::sync::Arc;

/// Turns one segment of speech into words. Many threads may call it at once; how many are served
/// at once is the implementation's affair, the others wait.
pub trait Recogniser: Send + Sync {
    /// What people call it.
    fn name(&self) -> &'static str {
        "a recogniser without a name"
    }

    /// Codes such as `en`, the one that is assumed first.
    fn languages(&self) -> &[&'static str];

    /// The words in `samples` (16 kHz, mono, at most half a minute), in order of time; none for
    /// silence. The same samples give the same words, whatever was recognised before. Blocks for
    /// seconds: call it from a thread that may.
    ///
    /// # Errors
    /// What the recogniser needs is missing or broken; see [`RecogniserError`].
    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError>;

    /// What can be learnt of these words. Blocks on the disk. One that learns nothing says so of all.
    ///
    /// # Errors
    /// What the recogniser needs is missing.
    fn learn(&self, terms: &[Term]) -> Result<LearntVocabulary, RecogniserError> {
        Ok(LearntVocabulary { words: Vec::new(), unknown: terms.iter().map(|term| term.value.clone()).collect() })
    }

    /// As [`Recogniser::recognise`], expecting the lesson's words as well; those are spelt as the lesson
    /// spells them. Keep one lesson for all segments of a recording: learning it takes time.
    ///
    /// # Errors
    /// As those of [`Recogniser::recognise`].
    fn recognise_with(
        &self,
        samples: &[i16],
        lesson: &Arc<LearntVocabulary>,
    ) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let _ = lesson;
        self.recognise(samples)
    }
}

/// A word, or several, that somebody expects in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// As it should be written.
    pub value: String,
    /// How it may sound, spelt as said; may be empty.
    pub pronunciations: Vec<String>,
}

/// What a recogniser learnt of a vocabulary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearntVocabulary {
    /// What it will know.
    pub words: Vec<LearntWord>,
    /// What it could not learn, as it was asked for.
    pub unknown: Vec<String>,
}

/// A word and its sounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntWord {
    /// As it should be written.
    pub value: String,
    /// Ways to say it, each the recogniser's own symbols with blanks between; at least one.
    pub sounds: Vec<String>,
}

/// One word as it was recognised.
#[derive(Debug, Clone, PartialEq)]
pub struct RecognisedWord {
    /// As the dictionary spells it, lower case; as the lesson spells it where it is one of that.
    pub word: String,
    /// Seconds from the segment's start.
    pub start: f64,
    /// Seconds from the segment's start, after `start`.
    pub end: f64,
    /// 0 (a guess) to 1 (certain).
    pub confidence: f64,
}

/// Why nothing can be recognised. All but [`RecogniserError::Recognition`] are for whoever runs
/// the machine.
#[derive(Debug, thiserror::Error)]
pub enum RecogniserError {
    /// The library is not installed.
    #[error(
        "the speech recogniser's library `{library}` was not found; install the package \
         `libpocketsphinx3` ({reason})"
    )]
    LibraryMissing { library: String, reason: String },
    /// There is a library of that name, of another version.
    #[error(
        "the speech recogniser's library `{library}` has another interface than the one of \
         `libpocketsphinx.so.3` that is needed ({reason}); install the package `libpocketsphinx3` \
         beside it"
    )]
    LibraryIncompatible {
        library: String,
        /// What gave it away.
        reason: String,
    },
    /// A file of the language model is missing or cannot be read.
    #[error(
        "the speech recogniser's model is incomplete: {}: {reason}; install the package \
         `pocketsphinx-en-us`", path.display()
    )]
    ModelMissing {
        /// The file that was looked for.
        path: PathBuf,
        reason: String,
    },
    /// The library would not take the model.
    #[error(
        "the speech recogniser did not start with the model in {}; reinstall the package \
         `pocketsphinx-en-us`, and see that 120 MB of memory are free", model.display()
    )]
    Start { model: PathBuf },
    /// One segment failed; others may not.
    #[error("the speech recogniser failed on a segment of {seconds:.1} s")]
    Recognition {
        /// Length of the segment.
        seconds: f64,
    },
}
