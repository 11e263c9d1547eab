//! Whether the quotes of a table are closed (RFC 4180): one that is not takes in every row behind it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The line in which a quote was opened that is not closed yet; none where all are.
#[derive(Clone, Default)]
pub struct OpenQuote(Rc<Cell<Option<u64>>>);

impl OpenQuote {
    /// The line of its quote, from 1, as of what was read so far.
    pub fn line(&self) -> Option<u64> {
        self.0.get()
    }
}

/// Bytes of a table that are watched as they are read.
pub struct Quotes<R> {
    inner: R,
    delimiter: u8,
    at: At,
    line: u64,
    open: OpenQuote,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote in a quoted cell: its end, or the first of two.
    Behind,
}

impl<R> Quotes<R> {
    /// Nothing is read yet; `line` is the first one's number.
    pub fn new(inner: R, delimiter: u8, line: u64, open: OpenQuote) -> Self {
        Self { inner, delimiter, at: At::Start, line, open }
    }

    fn pass(&mut self, byte: u8) {
        let ends = byte == self.delimiter || matches!(byte, b'\n' | b'\r');
        self.at = match (self.at, byte) {
            (At::Quoted, b'"') => At::Behind,
            (At::Start, b'"') => {
                self.open.0.set(Some(self.line));
                At::Quoted
            }
            (At::Behind, b'"') | (At::Quoted, _) => At::Quoted,
            _ if ends => At::Start,
            _ => At::Plain,
        };
        self.line += u64::from(byte == b'\n');
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        buffer[..n].iter().for_each(|byte| self.pass(*byte));
        if self.at != At::Quoted {
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
        /// Whatever the csv crate writes has all its quotes closed.
        #[test]
        fn what_is_written_is_closed(rows: Vec<[String; 2]>) {
            let mut writer = csv::WriterBuilder::new().delimiter(b';').from_writer(Vec::new());
            rows.iter().for_each(|row| writer.write_record(row).unwrap());
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            proptest::prop_assert_eq!(open(&text), None);
        }
    }
}
