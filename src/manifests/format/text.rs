//! The text of a manifest, whatever program saved it: UTF-8 with or without its mark, or UTF-16 as spreadsheets
//! save it. Bytes that are no text stay as they are: a file's name may have them.

use encoding_rs::WINDOWS_1252;
use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// No row is longer, in bytes: a quote that is never closed would take in the rest of the file.
pub const LONGEST_ROW: u64 = 1 << 20;

/// How a manifest's text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrderMark {
    None,
    /// With the mark of UTF-8, or as UTF-16: it was saved by a spreadsheet, and is opened by one.
    Spreadsheet,
}

/// What a file begins with. Leaves it where it was.
///
/// # Errors
/// What the file system says.
pub fn mark(file: &File) -> io::Result<ByteOrderMark> {
    use std::os::unix::fs::FileExt;
    let mut start = [0; 3];
    let n = file.read_at(&mut start, 0)?;
    Ok(match &start[..n] {
        [0xef, 0xbb, 0xbf] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ByteOrderMark::Spreadsheet,
        _ => ByteOrderMark::None,
    })
}

/// How the letters of a manifest are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As text should, or as its mark says.
    #[default]
    Utf8,
    /// As Western European spreadsheets save "CSV" (code page 1252, "ANSI").
    Windows1252,
}

impl Encoding {
    /// For people and machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// What a text would be in a file of this encoding.
    pub fn bytes_of(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Windows1252 => WINDOWS_1252.encode(text).0.into_owned(),
        }
    }
}

/// Finds out how a table is written. Valid UTF-8 is UTF-8. What is not, and has no letter in UTF-8 either, is
/// windows-1252. With both, it is UTF-8 and names files whose names are none. Reads the file once, and leaves it where
/// it was.
///
/// # Errors
/// What the file system says.
pub fn encoding(file: &File) -> io::Result<Encoding> {
    use std::os::unix::fs::FileExt;
    if mark(file)? == ByteOrderMark::Spreadsheet {
        return Ok(Encoding::Utf8);
    }
    let mut seen = Letters::default();
    let (mut buffer, mut kept, mut at) = (vec![0; 1 << 16], 0, 0);
    loop {
        let n = file.read_at(&mut buffer[kept..], at)?;
        at += n as u64;
        let rest = seen.take(&buffer[..kept + n], n == 0);
        let length = kept + n;
        buffer.copy_within(length - rest..length, 0);
        kept = rest;
        if n == 0 || seen.is_decided() {
            return Ok(if seen.other && !seen.utf8 { Encoding::Windows1252 } else { Encoding::Utf8 });
        }
    }
}

/// Which letters beyond ASCII were seen.
#[derive(Default)]
struct Letters {
    utf8: bool,
    other: bool,
}

impl Letters {
    fn is_decided(&self) -> bool {
        self.utf8 && self.other
    }

    /// Looks at the next bytes; how many at their end may be the start of a letter.
    fn take(&mut self, mut bytes: &[u8], is_end: bool) -> usize {
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
                    self.other = true;
                    return 0;
                }
                Some(wrong) => {
                    self.other = true;
                    bytes = &rest[wrong..];
                }
            }
        }
    }
}

/// The text of a file as UTF-8, without its mark. What is no text of its encoding stays as it is.
pub fn text(file: File, encoding: Encoding) -> DecodeReaderBytes<File, Vec<u8>> {
    let encoding = (encoding == Encoding::Windows1252).then_some(WINDOWS_1252);
    DecodeReaderBytesBuilder::new().encoding(encoding).bom_override(true).strip_bom(true).build(file)
}

/// A limit on what is read for one row.
#[derive(Clone, Default)]
pub struct RowLimit(Rc<Cell<u64>>);

impl RowLimit {
    /// A row has been read whole.
    pub fn row_ended(&self) {
        self.0.set(0);
    }
}

/// Text that is read row by row.
pub struct LimitedText<R> {
    inner: R,
    gauge: RowLimit,
}

impl<R> LimitedText<R> {
    /// Nothing is read yet.
    pub fn new(inner: R, gauge: RowLimit) -> Self {
        Self { inner, gauge }
    }
}

impl<R: Read> Read for LimitedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let read = self.gauge.0.get() + n as u64;
        self.gauge.0.set(read);
        if read > 2 * LONGEST_ROW {
            return Err(io::Error::other("a row of the file is longer than 1 MB: a quote (\") may be missing"));
        }
        Ok(n)
    }
}
