//! Finds quotes in a table that are never closed (RFC 4180): such a quote turns all following rows into one cell.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The line of the quote that is open now; `None` if all quotes are closed.
#[derive(Clone, Default)]
pub struct OpenQuote(Rc<Cell<Option<u64>>>);

impl OpenQuote {
    /// Returns the line of the open quote, from 1, after what was read so far.
    pub fn line(&self) -> Option<u64> {
        self.0.get()
    }
}

/// A reader that tracks the quotes of a table as it is read.
pub struct Quotes<R> {
    inner: R,
    delimiter: u8,
    state: CellState,
    line: u64,
    open: OpenQuote,
}

#[derive(Clone, Copy, PartialEq)]
enum CellState {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted cell: the end of the cell, or the first of two quotes.
    AfterQuote,
}

impl<R> Quotes<R> {
    /// Returns a reader that has read nothing; `line` is the number of its first line.
    pub fn new(inner: R, delimiter: u8, line: u64, open: OpenQuote) -> Self {
        Self { inner, delimiter, state: CellState::Start, line, open }
    }

    fn observe(&mut self, byte: u8) {
        let ends = byte == self.delimiter || matches!(byte, b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (CellState::Quoted, b'"') => CellState::AfterQuote,
            (CellState::Start, b'"') => {
                self.open.0.set(Some(self.line));
                CellState::Quoted
            }
            (CellState::AfterQuote, b'"') | (CellState::Quoted, _) => CellState::Quoted,
            _ if ends => CellState::Start,
            _ => CellState::Plain,
        };
        self.line += u64::from(byte == b'\n');
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        buffer[..n].iter().for_each(|byte| self.observe(*byte));
        if self.state != CellState::Quoted {
            self.open.0.set(None);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Option<u64> {
        let quote = OpenQuote::default();
        let mut all = Vec::new();
        Quotes::new(text.as_bytes(), b';', 1, quote.clone()).read_to_end(&mut all).unwrap();
        assert_eq!(all, text.as_bytes());
        quote.line()
    }

    #[test]
    fn a_quote_that_is_never_closed_is_known_by_its_line() {
        for closed in ["", "a;b\n", "\"a\"\n", "\"a;\n\"\"b\"\"\";c\n", "5\" tape;b\n", "\"a\"b;\"c\"", "a;\"\"\n"] {
            assert_eq!(open(closed), None, "{closed}");
        }
        assert_eq!(open("file;note\nt1;fine\nt2;\"Ada said\nt3;x\n"), Some(3));
        assert_eq!(open("\"a\";\"b\nc\"\"\n"), Some(1));
        assert_eq!(open("a\n\""), Some(2));
    }

    proptest::proptest! {
        /// The csv crate closes all quotes of what it writes.
        #[test]
        fn what_is_written_is_closed(rows: Vec<[String; 2]>) {
            let mut writer = csv::WriterBuilder::new().delimiter(b';').from_writer(Vec::new());
            rows.iter().for_each(|row| writer.write_record(row).unwrap());
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            proptest::prop_assert_eq!(open(&text), None);
        }
    }
}
