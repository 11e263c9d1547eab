//! The library of whisper.cpp, loaded at run time.

#![expect(unsafe_code, reason = "whisper.cpp is a C library; every call into it is in this file")]

use super::parameters::{AbortCallback, BEAM_SEARCH, ContextParameters, FullParameters};
use super::words::ModelToken;
use crate::server::recognition::recogniser::IS_STATIC;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The name under which the system's loader finds the library.
pub const LIBRARY: &str = "libwhisper.so.1";

/// The versions whose settings have the layout of `parameters`.
const VERSIONS: [&str; 2] = ["1.8.", "1.9."];

/// Why the library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error(
        "this build of scribed is a static program and loads no library; run the server of whisper.cpp and name it \
         (`kind = \"whisper.cpp\"`), or install the Debian package `scribed`"
    )]
    Static,
    #[error(
        "the library of whisper.cpp, `{library}`, was not found ({reason}); install it from your distribution or build \
         it (cmake -DBUILD_SHARED_LIBS=ON), or name its file in `library`"
    )]
    Missing { library: String, reason: String },
    #[error("`{library}` is no library of whisper.cpp that scribed knows: {reason}; it knows the versions 1.8 and 1.9")]
    Unknown { library: String, reason: String },
}

/// Why the library did not do what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LibraryFailure {
    Failed,
    Cancelled,
}

type Context = *mut c_void;
type State = *mut c_void;

/// The functions of the library as `whisper.h` of 1.8 and 1.9 declares them. They stay valid as long as `_library` is
/// loaded.
pub struct WhisperLibrary {
    version: String,
    context_presets: unsafe extern "C" fn() -> *mut ContextParameters,
    free_context_presets: unsafe extern "C" fn(*mut ContextParameters),
    full_presets: unsafe extern "C" fn(c_int) -> *mut FullParameters,
    free_full_presets: unsafe extern "C" fn(*mut FullParameters),
    init: unsafe extern "C" fn(*const c_char, ContextParameters) -> Context,
    free: unsafe extern "C" fn(Context),
    init_state: unsafe extern "C" fn(Context) -> State,
    free_state: unsafe extern "C" fn(State),
    full: unsafe extern "C" fn(Context, State, FullParameters, *const f32, c_int) -> c_int,
    language: unsafe extern "C" fn(State) -> c_int,
    language_code: unsafe extern "C" fn(c_int) -> *const c_char,
    language_number: unsafe extern "C" fn(*const c_char) -> c_int,
    first_mark: unsafe extern "C" fn(Context) -> c_int,
    segments: unsafe extern "C" fn(State) -> c_int,
    tokens: unsafe extern "C" fn(State, c_int) -> c_int,
    token_text: unsafe extern "C" fn(Context, State, c_int, c_int) -> *const c_char,
    token_data: unsafe extern "C" fn(State, c_int, c_int) -> TokenData,
    _library: Library,
}

/// `struct whisper_token_data`. Times are in hundredths of a second, and −1 where there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct TokenData {
    id: i32,
    timestamp_id: i32,
    probability: f32,
    log_probability: f32,
    timestamp_probability: f32,
    timestamp_probability_sum: f32,
    start: i64,
    end: i64,
    dtw: i64,
    length: f32,
}

impl WhisperLibrary {
    /// Loads the library, from this file or by the system's loader.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn load(path: Option<&Path>) -> Result<Arc<Self>, LibraryError> {
        if IS_STATIC {
            return Err(LibraryError::Static);
        }
        let name = path.unwrap_or(Path::new(LIBRARY));
        let shown = name.display().to_string();
        // SAFETY: loading runs the library's initialisers, which set up tables and nothing else.
        let library = unsafe { Library::new(name) }
            .map_err(|error| LibraryError::Missing { library: shown.clone(), reason: error.to_string() })?;
        let loaded = Self::of(library).map_err(|reason| LibraryError::Unknown { library: shown, reason })?;
        loaded.prepare();
        Ok(Arc::new(loaded))
    }

    fn of(library: Library) -> Result<Self, String> {
        let absent = |error: libloading::Error| error.to_string();
        // SAFETY: `whisper_version` exists from 1.8 on and has this type in all versions. All others have the types of
        // the header of the versions that were let through.
        unsafe {
            let version: unsafe extern "C" fn() -> *const c_char =
                *library.get(b"whisper_version\0").map_err(absent)?;
            let version = CStr::from_ptr(version()).to_string_lossy().into_owned();
            if !VERSIONS.iter().any(|known| version.starts_with(known)) {
                return Err(format!("it is version {version}"));
            }
            macro_rules! function {
                ($name:literal) => {
                    *library.get(concat!($name, "\0").as_bytes()).map_err(absent)?
                };
            }
            Ok(Self {
                version,
                context_presets: function!("whisper_context_default_params_by_ref"),
                free_context_presets: function!("whisper_free_context_params"),
                full_presets: function!("whisper_full_default_params_by_ref"),
                free_full_presets: function!("whisper_free_params"),
                init: function!("whisper_init_from_file_with_params_no_state"),
                free: function!("whisper_free"),
                init_state: function!("whisper_init_state"),
                free_state: function!("whisper_free_state"),
                full: function!("whisper_full_with_state"),
                language: function!("whisper_full_lang_id_from_state"),
                language_code: function!("whisper_lang_str"),
                language_number: function!("whisper_lang_id"),
                first_mark: function!("whisper_token_eot"),
                segments: function!("whisper_full_n_segments_from_state"),
                tokens: function!("whisper_full_n_tokens_from_state"),
                token_text: function!("whisper_full_get_token_text_from_state"),
                token_data: function!("whisper_full_get_token_data_from_state"),
                _library: library,
            })
        }
        .and_then(Self::with_known_layout)
    }

    fn with_known_layout(self) -> Result<Self, String> {
        match self.full_parameters() {
            Some(presets) if presets.are_known_presets() => Ok(self),
            _ => Err(format!("its version {} has settings of another layout", self.version)),
        }
    }

    /// Directs the library's log to that of scribed, and loads the parts for this machine's processors where the library
    /// keeps them in files of their own.
    fn prepare(&self) {
        type SetLog = unsafe extern "C" fn(unsafe extern "C" fn(c_int, *const c_char, *mut c_void), *mut c_void);
        // SAFETY: both functions have these types since they exist, and may be called at any time.
        unsafe {
            if let Ok(set_log) = self._library.get::<SetLog>(b"whisper_log_set\0") {
                set_log(log, ptr::null_mut());
            }
            if let Ok(load_parts) = self._library.get::<unsafe extern "C" fn()>(b"ggml_backend_load_all\0") {
                load_parts();
            }
        }
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it has a language of this code.
    pub fn knows_language(&self, code: &str) -> bool {
        // SAFETY: the code is a C string that lives through the call.
        CString::new(code).is_ok_and(|code| unsafe { (self.language_number)(code.as_ptr()) } >= 0)
    }

    fn full_parameters(&self) -> Option<FullParameters> {
        // SAFETY: the returned structure is live until it is freed, and at least as long as this layout: versions only
        // add fields.
        unsafe {
            let presets = NonNull::new((self.full_presets)(BEAM_SEARCH))?;
            let copy = presets.read_unaligned();
            (self.free_full_presets)(presets.as_ptr());
            Some(copy)
        }
    }

    fn context_parameters(&self) -> Option<ContextParameters> {
        // SAFETY: as in `full_parameters`.
        unsafe {
            let presets = NonNull::new((self.context_presets)())?;
            let copy = presets.read_unaligned();
            (self.free_context_presets)(presets.as_ptr());
            Some(copy)
        }
    }
}

/// Takes a piece of the library's log.
unsafe extern "C" fn log(_level: c_int, text: *const c_char, _data: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: the library passes a C string that lives through the call.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let text = text.trim();
    if !text.is_empty() {
        tracing::trace!(target: "scribed::whisper", "{}", crate::domain::escape::line(text));
    }
}

/// A model that is loaded; its weights are shared by all states.
pub(super) struct LoadedModel {
    library: Arc<WhisperLibrary>,
    context: NonNull<c_void>,
}

// SAFETY: after its start a context is only read, as the library's header says of `whisper_full_with_state`.
unsafe impl Send for LoadedModel {}
// SAFETY: as above.
unsafe impl Sync for LoadedModel {}

impl LoadedModel {
    /// Loads a model file, which takes its size in memory; `None` if the library does not.
    pub fn load(library: &Arc<WhisperLibrary>, path: &Path) -> Option<Self> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let parameters = library.context_parameters()?;
        // SAFETY: the path is a C string that lives through the call; the parameters are the library's own.
        let context = NonNull::new(unsafe { (library.init)(path.as_ptr(), parameters) })?;
        Some(Self { library: Arc::clone(library), context })
    }
}

impl Drop for LoadedModel {
    fn drop(&mut self) {
        // SAFETY: the context is freed once; its states hold the model, so they are gone.
        unsafe { (self.library.free)(self.context.as_ptr()) };
    }
}

/// What one chunk at a time is recognised with.
pub(super) struct WhisperState {
    model: Arc<LoadedModel>,
    state: NonNull<c_void>,
}

// SAFETY: a state is bound to no thread; the pool gives it to one at a time.
unsafe impl Send for WhisperState {}

/// What a chunk is recognised by.
pub(super) struct WhisperRequest<'r> {
    pub threads: usize,
    /// A code of the library, or `auto`.
    pub language: &'r str,
    /// May be empty.
    pub prompt: &'r str,
    pub cancelled: &'r CancellationToken,
}

impl WhisperState {
    /// Starts a state, which takes some 100 MB to a gigabyte by the size of the model; `None` if there is no memory.
    pub fn start(model: &Arc<LoadedModel>) -> Option<Self> {
        // SAFETY: the context is live, and stays so as long as the state holds the model.
        let state = NonNull::new(unsafe { (model.library.init_state)(model.context.as_ptr()) })?;
        Some(Self { model: Arc::clone(model), state })
    }

    /// Recognises samples from −1 to 1, 16,000 for each second.
    pub fn recognise(&mut self, samples: &[f32], request: &WhisperRequest<'_>) -> Result<(), LibraryFailure> {
        let library = &*self.model.library;
        let text = |text: &str| CString::new(text.replace('\0', " ")).map_err(|_| LibraryFailure::Failed);
        let (language, prompt) = (text(request.language)?, text(request.prompt)?);
        let count = c_int::try_from(samples.len()).map_err(|_| LibraryFailure::Failed)?;
        let mut parameters = library.full_parameters().ok_or(LibraryFailure::Failed)?;
        parameters.threads = c_int::try_from(request.threads).unwrap_or(1);
        // Equal chunks have equal words, whatever was recognised before.
        parameters.no_context = 1;
        (parameters.print_progress, parameters.print_realtime, parameters.print_timestamps) = (0, 0, 0);
        parameters.token_timestamps = 1;
        parameters.suppress_no_speech = 1;
        parameters.language = language.as_ptr();
        if !request.prompt.is_empty() {
            parameters.initial_prompt = prompt.as_ptr();
        }
        let token: *const CancellationToken = request.cancelled;
        parameters.abort_callback = AbortCallback { function: Some(is_cancelled), data: token.cast_mut().cast() };
        let (context, state) = (self.model.context.as_ptr(), self.state.as_ptr());
        // SAFETY: context and state are live and the state is this thread's (`&mut self`); both texts, the samples and
        // the token live through the call, which only reads them.
        let ended = unsafe { (library.full)(context, state, parameters, samples.as_ptr(), count) };
        match ended {
            _ if request.cancelled.is_cancelled() => Err(LibraryFailure::Cancelled),
            0 => Ok(()),
            _ => Err(LibraryFailure::Failed),
        }
    }

    /// Returns the code of the language of what was recognised last.
    pub fn language(&self) -> Option<String> {
        let library = &*self.model.library;
        // SAFETY: the state is live; the code is a constant of the library, or null for a number that is none.
        unsafe {
            let code = NonNull::new((library.language_code)((library.language)(self.state.as_ptr())).cast_mut())?;
            Some(CStr::from_ptr(code.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// Returns the tokens of what was recognised last, segment by segment, without the marks of the model.
    pub fn segments(&mut self) -> Vec<Vec<ModelToken>> {
        let library = &*self.model.library;
        // SAFETY: the context is live.
        let first_mark = unsafe { (library.first_mark)(self.model.context.as_ptr()) };
        // SAFETY: the state is live and has ended its work.
        let segments = unsafe { (library.segments)(self.state.as_ptr()) };
        (0..segments).map(|segment| self.tokens(segment, first_mark)).collect()
    }

    fn tokens(&self, segment: c_int, first_mark: c_int) -> Vec<ModelToken> {
        let library = &*self.model.library;
        // SAFETY: the state is live, and `segment` is one of its segments.
        let count = unsafe { (library.tokens)(self.state.as_ptr(), segment) };
        (0..count).filter_map(|number| self.token(segment, number, first_mark)).collect()
    }

    fn token(&self, segment: c_int, number: c_int, first_mark: c_int) -> Option<ModelToken> {
        let (library, context, state) = (&*self.model.library, self.model.context.as_ptr(), self.state.as_ptr());
        // SAFETY: context and state are live, segment and token are theirs; the text is a C string that lives as long as
        // the context, and is copied.
        unsafe {
            let data = (library.token_data)(state, segment, number);
            if data.id >= first_mark {
                return None;
            }
            let text = NonNull::new((library.token_text)(context, state, segment, number).cast_mut())?;
            Some(ModelToken {
                text: CStr::from_ptr(text.as_ptr()).to_bytes().to_vec(),
                start: data.start as f64 / 100.0,
                end: data.end as f64 / 100.0,
                probability: f64::from(data.probability),
            })
        }
    }
}

impl Drop for WhisperState {
    fn drop(&mut self) {
        // SAFETY: the state is freed once, before its model.
        unsafe { (self.model.library.free_state)(self.state.as_ptr()) };
    }
}

/// Asked by the library while it works, from its own threads.
unsafe extern "C" fn is_cancelled(token: *mut c_void) -> bool {
    // SAFETY: the data of the callback is the token of the request, which lives through the work.
    unsafe { &*token.cast_const().cast::<CancellationToken>() }.is_cancelled()
}

/// Returns the file of the library that is loaded under this name, as far as the system tells.
pub fn loaded_from(library: &WhisperLibrary) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let address = library.init as usize;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        let path = rest.find('/').map(|at| PathBuf::from(&rest[at..]))?;
        (from..to).contains(&address).then_some(path)
    })
}
