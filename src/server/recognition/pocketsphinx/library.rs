//! The library, loaded at run time, and its functions.

use crate::server::recognition::recogniser::{IS_STATIC, RecogniserError};
use libloading::Library;
use std::ffi::{c_char, c_double, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

const LIBRARY: &str = "libpocketsphinx.so.3";

/// Names under which other versions of the library are installed: they only serve to tell "not installed" from "another
/// version".
const OTHER_LIBRARIES: [&str; 4] =
    ["libpocketsphinx.so.5", "libpocketsphinx.so.4", "libpocketsphinx.so.1", "libpocketsphinx.so"];

pub type Opaque = *mut c_void;

/// The functions of the library as `pocketsphinx.h`, `fe.h`, `cmd_ln.h`, `logmath.h` and `err.h` of 0.8+5prealpha
/// declare them, in a build with floating-point features, as Debian's is. They stay valid as long as `_library` is
/// loaded.
pub struct SphinxLibrary {
    pub args: unsafe extern "C" fn() -> *const c_void,
    pub parse: unsafe extern "C" fn(Opaque, *const c_void, i32, *const *const c_char, i32) -> Opaque,
    pub free_config: unsafe extern "C" fn(Opaque) -> c_int,
    pub init: unsafe extern "C" fn(Opaque) -> Opaque,
    pub free: unsafe extern "C" fn(Opaque) -> c_int,
    pub start_stream: unsafe extern "C" fn(Opaque) -> c_int,
    pub start_utt: unsafe extern "C" fn(Opaque) -> c_int,
    pub process_cep: unsafe extern "C" fn(Opaque, *mut *mut f32, c_int, c_int, c_int) -> c_int,
    pub front_end: unsafe extern "C" fn(Opaque) -> Opaque,
    pub front_end_width: unsafe extern "C" fn(Opaque) -> c_int,
    pub front_end_start: unsafe extern "C" fn(Opaque) -> c_int,
    pub front_end_process:
        unsafe extern "C" fn(Opaque, *mut *const i16, *mut usize, *mut *mut f32, *mut i32, *mut i32) -> c_int,
    pub front_end_end: unsafe extern "C" fn(Opaque, *mut f32, *mut i32) -> c_int,
    pub end_utt: unsafe extern "C" fn(Opaque) -> c_int,
    pub seg_iter: unsafe extern "C" fn(Opaque) -> Opaque,
    pub seg_next: unsafe extern "C" fn(Opaque) -> Opaque,
    pub seg_word: unsafe extern "C" fn(Opaque) -> *const c_char,
    pub seg_frames: unsafe extern "C" fn(Opaque, *mut c_int, *mut c_int),
    pub seg_prob: unsafe extern "C" fn(Opaque, *mut i32, *mut i32, *mut i32) -> i32,
    pub add_word: unsafe extern "C" fn(Opaque, *const c_char, *const c_char, c_int) -> c_int,
    pub logmath: unsafe extern "C" fn(Opaque) -> Opaque,
    pub logmath_exp: unsafe extern "C" fn(Opaque, c_int) -> c_double,
    /// Held while a decoder starts, one at a time: the library does not promise that two threads may read its arguments
    /// and model files at once (24 starts, four at once, went well).
    pub starting: Mutex<()>,
    _library: Library,
}

impl SphinxLibrary {
    pub fn load(path: Option<&Path>) -> Result<Self, RecogniserError> {
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
                process_cep: *library.get(b"ps_process_cep\0")?,
                front_end: *library.get(b"ps_get_fe\0")?,
                front_end_width: *library.get(b"fe_get_output_size\0")?,
                front_end_start: *library.get(b"fe_start_utt\0")?,
                front_end_process: *library.get(b"fe_process_frames\0")?,
                front_end_end: *library.get(b"fe_end_utt\0")?,
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
    // SAFETY: as in `SphinxLibrary::load`; it is unloaded at once.
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
