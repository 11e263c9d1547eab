//! The recogniser's model: its files, and the settings of its search.

use crate::server::recognition::recogniser::RecogniserError;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const FEATURES: &str = "en-us/feat.params";

pub(crate) const DICTIONARY: &str = "cmudict-en-us.dict";

/// The files of the model, below its folder. The library ends the whole process if some of them are missing, so all are
/// checked before.
const FILES: [&str; 9] = [
    DICTIONARY,
    "en-us.lm.bin",
    FEATURES,
    "en-us/mdef",
    "en-us/means",
    "en-us/noisedict",
    "en-us/sendump",
    "en-us/transition_matrices",
    "en-us/variances",
];

/// The search settings that differ from the library's defaults.
///
/// Measured on five readings (25 s, 71 words), clean and with white noise 20 and 10 dB below the speech: wrong words,
/// and processor seconds for a second of clean sound. The library's defaults: 20, 37 and 66 words, 0.19; these: 15, 34
/// and 57 words, 0.11. Wider beams cost half as much again and change nothing; other weights of the first pass (5.5 to
/// 10) are no better or much worse; skipping frames (`-ds 2`) and fewer Gaussians (`-topn 2`) cost words.
pub(crate) const SEARCH: [(&str, &str); 4] = [
    // If the front end removes silence, its clock does not count it: words after a pause of two seconds came 1.7 s too
    // early. The segmenter has already removed silence.
    ("-remove_silence", "no"),
    // The second pass costs time and words: 20, 37, 66 words and 0.19 with it, 19, 34, 64 and 0.16
    // without.
    ("-fwdflat", "no"),
    // The third pass computes the confidences, but its default weight of the language (9.5) chose worse words than it
    // was given: 19 wrong at 9.5, 14 at 8.5, 15 at 7.5, at 6.5 and without the pass.
    ("-bestpathlw", "7.5"),
    // The most states kept in a frame: the default 30000 costs half as much again and is worse in noise; 2000 begins to
    // lose words.
    ("-maxhmmpf", "3000"),
];

/// Checks that all files of the model can be read and are not empty.
///
/// # Errors
/// [`RecogniserError::ModelMissing`], naming the first file that is missing, unreadable or empty.
pub(crate) fn check(model: &Path) -> Result<(), RecogniserError> {
    for name in FILES {
        let path = model.join(name);
        let reason = match std::fs::File::open(&path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.len() > 0 => continue,
            Ok(_) => "it is empty".to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(RecogniserError::ModelMissing { path, reason });
    }
    Ok(())
}

/// Returns a text that changes when the model is replaced: its path, and the sizes and times of its files.
pub(crate) fn fingerprint(model: &Path) -> String {
    let files = FILES.map(|name| {
        let metadata = std::fs::metadata(model.join(name)).ok();
        metadata.map(|metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    });
    format!("{} {files:?}", model.display())
}

/// Returns names and values as on a command line.
///
/// The library would let the model's own features replace those that it is given. So it gets an empty file in their
/// place, and the model's features as arguments, but one: the decoder subtracts the mean itself, of a whole segment, and
/// the library takes the rest in small slices, between which it can be stopped.
///
/// # Errors
/// The model's features cannot be read, or a path or a feature contains a zero byte.
pub(crate) fn arguments(model: &Path) -> io::Result<Vec<CString>> {
    let paths = [("-hmm", "en-us"), ("-lm", "en-us.lm.bin"), ("-dict", DICTIONARY)];
    let paths = paths.map(|(name, file)| (name.to_owned(), model.join(file).into_os_string()));
    let fixed = SEARCH.into_iter().chain([("-featparams", "/dev/null"), ("-cmn", "none")]);
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.into()));
    let features = features(&std::fs::read_to_string(model.join(FEATURES))?);
    let pairs = paths.into_iter().chain(features).chain(fixed);
    let text = |text: &[u8]| CString::new(text).map_err(io::Error::from);
    pairs.flat_map(|(name, value)| [text(name.as_bytes()), text(value.as_bytes())]).collect()
}

/// Returns the names and values of a file of features, without those that the library only knows in such a file, and
/// without that of the mean.
fn features(text: &str) -> Vec<(String, OsString)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].into()));
    pairs.filter(|(name, _)| !["-cmn", "-model"].contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_was_replaced_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let dictionary = folder.path().join(DICTIONARY);
        std::fs::write(&dictionary, "one").unwrap();
        let before = fingerprint(folder.path());
        assert_eq!(fingerprint(folder.path()), before);
        std::fs::write(&dictionary, "other").unwrap();
        assert_ne!(fingerprint(folder.path()), before);
    }

    #[test]
    fn features_are_those_of_the_model_but_for_the_mean() {
        let found = features("-lowerf 130\n-cmn batch\n-model ptm\n-agc\tnone\n");
        assert_eq!(found, [("-lowerf".to_owned(), "130".into()), ("-agc".to_owned(), "none".into())]);
    }

    #[test]
    fn a_model_with_an_empty_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILES[0]), "").unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it is empty") && error.contains("pocketsphinx-en-us"), "{error}");
    }
}
