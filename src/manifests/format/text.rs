//! Decodes the text of a manifest, whatever program saved it: UTF-8 with or without a byte order mark, UTF-16 as
//! spreadsheets save it, or windows-1252. Invalid bytes stay as they are, because a file name may contain them.

use encoding_rs::WINDOWS_1252;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// The longest row, in bytes: otherwise a quote that is never closed would include the rest of the file.
pub const LONGEST_ROW: u64 = 1 << 20;

/// The byte order mark at the start of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrderMark {
    None,
    /// The mark of UTF-8 or UTF-16: a spreadsheet saved the file and will open its receipt.
    Spreadsheet,
}

/// Returns the byte order mark of a file without moving its position.
pub fn mark(file: &File) -> io::Result<ByteOrderMark> {
    use std::os::unix::fs::FileExt;
    let mut start = [0; 3];
    let n = file.read_at(&mut start, 0)?;
    Ok(match &start[..n] {
        [0xef, 0xbb, 0xbf] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ByteOrderMark::Spreadsheet,
        _ => ByteOrderMark::None,
    })
}

/// The character encoding of a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or what the byte order mark says.
    #[default]
    Utf8,
    /// The encoding in which Western European spreadsheets save "CSV" (code page 1252, "ANSI").
    Windows1252,
}

impl Encoding {
    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// Returns the bytes of a text in this encoding.
    pub fn bytes_of(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Windows1252 => WINDOWS_1252.encode(text).0.into_owned(),
        }
    }
}

/// Determines the encoding of a table. A file with invalid UTF-8 and without any non-ASCII character in valid UTF-8 is
/// windows-1252. With both, it is UTF-8 and contains file names that are not UTF-8. Reads the file at most once,
/// without moving its position.
pub fn encoding(file: &File) -> io::Result<Encoding> {
    use std::os::unix::fs::FileExt;
    if mark(file)? == ByteOrderMark::Spreadsheet {
        return Ok(Encoding::Utf8);
    }
    let mut seen = Letters::default();
    let (mut buffer, mut carried, mut at) = (vec![0; 1 << 16], 0, 0);
    loop {
        let n = file.read_at(&mut buffer[carried..], at)?;
        at += n as u64;
        let rest = seen.scan(&buffer[..carried + n], n == 0);
        let length = carried + n;
        buffer.copy_within(length - rest..length, 0);
        carried = rest;
        if n == 0 || seen.is_decided() {
            return Ok(if seen.non_utf8 && !seen.utf8 { Encoding::Windows1252 } else { Encoding::Utf8 });
        }
    }
}

/// The kinds of non-ASCII bytes that were found.
#[derive(Default)]
struct Letters {
    utf8: bool,
    non_utf8: bool,
}

impl Letters {
    fn is_decided(&self) -> bool {
        self.utf8 && self.non_utf8
    }

    /// Examines the next bytes and returns how many at their end may be the start of a character.
    fn scan(&mut self, mut bytes: &[u8], is_end: bool) -> usize {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    self.utf8 |= !text.is_ascii();
                    return 0;
                }
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            self.utf8 |= !valid.is_ascii();
            match error.error_len() {
                None if !is_end => return rest.len(),
                None => {
                    self.non_utf8 = true;
                    return 0;
                }
                Some(wrong) => {
                    self.non_utf8 = true;
                    bytes = &rest[wrong..];
                }
            }
        }
    }
}

/// Returns a reader of the file's text as UTF-8, without its byte order mark. Bytes that are invalid in its encoding
/// stay as they are.
pub fn text(file: File, encoding: Encoding) -> DecodeReaderBytes<File, Vec<u8>> {
    let encoding = (encoding == Encoding::Windows1252).then_some(WINDOWS_1252);
    DecodeReaderBytesBuilder::new().encoding(encoding).bom_override(true).strip_bom(true).build(file)
}

/// Counts the bytes that are read for one row, to limit them.
#[derive(Clone, Default)]
pub struct RowLimit(Rc<Cell<u64>>);

impl RowLimit {
    /// Starts counting for the next row.
    pub fn row_ended(&self) {
        self.0.set(0);
    }
}

/// A reader that fails if a row is too long.
pub struct LimitedText<R> {
    inner: R,
    limit: RowLimit,
}

impl<R> LimitedText<R> {
    pub fn new(inner: R, limit: RowLimit) -> Self {
        Self { inner, limit }
    }
}

impl<R: Read> Read for LimitedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let read = self.limit.0.get() + n as u64;
        self.limit.0.set(read);
        if read > 2 * LONGEST_ROW {
            return Err(io::Error::other("a row of the file is longer than 1 MB: a quote (\") may be missing"));
        }
        Ok(n)
    }
}
