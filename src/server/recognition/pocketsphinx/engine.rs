//! The recogniser: a pool of decoders.

use super::decoder::{DecodeFailure, SphinxDecoder};
use super::library::SphinxLibrary;
use super::model;
use crate::server::recognition::pool::Pool;
use crate::server::recognition::pronunciation;
use crate::server::recognition::recogniser::{
    LearntVocabulary, RecognisedChunk, RecognisedWord, Recogniser, RecogniserError, SpeechChunk, Term,
};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A [`Recogniser`] with a bounded pool of decoders. Each takes about 100 MB and a second to start; one is started only
/// when all others are in use.
pub struct PocketSphinx {
    api: Arc<SphinxLibrary>,
    settings: Settings,
    /// See [`Recogniser::identity`].
    identity: String,
    decoders: Pool<SphinxDecoder>,
}

/// Where the library and the model are, and how many decoders may work at once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The library's path; if absent, the system's loader finds `libpocketsphinx.so.3`.
    pub library: Option<PathBuf>,
    /// The folder with the dictionary, the language model and the acoustic model.
    pub model: PathBuf,
    /// How many segments are recognised at once, at least 1.
    pub decoders: usize,
}

impl Default for Settings {
    /// Uses Debian's paths, and one decoder for each processor core.
    fn default() -> Self {
        Self {
            library: None,
            model: "/usr/share/pocketsphinx/model/en-us".into(),
            decoders: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl PocketSphinx {
    /// Loads the library and checks the model's files. Starts no decoder yet.
    ///
    /// # Errors
    /// [`RecogniserError::Static`]; [`RecogniserError::LibraryMissing`], [`RecogniserError::LibraryIncompatible`],
    /// [`RecogniserError::ModelMissing`], each naming the package to install.
    pub fn open(settings: Settings) -> Result<Self, RecogniserError> {
        let api = Arc::new(SphinxLibrary::load(settings.library.as_deref())?);
        model::check(&settings.model)?;
        let identity = format!("PocketSphinx {} {:?}", model::fingerprint(&settings.model), model::SEARCH);
        let decoders = Pool::new(settings.decoders);
        Ok(Self { api, settings, identity, decoders })
    }
}

pub const LANGUAGES: &[&str] = &["en"];

impl Recogniser for PocketSphinx {
    fn name(&self) -> &'static str {
        "PocketSphinx"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn at_once(&self) -> usize {
        self.settings.decoders
    }

    fn languages(&self) -> &[&'static str] {
        LANGUAGES
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        self.decode(samples, &Arc::default(), &CancellationToken::new())
    }

    fn recognise_chunk(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        let words = self.decode(chunk.samples, chunk.vocabulary, chunk.cancelled)?;
        Ok(RecognisedChunk::of_words(words))
    }

    fn learn(&self, terms: &[Term]) -> Result<LearntVocabulary, RecogniserError> {
        if terms.is_empty() {
            return Ok(LearntVocabulary::default());
        }
        let path = self.settings.model.join(model::DICTIONARY);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| RecogniserError::ModelMissing { path, reason: error.to_string() })?;
        Ok(pronunciation::build_vocabulary(terms, &text))
    }
}

impl PocketSphinx {
    fn decode(
        &self,
        samples: &[i16],
        lesson: &Arc<LearntVocabulary>,
        cancelled: &CancellationToken,
    ) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let start = || SphinxDecoder::start(&self.api, &self.settings.model);
        let mut decoder = self.decoders.checkout(|decoder| decoder.knows(lesson), start)?;
        if !decoder.knows(lesson) && !decoder.lesson.words.is_empty() {
            // A decoder cannot forget the words that it has learnt.
            *decoder = start()?;
        }
        let decoded = match decoder.knows(lesson) || decoder.learn_words(lesson) {
            true => decoder.decode(samples, &mut || cancelled.is_cancelled()),
            false => Err(DecodeFailure::Library),
        };
        decoded.map_err(|failure| match failure {
            DecodeFailure::Cancelled => RecogniserError::Cancelled,
            DecodeFailure::Library => {
                decoder.discard();
                RecogniserError::Recognition { seconds: samples.len() as f64 / 16_000.0 }
            }
        })
    }
}
