//! Recognises chunks with a model that is loaded once; each chunk takes a state of its own.

use super::library::{LibraryFailure, LoadedModel, WhisperLibrary, WhisperRequest, WhisperState};
use super::model_file::{self, WhisperModel};
use super::model_folders::find_model;
use super::words::words;
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech_segments::CutRule;
use crate::server::recognition::openai::request::{prompt, room_for_terms};
use crate::server::recognition::pool::Pool;
use crate::server::recognition::recogniser::{
    LearntVocabulary, RecognisedChunk, RecognisedWord, Recogniser, RecogniserError, SpeechChunk, Term,
};
use crate::wire::languages::code_of;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The settings of a recogniser in this process.
#[derive(Debug, Clone)]
pub struct WhisperOptions {
    /// Its name in the configuration.
    pub name: String,
    pub model: ModelLocation,
    /// The library's file; if absent, the system's loader finds it.
    pub library: Option<PathBuf>,
    /// Codes of the languages that requests may name; empty for all that the model has.
    pub languages: Vec<&'static str>,
    /// How many chunks it recognises at once, at least 1.
    pub concurrency: usize,
    /// The threads for one chunk; if absent, the processors are shared out.
    pub threads: Option<usize>,
    /// The longest chunk.
    pub chunk: Duration,
}

/// Where a model file is.
#[derive(Debug, Clone)]
pub enum ModelLocation {
    Path(PathBuf),
    Named { name: String, folders: Vec<PathBuf> },
}

impl ModelLocation {
    /// Returns the path of the file.
    ///
    /// # Errors
    /// It is in none of the folders; the text names them.
    pub fn find(&self) -> Result<PathBuf, String> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Named { name, folders } => find_model(name, folders).ok_or_else(|| {
                let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
                format!(
                    "the model file `{name}` is in none of these folders: {}; `scribed serve models` tells how to get one",
                    folders.join(", ")
                )
            }),
        }
    }
}

/// A [`Recogniser`] with the library of whisper.cpp.
pub struct WhisperRecogniser {
    options: WhisperOptions,
    languages: Vec<&'static str>,
    is_multilingual: bool,
    identity: String,
    library: Arc<WhisperLibrary>,
    model: Arc<LoadedModel>,
    /// Limits how many chunks are recognised at once.
    states: Pool<WhisperState>,
}

/// The length to which shorter chunks are filled up with silence: the library recognises nothing in a few hundredths of
/// a second, and invents words in a few tenths.
const SHORTEST: usize = SAMPLE_RATE as usize;

/// Changes when the settings of the library are chosen differently, so that chunks are recognised again.
const SETTINGS: &str = "beam 5, no context";

impl WhisperRecogniser {
    /// Checks and loads the model, which takes seconds and as much memory as its file.
    ///
    /// # Errors
    /// [`RecogniserError::Unusable`]: the library or the file is missing, or not of a kind that can be used.
    pub fn open(options: WhisperOptions) -> Result<Self, RecogniserError> {
        let unusable = |reason| RecogniserError::Unusable { name: options.name.clone(), reason };
        let path = options.model.find().map_err(unusable)?;
        let found = model_file::check(&path).map_err(|error| unusable(format!("{}: {error}", path.display())))?;
        let library = WhisperLibrary::load(options.library.as_deref()).map_err(|error| unusable(error.to_string()))?;
        let model = LoadedModel::load(&library, &path).ok_or_else(|| {
            let needed = found.bytes.div_ceil(1_000_000);
            unusable(format!(
                "whisper.cpp {} does not load {}; it takes {needed} MB of memory",
                library.version(),
                path.display()
            ))
        })?;
        Ok(Self {
            languages: languages(&options.languages, &found),
            is_multilingual: found.is_multilingual,
            identity: format!(
                "{} whisper.cpp {} {} {:?} {SETTINGS}",
                options.name,
                library.version(),
                fingerprint(&path),
                options.languages
            ),
            states: Pool::new(options.concurrency),
            model: Arc::new(model),
            library,
            options,
        })
    }

    /// Returns the code of the language for the library.
    fn language<'l>(&self, chunk: &SpeechChunk<'l>) -> Result<&'l str, RecogniserError> {
        let only = if let [only] = self.languages[..] { Some(only) } else { None };
        match chunk.language.or(only) {
            _ if !self.is_multilingual => Ok("en"),
            None => Ok("auto"),
            Some(code) if self.library.knows_language(code) => Ok(code),
            Some(code) => {
                let reason = format!("its model has no language `{code}`");
                Err(RecogniserError::Refused { name: self.options.name.clone(), reason })
            }
        }
    }

    fn threads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.options.threads.unwrap_or((processors / self.options.concurrency.max(1)).max(1))
    }
}

/// A model of one language has no others, whatever is configured.
fn languages(configured: &[&'static str], model: &WhisperModel) -> Vec<&'static str> {
    if model.is_multilingual { configured.to_vec() } else { vec!["en"] }
}

/// Returns a text that changes when the file is replaced: its path, size and time.
fn fingerprint(model: &Path) -> String {
    let metadata = std::fs::metadata(model).ok();
    let known = metadata.map(|metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec()));
    format!("{} {known:?}", model.display())
}

/// Returns samples as the library takes them.
fn normalised(samples: &[i16]) -> Vec<f32> {
    let mut normalised: Vec<f32> = samples.iter().map(|sample| f32::from(*sample) / 32_768.0).collect();
    normalised.resize(normalised.len().max(SHORTEST), 0.0);
    normalised
}

impl Recogniser for WhisperRecogniser {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn languages(&self) -> &[&'static str] {
        &self.languages
    }

    fn cut_rule(&self) -> CutRule {
        CutRule::Chunks(self.options.chunk)
    }

    fn at_once(&self) -> usize {
        self.options.concurrency
    }

    fn recognise_chunk(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        let seconds = chunk.samples.len() as f64 / f64::from(SAMPLE_RATE);
        let failed = || RecogniserError::Recognition { seconds };
        let language = self.language(chunk)?;
        let terms: Vec<String> = chunk.vocabulary.words.iter().map(|word| word.value.clone()).collect();
        let prompt = prompt(chunk.prompt, &terms);
        let start = || WhisperState::start(&self.model).ok_or_else(failed);
        let mut state = self.states.checkout(|_| true, start)?;
        let request = WhisperRequest { threads: self.threads(), language, prompt: &prompt, cancelled: chunk.cancelled };
        let recognised = match state.recognise(&normalised(chunk.samples), &request) {
            Ok(()) => Ok(RecognisedChunk {
                words: words(state.segments(), seconds),
                language: state.language().and_then(|code| code_of(&code)).map(str::to_owned),
                is_written: true,
                has_estimated_times: false,
            }),
            Err(LibraryFailure::Cancelled) => Err(RecogniserError::Cancelled),
            Err(LibraryFailure::Failed) => Err(failed()),
        };
        // The random numbers of a state continue from chunk to chunk, and those of a new one are always the same: equal
        // chunks have equal words.
        state.discard();
        recognised
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let (vocabulary, cancelled) = (Arc::default(), CancellationToken::new());
        let chunk = SpeechChunk { samples, language: None, vocabulary: &vocabulary, prompt: "", cancelled: &cancelled };
        Ok(self.recognise_chunk(&chunk)?.words.into_iter().map(RecognisedWord::from).collect())
    }

    /// The vocabulary is a part of the prompt, as far as there is room.
    fn learn(&self, terms: &[Term]) -> Result<LearntVocabulary, RecogniserError> {
        Ok(LearntVocabulary::of_prompt(terms, room_for_terms))
    }
}
