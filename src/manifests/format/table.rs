//! Reads manifests that are tables: CSV and TSV as spreadsheets write them.

use super::quotes::{OpenQuote, Quotes};
use super::record::{Form, RawRow, RowError, normalize_column};
use super::text::{ByteOrderMark, Encoding, LimitedText, RowLimit, encoding, mark, text};
use csv::{ByteRecord, ReaderBuilder};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The callback for each row; it may stop the reading.
pub type OnRow<'a> = &'a mut dyn FnMut(RawRow, Option<RowError>) -> ControlFlow<()>;

/// Reads a table. `tabs` is whether its cells are always separated by tabs. Blocks.
///
/// # Errors
/// Returns the reason why nothing of the manifest is used.
pub fn read(file: File, tabs: bool, on_row: OnRow<'_>) -> Result<Form, String> {
    let encoding = encoding(&file).map_err(|error| error.to_string())?;
    // The receipt of a windows-1252 manifest gets the mark of UTF-8: the same spreadsheet opens it, and it contains
    // characters that windows-1252 does not have.
    let is_marked = mark(&file).map_err(|error| error.to_string())? == ByteOrderMark::Spreadsheet;
    let marked = is_marked || encoding == Encoding::Windows1252;
    let (limit, read_error) =
        (RowLimit::default(), |error: &dyn std::fmt::Display| format!("cannot read the file: {error}"));
    let (head, rest) =
        head(LimitedText::new(text(file, encoding), limit.clone())).map_err(|error| read_error(&error))?;
    let (skipped, delimiter) = delimiter(&head, tabs);
    let input = Cursor::new(head[skipped..].to_vec()).chain(rest);
    let open = OpenQuote::default();
    let input = Quotes::new(input, delimiter, 1 + u64::from(skipped > 0), open.clone());
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).has_headers(false).from_reader(input);
    let mut record = ByteRecord::new();
    let mut columns: Option<Vec<Arc<str>>> = None;
    let mut number = u64::from(skipped > 0);
    loop {
        let before = reader.position().line();
        let has_record = reader.read_byte_record(&mut record).map_err(|error| read_error(&error))?;
        limit.row_ended();
        if !has_record {
            if let Some(line) = open.line() {
                return Err(unclosed(line));
            }
            break;
        }
        number += 1 + blank_lines(&record, reader.position().line().saturating_sub(before));
        let is_blank = record.iter().all(|cell| cell.trim_ascii().is_empty());
        match &columns {
            _ if is_blank => {}
            None => columns = Some(header(&record)?),
            Some(columns) => {
                let (record, wrong) = row(columns, &record, number, encoding);
                if on_row(record, wrong).is_break() {
                    break;
                }
            }
        }
    }
    let columns =
        columns.ok_or("the file is empty: its first row must name the columns, one of them `file` or `url`")?;
    Ok(Form { columns, delimiter, marked, encoding })
}

fn unclosed(line: u64) -> String {
    format!(
        "a quote that opens in line {line} of it is never closed, so that the rest of the file is one cell: close \
         it, double it, or save the manifest again"
    )
}

/// Returns how many of the lines that were read for a row were blank: the csv crate skips them, but they count in row
/// numbers.
fn blank_lines(record: &ByteRecord, lines: u64) -> u64 {
    let within = record.iter().flatten().filter(|byte| **byte == b'\n').count() as u64;
    lines.saturating_sub(within + 1)
}

type Rest<R> = BufReader<R>;

/// Reads the first row and returns it with the reader of the rest. A `sep=` line before the row is included.
fn head<R: Read>(reader: R) -> io::Result<(Vec<u8>, Rest<R>)> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let mut head = Vec::new();
    loop {
        let at = head.len();
        reader.read_until(b'\n', &mut head)?;
        // Spreadsheets may declare the delimiter in a line of its own, and a header may have line breaks within quotes.
        let quotes = head.iter().filter(|byte| **byte == b'"').count();
        let says_delimiter = head[at..].to_ascii_lowercase().starts_with(b"sep=");
        if head.len() == at || (quotes.is_multiple_of(2) && !says_delimiter) {
            return Ok((head, reader));
        }
    }
}

/// Returns the length of the line that declares the delimiter, and the delimiter.
fn delimiter(head: &[u8], tabs: bool) -> (usize, u8) {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.len() >= 5 && line[..4].eq_ignore_ascii_case(b"sep=") {
        return (line.len() + 1, line[4]);
    }
    if tabs {
        return (0, b'\t');
    }
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    let mut quoted = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b',' | b';' | b'\t' | b'|' if !quoted => *counts.entry(*byte).or_default() += 1,
            _ => {}
        }
    }
    let most = counts.into_iter().max_by_key(|(byte, count)| (*count, *byte == b','));
    (0, most.map_or(b',', |(byte, _)| byte))
}

fn header(record: &ByteRecord) -> Result<Vec<Arc<str>>, String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut columns = Vec::new();
    for (number, cell) in record.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(cell) else {
            return Err(format!("the name of column {} is not UTF-8: save the file as \"CSV UTF-8\"", number + 1));
        };
        let name = name.trim();
        if let Some(first) = seen.insert(normalize_column(name), number).filter(|_| !name.is_empty()) {
            return Err(format!(
                "columns {} and {} are both named `{name}`: rename one of them",
                first + 1,
                number + 1
            ));
        }
        columns.push(Arc::from(name));
    }
    Ok(columns)
}

fn row(columns: &[Arc<str>], record: &ByteRecord, number: u64, encoding: Encoding) -> (RawRow, Option<RowError>) {
    let has_extra_cells = record.iter().skip(columns.len()).any(|cell| !cell.trim_ascii().is_empty());
    let wrong = has_extra_cells.then(|| RowError {
        row: number,
        column: None,
        what: format!(
            "it has {} cells, but the header names {}: put cells that contain the delimiter in quotes",
            record.len(),
            columns.len()
        ),
    });
    let cell = |at: usize| record.get(at).unwrap_or_default().to_vec();
    let cells = columns.iter().enumerate().map(|(at, name)| (Arc::clone(name), cell(at))).collect();
    (RawRow { number, cells, encoding }, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn read_all(bytes: &[u8]) -> Result<(Vec<String>, Form), String> {
        let mut rows = Vec::new();
        let form = read(file(bytes), false, &mut |record, wrong| {
            let cells = record.cells.iter().map(|(name, cell)| format!("{name}={}", String::from_utf8_lossy(cell)));
            let wrong = wrong.map(|wrong| format!(" ! {wrong}")).unwrap_or_default();
            rows.push(format!("{}: {}{wrong}", record.number, cells.collect::<Vec<_>>().join(" ")));
            ControlFlow::Continue(())
        })?;
        Ok((rows, form))
    }

    fn utf16(text: &str) -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn what_spreadsheets_save_is_one_table() {
        let expected = ["2: file=a b.wav language=de", "4: file=Café.wav language=fr"];
        let plain = "file,language\r\na b.wav,de\r\n\r\nCafé.wav,fr\r\n";
        let forms: [(Vec<u8>, u8, bool); 6] = [
            (plain.into(), b',', false),
            (format!("\u{feff}{}", plain.replace(',', ";")).into(), b';', true),
            (utf16(&plain.replace(',', "\t")), b'\t', true),
            (plain.replace("\r\n", "\n").into(), b',', false),
            ("\"file\";\"language\"\n\"a b.wav\";\"de\"\n;\n\"Café.wav\";fr".into(), b';', false),
            (plain.replace("language", " language ").into(), b',', false),
        ];
        for (bytes, delimiter, marked) in forms {
            let (rows, form) = read_all(&bytes).unwrap();
            assert_eq!(rows, expected, "{:?}", String::from_utf8_lossy(&bytes));
            assert_eq!((form.delimiter, form.marked), (delimiter, marked));
        }
    }

    #[test]
    fn what_is_no_utf8_is_windows_1252_unless_some_of_it_is() {
        let (rows, form) = read_all(b"Datei;file\r\nM\xfcller \x84x\x93;M\xfcller.wav\r\n").unwrap();
        assert_eq!(rows, ["2: Datei=M\u{fc}ller \u{201e}x\u{201c} file=M\u{fc}ller.wav"]);
        assert_eq!((form.encoding, form.marked, form.delimiter), (Encoding::Windows1252, true, b';'));
        let (_, form) = read_all(b"file;M\xfcller\n").unwrap();
        assert_eq!(&*form.columns[1], "M\u{fc}ller", "also in the header");
        let mixed = [b"file;note\nM\xfcller.wav;".as_slice(), "M\u{fc}ller\n".as_bytes()].concat();
        assert_eq!(read_all(&mixed).unwrap().1.encoding, Encoding::Utf8, "the name of a file may be no text");
        // The character lies where one read of the file ends.
        for letter in ["\u{fc}".as_bytes(), b"\xfc", "\u{20ac}".as_bytes()] {
            let head = b"file\n".to_vec();
            for before in (1 << 16) - head.len() - 4..(1 << 16) - head.len() {
                let text = [head.clone(), vec![b'a'; before], letter.to_vec(), b".wav\n".to_vec()].concat();
                let is_utf8 = letter.len() > 1;
                assert_eq!(read_all(&text).unwrap().1.encoding == Encoding::Utf8, is_utf8, "{before}");
            }
        }
    }

    #[test]
    fn a_line_may_say_the_delimiter_and_quotes_hold_anything() {
        let (rows, _) = read_all(b"sep=;\r\nfile;note\r\na,b.wav;\"x;\"\"y\"\"\r\nz\"\r\n").unwrap();
        assert_eq!(rows, ["3: file=a,b.wav note=x;\"y\"\r\nz"]);
    }

    #[test]
    fn a_row_of_another_length_is_told_and_the_others_go_on() {
        let (rows, _) = read_all(b"file,note\na.wav\nb.wav,x,,\nc.wav,x,y\nd.wav,z\n").unwrap();
        assert_eq!(rows[0], "2: file=a.wav note=");
        assert_eq!(rows[1], "3: file=b.wav note=x");
        assert!(rows[2].contains("! row 4: it has 3 cells, but the header names 2"), "{}", rows[2]);
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn what_cannot_be_believed_is_told() {
        assert!(read_all(b"").unwrap_err().contains("empty"));
        assert!(read_all(b"File,x, file\n").unwrap_err().contains("columns 1 and 3 are both named `file`"));
        assert!(read_all(b"\xe9t\xe9,\xc3\xa9\n").unwrap_err().contains("CSV UTF-8"));
        let endless = [b"file,note\na,\"".to_vec(), b"x\n".repeat(1 << 21)].concat();
        assert!(read_all(&endless).unwrap_err().contains("quote"));
    }
}
