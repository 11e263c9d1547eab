//! Checks a model file of whisper.cpp: its header, its vocabulary, and that no tensor is missing or truncated. The form is
//! that which `whisper_model_load` of whisper.cpp reads (versions 1.8 and 1.9): numbers are little-endian, and nothing in
//! a file says how long it is.

use super::tensor_types::TensorType;
use crate::domain::escape;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// What a model file says about its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhisperModel {
    /// The size's name, as `base`; `None` for one that OpenAI has not published.
    pub size: Option<&'static str>,
    /// Whether it recognises other languages than English.
    pub is_multilingual: bool,
    /// How most of its numbers are stored, as `f16` and `q5_0`.
    pub numbers: &'static str,
    /// The length of the file.
    pub bytes: u64,
}

/// Why a file cannot be used as a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is a folder, not a file")]
    Folder,
    #[error("it is a pipe or a device, not a file")]
    Special,
    #[error("it is empty")]
    Empty,
    #[error("it is no model of whisper.cpp: {0}")]
    Foreign(&'static str),
    /// A number of the header that no model has.
    #[error("it is no model of whisper.cpp that is known, or it is damaged: its header says {what}")]
    Header { what: String },
    #[error("it is damaged: {what} at byte {at}")]
    Damaged { what: String, at: u64 },
    #[error("it is truncated: it has {bytes} bytes, and {what} needs {needed}; fetch it again")]
    Truncated { what: String, bytes: u64, needed: u64 },
    #[error("it is incomplete: it has {found} of {expected} tensors; fetch it again")]
    Incomplete { found: usize, expected: usize },
    #[error("it has a header and a vocabulary, but no weights: whisper.cpp uses such files for its own tests")]
    NoWeights,
}

/// The first four bytes, as a number: `ggml`.
const MAGIC: u32 = 0x6767_6d6c;

/// The numbers behind the magic.
const HEADER: [&str; 11] = [
    "words of the vocabulary",
    "audio positions",
    "audio width",
    "audio heads",
    "audio layers",
    "text positions",
    "text width",
    "text heads",
    "text layers",
    "frequency bands",
    "type of numbers",
];

/// The least and the most that is plausible for each of [`HEADER`]; the library allocates what they say. Published
/// models have at most 51,866 words, 1,500 positions, a width of 1,280, 20 heads, 32 layers and 128 bands. The type
/// carries the version of the quantization in thousands.
const PLAUSIBLE: [(i32, i32); 11] = [
    (50_257, 60_000),
    (1, 6_000),
    (8, 4_096),
    (1, 64),
    (1, 64),
    (1, 2_048),
    (8, 4_096),
    (1, 64),
    (1, 64),
    (1, 256),
    (0, 99_999),
];

/// From this number of words on a vocabulary has languages.
const MULTILINGUAL: i32 = 51_865;

/// The longest word of a vocabulary, and the longest name of a tensor, in bytes; those of Whisper have at most 256.
const LONGEST_TEXT: usize = 4_096;

/// Words that the library looks up, and without which it ends the process.
const NEEDED_WORDS: [&[u8]; 3] = [b" ", b" -", b" '"];

/// Reads a model file without loading it: a second for a file of a gigabyte on a disk, since it skips the weights.
///
/// # Errors
/// See [`ModelFileError`]; each says in one sentence what is wrong, to be put behind the file's name.
pub fn check(path: &Path) -> Result<WhisperModel, ModelFileError> {
    // Before it is opened: opening a pipe waits until somebody writes into it.
    let metadata = std::fs::metadata(path)?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => read(BufReader::new(File::open(path)?), metadata.len()),
        (false, true) => Err(ModelFileError::Folder),
        (false, false) => Err(ModelFileError::Special),
    }
}

/// As [`check`], for any source of `bytes` bytes.
pub(super) fn read(input: impl Read + Seek, bytes: u64) -> Result<WhisperModel, ModelFileError> {
    let mut reader = ModelReader { input, length: bytes, at: 0 };
    let start = reader.start()?;
    if start.is_empty() {
        return Err(ModelFileError::Empty);
    }
    if !start.starts_with(&MAGIC.to_le_bytes()) {
        return Err(ModelFileError::Foreign(foreign(&start)));
    }
    reader.seek_to(4)?;
    let header = reader.header()?;
    reader.skip_filters(header.bands())?;
    reader.check_vocabulary(header.words())?;
    let (found, numbers) = reader.tensors()?;
    match found {
        0 => return Err(ModelFileError::NoWeights),
        _ if found != header.tensors() => {
            return Err(ModelFileError::Incomplete { found, expected: header.tensors() });
        }
        _ => {}
    }
    Ok(WhisperModel { size: header.size(), is_multilingual: header.words() >= MULTILINGUAL, numbers, bytes })
}

/// Says what a file is that is no model of whisper.cpp.
fn foreign(start: &[u8]) -> &'static str {
    let is_text = |word: &[u8]| start.len() >= word.len() && start[..word.len()].eq_ignore_ascii_case(word);
    let has = |word: &[u8]| start.windows(word.len()).any(|part| part == word);
    match start {
        _ if start.starts_with(b"GGUF") => "it is a GGUF file; whisper.cpp reads files that are named ggml-….bin",
        _ if start.starts_with(b"PK\x03\x04") => {
            "it is a zip file, as PyTorch's checkpoints (.pt) are; whisper.cpp's convert-pt-to-ggml.py converts them"
        }
        _ if has(b"WhisperSpec") => "it is a model of CTranslate2 (faster-whisper)",
        _ if is_text(b"version https://git-lfs") => "it is a pointer of Git LFS; `git lfs pull` fetches the file",
        _ if is_text(b"<!doctype") || is_text(b"<html") => "it is a web page, not the file that it links to",
        _ if start.len() > 8 && start[8] == b'{' => {
            "it seems to be a safetensors file; whisper.cpp's convert-h5-to-ggml.py converts them"
        }
        _ if start.iter().all(|byte| *byte == 0) => "it begins with zeros; it was probably not fetched completely",
        _ => "it does not begin as one",
    }
}

struct ModelHeader([i32; 11]);

impl ModelHeader {
    fn words(&self) -> i32 {
        self.0[0]
    }

    fn bands(&self) -> i32 {
        self.0[9]
    }

    fn layers(&self) -> (i32, i32) {
        (self.0[4], self.0[8])
    }

    /// Returns the name of the size that OpenAI has given to models with so many layers.
    fn size(&self) -> Option<&'static str> {
        match (self.layers(), self.0[2]) {
            ((4, 4), 384) => Some("tiny"),
            ((6, 6), 512) => Some("base"),
            ((12, 12), 768) => Some("small"),
            ((24, 24), 1_024) => Some("medium"),
            ((32, 32), 1_280) => Some("large"),
            ((32, 4), 1_280) => Some("large-v3-turbo"),
            ((32, 2), 1_280) => Some("distil-large"),
            _ => None,
        }
    }

    /// Returns how many tensors the library expects: seven of the encoder and four of the decoder beside their layers.
    fn tensors(&self) -> usize {
        let (audio, text) = self.layers();
        (7 + 15 * audio + 4 + 24 * text).unsigned_abs() as usize
    }
}

struct ModelReader<R> {
    input: R,
    length: u64,
    at: u64,
}

impl<R: Read + Seek> ModelReader<R> {
    /// Returns the first bytes.
    fn start(&mut self) -> Result<Vec<u8>, ModelFileError> {
        let mut start = Vec::new();
        self.input.by_ref().take(256).read_to_end(&mut start)?;
        self.at = start.len() as u64;
        Ok(start)
    }

    fn seek_to(&mut self, at: u64) -> Result<(), ModelFileError> {
        self.input.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }

    /// Skips bytes that `what` consists of.
    fn skip(&mut self, bytes: u64, what: &str) -> Result<(), ModelFileError> {
        let needed = self.at.saturating_add(bytes);
        if needed > self.length {
            return Err(ModelFileError::Truncated { what: what.to_owned(), bytes: self.length, needed });
        }
        // Seeking relatively keeps what is buffered.
        self.input.seek_relative(i64::try_from(bytes).unwrap_or(i64::MAX))?;
        self.at = needed;
        Ok(())
    }

    fn number(&mut self, what: &str) -> Result<i32, ModelFileError> {
        let bytes = self.bytes(4, what)?;
        Ok(bytes.try_into().map_or(0, i32::from_le_bytes))
    }

    /// Reads a text behind its length.
    fn text(&mut self, what: &str) -> Result<Vec<u8>, ModelFileError> {
        let length = self.number(what)?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX), what)
    }

    fn bytes(&mut self, length: usize, what: &str) -> Result<Vec<u8>, ModelFileError> {
        if length > LONGEST_TEXT {
            return self.damaged(format!("a text of {length} bytes in {what}"));
        }
        let needed = self.at + length as u64;
        if needed > self.length {
            return Err(ModelFileError::Truncated { what: what.to_owned(), bytes: self.length, needed });
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        self.at = needed;
        Ok(bytes)
    }

    fn damaged<T>(&self, what: String) -> Result<T, ModelFileError> {
        Err(ModelFileError::Damaged { what, at: self.at })
    }

    fn header(&mut self) -> Result<ModelHeader, ModelFileError> {
        let mut header = [0; 11];
        for ((number, what), (least, most)) in header.iter_mut().zip(HEADER).zip(PLAUSIBLE) {
            *number = self.number("the header")?;
            if !(least..=most).contains(number) {
                return Err(ModelFileError::Header { what: format!("{number} for the {what}") });
            }
        }
        Ok(ModelHeader(header))
    }

    fn skip_filters(&mut self, bands: i32) -> Result<(), ModelFileError> {
        let (rows, columns) = (self.number("the filters")?, self.number("the filters")?);
        if rows != bands || !(1..=10_000).contains(&columns) {
            return self.damaged(format!("filters of {rows} times {columns} numbers"));
        }
        self.skip(u64::from(rows.unsigned_abs()) * u64::from(columns.unsigned_abs()) * 4, "the filters")
    }

    /// A vocabulary may have fewer words than the header says: the library makes up the marks that are missing.
    fn check_vocabulary(&mut self, most: i32) -> Result<(), ModelFileError> {
        let count = self.number("the vocabulary")?;
        if !(1..=most).contains(&count) {
            return self.damaged(format!("a vocabulary of {count} words"));
        }
        let mut needed = NEEDED_WORDS.to_vec();
        for _ in 0..count {
            let word = self.text("the vocabulary")?;
            needed.retain(|one| *one != word);
        }
        match needed.first() {
            Some(word) => {
                let word = String::from_utf8_lossy(word);
                self.damaged(format!("a vocabulary without `{word}`"))
            }
            None => Ok(()),
        }
    }

    /// Skips all tensors. Returns how many there are, and how the largest one is stored.
    fn tensors(&mut self) -> Result<(usize, &'static str), ModelFileError> {
        let (mut count, mut largest, mut numbers) = (0, 0, "f32");
        while self.at < self.length {
            let (bytes, stored) = self.tensor(count)?;
            if bytes > largest {
                (largest, numbers) = (bytes, stored);
            }
            count += 1;
        }
        Ok((count, numbers))
    }

    fn tensor(&mut self, count: usize) -> Result<(u64, &'static str), ModelFileError> {
        let what = format!("tensor {}", count + 1);
        let (dimensions, length, number) = (self.number(&what)?, self.number(&what)?, self.number(&what)?);
        let Some(stored) = TensorType::of(number) else {
            return self.damaged(format!("{what} has numbers of the type {number}, which is not known"));
        };
        if !(1..=4).contains(&dimensions) {
            return self.damaged(format!("{what} has {dimensions} dimensions"));
        }
        let mut size = Some(1_u64);
        for _ in 0..dimensions {
            let dimension = u64::try_from(self.number(&what)?).ok().filter(|dimension| *dimension > 0);
            size = size.zip(dimension).and_then(|(size, dimension)| size.checked_mul(dimension));
        }
        let name = self.bytes(usize::try_from(length).unwrap_or(usize::MAX), &what)?;
        let name = escape::line(&String::from_utf8_lossy(&name)).into_owned();
        let Some(bytes) = size.and_then(|size| stored.bytes_of(size)) else {
            return self.damaged(format!("the tensor `{name}` has an impossible size"));
        };
        self.skip(bytes, &format!("the tensor `{name}`"))?;
        Ok((bytes, stored.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    /// The header of a model of two layers, a filter and the words that are needed.
    fn head(words: &[&[u8]]) -> Vec<u8> {
        let numbers = [51_865, 4, 8, 1, 1, 4, 8, 1, 1, 1, 1, 1, 1];
        let mut file: Vec<u8> = MAGIC.to_le_bytes().into_iter().chain(numbers.map(i32::to_le_bytes).concat()).collect();
        file.extend(0.5_f32.to_le_bytes());
        file.extend(i32::try_from(words.len()).unwrap().to_le_bytes());
        for word in words {
            file.extend(i32::try_from(word.len()).unwrap().to_le_bytes());
            file.extend(*word);
        }
        file
    }

    fn tensor(name: &str, stored: i32, dimensions: &[i32], bytes: usize) -> Vec<u8> {
        let dimension_count = i32::try_from(dimensions.len()).unwrap();
        let numbers = [&[dimension_count, i32::try_from(name.len()).unwrap(), stored], dimensions].concat();
        let mut file: Vec<u8> = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        file.extend(name.as_bytes());
        file.extend(vec![7; bytes]);
        file
    }

    /// A whole file: 50 tensors, the first one is the largest.
    fn whole() -> Vec<u8> {
        let first = tensor("decoder.token_embedding.weight", 8, &[32, 2], 68);
        let others = (1..50).map(|number| tensor(&format!("tensor.{number}"), 0, &[2], 8));
        [head(&NEEDED_WORDS), first].into_iter().chain(others).collect::<Vec<_>>().concat()
    }

    fn outcome(file: &[u8]) -> Result<WhisperModel, String> {
        read(Cursor::new(file), file.len() as u64).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_file_says_what_it_is() {
        let file = whole();
        let expected = WhisperModel { size: None, is_multilingual: true, numbers: "q8_0", bytes: file.len() as u64 };
        assert_eq!(outcome(&file), Ok(expected));
        let english = [&file[..4], &51_864_i32.to_le_bytes(), &file[8..]].concat();
        assert!(!outcome(&english).unwrap().is_multilingual);
    }

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_refused() {
        let file = whole();
        for length in 0..file.len() {
            let error = outcome(&file[..length]).expect_err("a part is no model");
            let is_said = match length {
                0 => error == "it is empty",
                1..4 => error.contains("it is no model of whisper.cpp"),
                _ => error.contains("fetch it again") || error.contains("no weights"),
            };
            assert!(is_said, "{length} bytes: {error}");
        }
        let incomplete = outcome(&file[..file.len() - tensor("tensor.49", 0, &[2], 8).len()]);
        assert_eq!(incomplete.unwrap_err(), "it is incomplete: it has 49 of 50 tensors; fetch it again");
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let refused = |path: &str| check(Path::new(path)).unwrap_err().to_string();
        assert_eq!(refused("/dev/null"), "it is a pipe or a device, not a file");
        assert_eq!(refused("/"), "it is a folder, not a file");
    }

    #[test]
    fn files_of_other_programs_are_named() {
        let starts: [(&[u8], &str); 8] = [
            (b"GGUF\x03\0\0\0", "GGUF"),
            (b"PK\x03\x04", "PyTorch"),
            (b"\x06\0\0\0\x0c\0WhisperSpec\0", "CTranslate2"),
            (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
            (b"<!DOCTYPE html>", "a web page"),
            (b"\x20\0\0\0\0\0\0\0{\"x\":", "safetensors"),
            (&[0; 64], "begins with zeros"),
            (b"RIFF", "does not begin as one"),
        ];
        for (start, expected) in starts {
            let error = outcome(start).unwrap_err();
            assert!(error.starts_with("it is no model of whisper.cpp") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_would_end_the_process_is_refused() {
        let lacking = outcome(&head(&[b" ", b" -"])).unwrap_err();
        assert!(lacking.contains("a vocabulary without ` '`"), "{lacking}");
        let enormous = [head(&NEEDED_WORDS), tensor("huge", 0, &[i32::MAX, i32::MAX, i32::MAX], 8)].concat();
        assert!(outcome(&enormous).unwrap_err().contains("impossible size"));
        let unknown = [head(&NEEDED_WORDS), tensor("x\u{1b}[31m", 99, &[2], 8)].concat();
        assert!(outcome(&unknown).unwrap_err().contains("the type 99, which is not known"));
        let named = [head(&NEEDED_WORDS), tensor("x\u{1b}[31m", 0, &[0], 8)].concat();
        assert!(!outcome(&named).unwrap_err().contains('\u{1b}'));
        let mut wide = whole();
        wide[12..16].copy_from_slice(&1_000_000_i32.to_le_bytes());
        assert!(outcome(&wide).unwrap_err().contains("1000000 for the audio width"));
    }

    proptest! {
        #[test]
        fn no_damage_is_worse_than_an_error(at in 0..600_usize, bytes in prop::collection::vec(any::<u8>(), 1..8)) {
            let mut file = whole();
            let at = at.min(file.len() - bytes.len());
            file[at..at + bytes.len()].copy_from_slice(&bytes);
            let _ = outcome(&file);
            let _ = outcome(&bytes);
        }
    }
}
