//! The interface of speech recognisers.

use std::path::PathBuf;
use std::sync::Arc;

/// Recognises the words of one segment of speech. Many threads may call it at once; the implementation decides how many
/// run at once, and the others wait.
pub trait Recogniser: Send + Sync {
    /// Returns its name for people.
    fn name(&self) -> &'static str {
        "a recogniser without a name"
    }

    /// Returns codes such as `en`; the first one is assumed where no language is given.
    fn languages(&self) -> &[&'static str];

    /// Returns the words in `samples` (16 kHz, mono, at most half a minute), in order of time; none for silence. Equal
    /// samples give equal words, whatever was recognised before. Blocks for seconds: call it from a thread that may
    /// block.
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

    /// As [`Recogniser::recognise`], expecting the words of `lesson` too; those are spelt as in the lesson. Keep one
    /// lesson for all segments of a recording, because learning takes time.
    ///
    /// # Errors
    /// Those of [`Recogniser::recognise`].
    fn recognise_with(
        &self,
        samples: &[i16],
        lesson: &Arc<LearntVocabulary>,
    ) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let _ = lesson;
        self.recognise(samples)
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

/// A word and its sounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearntWord {
    /// How it is written.
    pub value: String,
    /// Its pronunciations, each in the recogniser's own symbols with spaces between; at least one.
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

/// Why nothing can be recognised. All errors except [`RecogniserError::Recognition`] need the administrator of the
/// machine.
#[derive(Debug, thiserror::Error)]
pub enum RecogniserError {
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
}
