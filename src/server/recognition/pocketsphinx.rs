//! Recognises English offline, with the PocketSphinx library of the system (Debian: `libpocketsphinx3` with
//! `pocketsphinx-en-us`). The library is loaded at run time; the build does not need it.
//!
//! It is no match for a hosted service: one word in five of read speech is wrong, and most words of a telephone call
//! (`docs/explanation/accuracy.md`).

#![expect(unsafe_code, reason = "the recogniser is a C library; every call into it is in this file")]

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use libloading::Library;

use super::model;
use super::pool::Pool;
use super::pronunciation;
use super::recogniser::{IS_STATIC, LearntVocabulary, RecognisedWord, Recogniser, RecogniserError, Term};

/// A [`Recogniser`] with a bounded pool of decoders. Each takes about 100 MB and a second to start; one is started only
/// when all others are in use.
pub struct PocketSphinx {
    api: Arc<Api>,
    settings: Settings,
    /// See [`Recogniser::identity`].
    identity: String,
    decoders: Pool<Decoder>,
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
        let api = Arc::new(Api::load(settings.library.as_deref())?);
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
        self.recognise_with(samples, &Arc::default())
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

    fn recognise_with(
        &self,
        samples: &[i16],
        lesson: &Arc<LearntVocabulary>,
    ) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let start = || Decoder::start(&self.api, &self.settings.model);
        let mut decoder = self.decoders.checkout(|decoder| decoder.knows(lesson), start)?;
        if !decoder.knows(lesson) && !decoder.lesson.words.is_empty() {
            // A decoder cannot forget the words that it has learnt.
            *decoder = start()?;
        }
        if (decoder.knows(lesson) || decoder.learn_words(lesson))
            && let Some(words) = decoder.decode(samples)
        {
            return Ok(words);
        }
        decoder.discard();
        Err(RecogniserError::Recognition { seconds: samples.len() as f64 / 16_000.0 })
    }
}

/// The prefix of a learnt word's name inside the decoder, unlike any word of the dictionary; the word's number in the
/// vocabulary follows.
const LEARNT: &str = "learnt:";

const LIBRARY: &str = "libpocketsphinx.so.3";

/// Names under which other versions of the library are installed: they only serve to tell "not installed" from "another
/// version".
const OTHER_LIBRARIES: [&str; 4] =
    ["libpocketsphinx.so.5", "libpocketsphinx.so.4", "libpocketsphinx.so.1", "libpocketsphinx.so"];

/// Frames a second, the unit of the times that the library returns.
const FRAME_RATE: f64 = 100.0;

/// Converts a word of the library; returns `None` for `<sil>`, `[NOISE]` and `++UM++`, which are no words. `(2)` after
/// a word names a pronunciation. Both frames are inclusive.
fn convert_word(
    word: &str,
    first: c_int,
    last: c_int,
    probability: f64,
    lesson: &LearntVocabulary,
) -> Option<RecognisedWord> {
    if word.starts_with(['<', '[', '+']) {
        return None;
    }
    let (spelling, _) = word.split_once('(').unwrap_or((word, ""));
    let number = spelling.strip_prefix(LEARNT).and_then(|number| number.parse::<usize>().ok());
    let learnt = number.and_then(|number| lesson.words.get(number));
    Some(RecognisedWord {
        word: learnt.map_or(spelling, |learnt| &learnt.value).to_owned(),
        start: f64::from(first) / FRAME_RATE,
        end: f64::from(last + 1) / FRAME_RATE,
        // The library's sums of logarithms can be a little above 1.
        confidence: probability.clamp(0.0, 1.0),
    })
}

type Opaque = *mut c_void;

/// The functions of the library as `pocketsphinx.h`, `cmd_ln.h`, `logmath.h` and `err.h` of
/// 0.8+5prealpha declare them. They stay valid as long as `_library` is loaded.
struct Api {
    args: unsafe extern "C" fn() -> *const c_void,
    parse: unsafe extern "C" fn(Opaque, *const c_void, i32, *const *const c_char, i32) -> Opaque,
    free_config: unsafe extern "C" fn(Opaque) -> c_int,
    init: unsafe extern "C" fn(Opaque) -> Opaque,
    free: unsafe extern "C" fn(Opaque) -> c_int,
    start_stream: unsafe extern "C" fn(Opaque) -> c_int,
    start_utt: unsafe extern "C" fn(Opaque) -> c_int,
    process_raw: unsafe extern "C" fn(Opaque, *const i16, usize, c_int, c_int) -> c_int,
    end_utt: unsafe extern "C" fn(Opaque) -> c_int,
    seg_iter: unsafe extern "C" fn(Opaque) -> Opaque,
    seg_next: unsafe extern "C" fn(Opaque) -> Opaque,
    seg_word: unsafe extern "C" fn(Opaque) -> *const c_char,
    seg_frames: unsafe extern "C" fn(Opaque, *mut c_int, *mut c_int),
    seg_prob: unsafe extern "C" fn(Opaque, *mut i32, *mut i32, *mut i32) -> i32,
    add_word: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, c_int) -> c_int,
    logmath: unsafe extern "C" fn(Opaque) -> Opaque,
    logmath_exp: unsafe extern "C" fn(Opaque, c_int) -> c_double,
    /// Held while a decoder starts, one at a time: the library does not promise that two threads may read its arguments
    /// and model files at once (24 starts, four at once, went well).
    starting: Mutex<()>,
    _library: Library,
}

impl Api {
    fn load(path: Option<&Path>) -> Result<Self, RecogniserError> {
        if IS_STATIC {
            return Err(RecogniserError::Static);
        }
        let name = path.unwrap_or(Path::new(LIBRARY));
        // SAFETY: loading runs the library's initialisers; PocketSphinx and SphinxBase have none.
        let library = unsafe { Library::new(name) }.map_err(|error| missing(path, &error))?;
        Self::of(library).map_err(|error| RecogniserError::LibraryIncompatible {
            library: name.display().to_string(),
            reason: error.to_string(),
        })
    }

    /// Looks up the functions. Those of SphinxBase are found through PocketSphinx, which depends on it.
    fn of(library: Library) -> Result<Self, libloading::Error> {
        // SAFETY: each type is that of the header of the version whose soname is `LIBRARY`; a
        // library without one of these names, as every other version is, is refused.
        unsafe {
            let set_log: unsafe extern "C" fn(Opaque) = *library.get(b"err_set_logfp\0")?;
            let api = Self {
                args: *library.get(b"ps_args\0")?,
                parse: *library.get(b"cmd_ln_parse_r\0")?,
                free_config: *library.get(b"cmd_ln_free_r\0")?,
                init: *library.get(b"ps_init\0")?,
                free: *library.get(b"ps_free\0")?,
                start_stream: *library.get(b"ps_start_stream\0")?,
                start_utt: *library.get(b"ps_start_utt\0")?,
                process_raw: *library.get(b"ps_process_raw\0")?,
                end_utt: *library.get(b"ps_end_utt\0")?,
                seg_iter: *library.get(b"ps_seg_iter\0")?,
                seg_next: *library.get(b"ps_seg_next\0")?,
                seg_word: *library.get(b"ps_seg_word\0")?,
                seg_frames: *library.get(b"ps_seg_frames\0")?,
                seg_prob: *library.get(b"ps_seg_prob\0")?,
                add_word: *library.get(b"ps_add_word\0")?,
                logmath: *library.get(b"ps_get_logmath\0")?,
                logmath_exp: *library.get(b"logmath_exp\0")?,
                starting: Mutex::new(()),
                _library: library,
            };
            // The library's log is hundreds of lines for each decoder.
            set_log(ptr::null_mut());
            Ok(api)
        }
    }
}

fn missing(path: Option<&Path>, error: &libloading::Error) -> RecogniserError {
    // SAFETY: as in `Api::load`; it is unloaded at once.
    let other = |name: &&&str| unsafe { Library::new(name) }.is_ok();
    match OTHER_LIBRARIES.iter().find(other) {
        Some(found) if path.is_none() => RecogniserError::LibraryIncompatible {
            library: (*found).to_owned(),
            reason: format!("only this one is there: {error}"),
        },
        _ => RecogniserError::LibraryMissing {
            library: path.unwrap_or(Path::new(LIBRARY)).display().to_string(),
            reason: error.to_string(),
        },
    }
}

struct Decoder {
    api: Arc<Api>,
    handle: NonNull<c_void>,
    /// The words that it has learnt in addition to its dictionary.
    lesson: Arc<LearntVocabulary>,
}

// SAFETY: a decoder keeps its state behind its handle and in no thread; the pool gives it to one
// thread at a time.
unsafe impl Send for Decoder {}

impl Decoder {
    /// Starts a decoder, which takes about a second.
    fn start(api: &Arc<Api>, model: &Path) -> Result<Self, RecogniserError> {
        let _guard = api.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = || RecogniserError::Start { model: model.to_owned() };
        let arguments = model::arguments(model).ok_or_else(failed)?;
        let handle = init(api, &arguments).ok_or_else(failed)?;
        Ok(Self { api: Arc::clone(api), handle, lesson: Arc::default() })
    }

    fn knows(&self, lesson: &Arc<LearntVocabulary>) -> bool {
        Arc::ptr_eq(&self.lesson, lesson) || (self.lesson.words.is_empty() && lesson.words.is_empty())
    }

    /// Adds the words to the dictionary and to the language model, there with the probability of an average word.
    /// Returns whether all of them were accepted; if not, the decoder must not be used any more.
    fn learn_words(&mut self, lesson: &Arc<LearntVocabulary>) -> bool {
        let pronunciations = lesson.words.iter().enumerate().flat_map(|(number, word)| {
            word.sounds.iter().enumerate().map(move |(variant, sounds)| match variant {
                0 => (format!("{LEARNT}{number}"), sounds),
                _ => (format!("{LEARNT}{number}({})", variant + 1), sounds),
            })
        });
        let mut pronunciations = pronunciations.peekable();
        let mut all_accepted = true;
        while let Some((name, sounds)) = pronunciations.next() {
            // The search is rebuilt once, with the last word.
            all_accepted = all_accepted && self.add(&name, sounds, pronunciations.peek().is_none());
        }
        self.lesson = Arc::clone(lesson);
        all_accepted
    }

    fn add(&mut self, name: &str, sounds: &str, is_last: bool) -> bool {
        let (Ok(name), Ok(sounds)) = (CString::new(name), CString::new(sounds)) else { return false };
        // SAFETY: the handle is live, between utterances, and used by this thread alone (`&mut self`);
        // both are C strings that live through the call, which copies them.
        unsafe { (self.api.add_word)(self.handle.as_ptr(), name.as_ptr(), sounds.as_ptr(), c_int::from(is_last)) >= 0 }
    }

    /// Decodes a whole segment at once, normalised by its own mean; returns `None` if the library fails.
    fn decode(&mut self, samples: &[i16]) -> Option<Vec<RecognisedWord>> {
        let (api, decoder) = (&*self.api, self.handle.as_ptr());
        // SAFETY: the handle is live and used by this thread alone (`&mut self`); `samples` is
        // only read, during the call. A new stream forgets the noise estimate and the clock of what
        // was decoded before: without it the words depend on that.
        unsafe {
            let started = (api.start_stream)(decoder) >= 0 && (api.start_utt)(decoder) >= 0;
            let full = started && (api.process_raw)(decoder, samples.as_ptr(), samples.len(), 0, 1) >= 0;
            let ended = started && (api.end_utt)(decoder) >= 0;
            (full && ended).then(|| self.words())
        }
    }

    fn words(&mut self) -> Vec<RecognisedWord> {
        let mut words = Vec::new();
        // SAFETY: the utterance has ended and the handle is this thread's; no words is a null.
        let mut segment = unsafe { (self.api.seg_iter)(self.handle.as_ptr()) };
        while !segment.is_null() {
            words.extend(self.word(segment));
            // SAFETY: `segment` is live; this makes it the next one, or frees it and gives null.
            segment = unsafe { (self.api.seg_next)(segment) };
        }
        words
    }

    fn word(&self, segment: Opaque) -> Option<RecognisedWord> {
        let (api, none) = (&*self.api, ptr::null_mut());
        let (mut first, mut last) = (0, 0);
        // SAFETY: `segment` is live and not null; its word is a C string that lives until the next
        // one is asked for, and is copied before; scores not wanted may be null.
        unsafe {
            (api.seg_frames)(segment, &raw mut first, &raw mut last);
            let logarithm = (api.seg_prob)(segment, none, none, none);
            let probability = (api.logmath_exp)((api.logmath)(self.handle.as_ptr()), logarithm);
            let word = NonNull::new((api.seg_word)(segment).cast_mut())?;
            convert_word(&CStr::from_ptr(word.as_ptr()).to_string_lossy(), first, last, probability, &self.lesson)
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the handle came from `ps_init`, is freed once, and its iterators are gone.
        unsafe { (self.api.free)(self.handle.as_ptr()) };
    }
}

fn init(api: &Api, arguments: &[CString]) -> Option<NonNull<c_void>> {
    let pointers: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    let count = i32::try_from(pointers.len()).ok()?;
    // SAFETY: `pointers` are `count` C strings that live through the call, which copies them;
    // `ps_init` keeps a reference of its own to the configuration, so ours is given up.
    unsafe {
        let config = (api.parse)(ptr::null_mut(), (api.args)(), count, pointers.as_ptr(), 1);
        let config = NonNull::new(config)?;
        let handle = (api.init)(config.as_ptr());
        (api.free_config)(config.as_ptr());
        NonNull::new(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pronunciation_is_not_part_of_the_word() {
        let word = convert_word("leisure(2)", 224, 270, 1.0003, &LearntVocabulary::default()).unwrap();
        let expected = ("leisure", 2.24, 2.71, 1.0);
        assert_eq!((word.word.as_str(), word.start, word.end, word.confidence), expected);
    }

    #[test]
    fn what_is_no_word_is_left_out() {
        for mark in ["<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]", "++UM++"] {
            assert_eq!(convert_word(mark, 0, 9, 1.0, &LearntVocabulary::default()), None);
        }
    }
}
