//! The text of a manifest, whatever program saved it: UTF-8 with or without its mark, or UTF-16 as spreadsheets
//! save it. Bytes that are no text stay as they are: a file's name may have them.

use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// No row is longer, in bytes: a quote that is never closed would take in the rest of the file.
pub const LONGEST_ROW: u64 = 1 << 20;

/// How a manifest's text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As text should.
    None,
    /// With the mark of UTF-8, or as UTF-16: it was saved by a spreadsheet, and is opened by one.
    Spreadsheet,
}

/// What a file begins with. Leaves it where it was.
///
/// # Errors
/// What the file system says.
pub fn mark(file: &File) -> io::Result<Mark> {
    use std::os::unix::fs::FileExt;
    let mut start = [0; 3];
    let n = file.read_at(&mut start, 0)?;
    Ok(match &start[..n] {
        [0xef, 0xbb, 0xbf] | [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Mark::Spreadsheet,
        _ => Mark::None,
    })
}

/// The text of a file as UTF-8, without its mark.
pub fn text(file: File) -> DecodeReaderBytes<File, Vec<u8>> {
    DecodeReaderBytesBuilder::new().bom_override(true).strip_bom(true).build(file)
}

/// A limit on what is read for one row.
#[derive(Clone, Default)]
pub struct Gauge(Rc<Cell<u64>>);

impl Gauge {
    /// A row has been read whole.
    pub fn row_ended(&self) {
        self.0.set(0);
    }
}

/// Text that is read row by row.
pub struct Gauged<R> {
    inner: R,
    gauge: Gauge,
}

impl<R> Gauged<R> {
    /// Nothing is read yet.
    pub fn new(inner: R, gauge: Gauge) -> Self {
        Self { inner, gauge }
    }
}

impl<R: Read> Read for Gauged<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let read = self.gauge.0.get() + n as u64;
        self.gauge.0.set(read);
        if read > 2 * LONGEST_ROW {
            return Err(io::Error::other("it has a row of more than 1 MB: a quote (\") may be missing"));
        }
        Ok(n)
    }
}
