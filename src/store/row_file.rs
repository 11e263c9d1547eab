//! A file with the rows of a queue as they are stored: a line that names the format; then for each row the lengths of
//! its key and its value, four bytes each, and both; then a key of no length, and the number of rows in eight bytes.
//! Numbers are big-endian.

use std::io::{self, Read, Write};

const FIRST_LINE: &[u8] = b"scribed-rows 1\n";

/// The longest key that is read. Those of the queue are far shorter.
const LONGEST_KEY: u32 = 1 << 10;

/// The longest value that is read. The queue stores none that is longer than a few KiB.
const LONGEST_VALUE: u32 = 1 << 20;

/// A row as it is stored: its value has a format, a checksum and JSON (`store/sled/encoding.rs`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBytes {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Writes such a file.
pub struct RowFileWriter<'w> {
    to: &'w mut dyn Write,
    rows: u64,
}

impl<'w> RowFileWriter<'w> {
    pub fn begin(to: &'w mut dyn Write) -> io::Result<Self> {
        to.write_all(FIRST_LINE)?;
        Ok(Self { to, rows: 0 })
    }

    pub fn put(&mut self, row: &RowBytes) -> io::Result<()> {
        self.number(row.key.len())?;
        self.number(row.value.len())?;
        self.to.write_all(&row.key)?;
        self.to.write_all(&row.value)?;
        self.rows += 1;
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.number(0)?;
        self.to.write_all(&self.rows.to_be_bytes())?;
        self.to.flush()
    }

    fn number(&mut self, length: usize) -> io::Result<()> {
        let length = u32::try_from(length).map_err(io::Error::other)?;
        self.to.write_all(&length.to_be_bytes())
    }
}

/// Reads such a file.
pub struct RowFileReader<R> {
    from: R,
    rows: u64,
}

impl<R: Read> RowFileReader<R> {
    /// # Errors
    /// An error of the file system; `InvalidData` if it is no such file.
    pub fn begin(mut from: R) -> io::Result<Self> {
        let mut line = [0; FIRST_LINE.len()];
        from.read_exact(&mut line)?;
        if line == *FIRST_LINE {
            Ok(Self { from, rows: 0 })
        } else {
            Err(invalid("it does not begin as such a file does"))
        }
    }

    /// Returns the next row; `None` after the last one.
    ///
    /// # Errors
    /// An error of the file system; `UnexpectedEof` or `InvalidData` if the file is incomplete or damaged.
    pub fn next_row(&mut self) -> io::Result<Option<RowBytes>> {
        let key = self.number()?;
        if key == 0 {
            let mut rows = [0; 8];
            self.from.read_exact(&mut rows)?;
            return match u64::from_be_bytes(rows) == self.rows {
                true => Ok(None),
                false => Err(invalid("it lacks rows: its end counts others")),
            };
        }
        let value = self.number()?;
        if key > LONGEST_KEY || value > LONGEST_VALUE {
            return Err(invalid("a row is longer than any row of a queue"));
        }
        let (key, value) = (self.bytes(key)?, self.bytes(value)?);
        self.rows += 1;
        Ok(Some(RowBytes { key, value }))
    }

    fn number(&mut self) -> io::Result<u32> {
        let mut number = [0; 4];
        self.from.read_exact(&mut number)?;
        Ok(u32::from_be_bytes(number))
    }

    fn bytes(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn invalid(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<RowBytes> {
        [("a", "1"), ("b", ""), ("c", "333")]
            .map(|(key, value)| RowBytes { key: key.into(), value: value.into() })
            .into()
    }

    fn written() -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = RowFileWriter::begin(&mut file).unwrap();
        rows().iter().for_each(|row| writer.put(row).unwrap());
        writer.finish().unwrap();
        file
    }

    fn read(file: &[u8]) -> io::Result<Vec<RowBytes>> {
        let mut reader = RowFileReader::begin(file)?;
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row()? {
            rows.push(row);
        }
        Ok(rows)
    }

    #[test]
    fn rows_come_back_and_no_part_of_a_file_passes_for_a_whole_one() {
        let file = written();
        assert_eq!(read(&file).unwrap(), rows());
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "{length}");
        }
        let mut fewer = file.clone();
        *fewer.last_mut().unwrap() = 2;
        assert!(read(&fewer).unwrap_err().to_string().contains("lacks rows"));
        assert!(read(b"something else of this length").is_err());
    }
}
