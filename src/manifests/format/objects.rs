//! Reads manifests in JSON: one list of objects, or one object a line.

use super::record::{Form, RawRow, RowError};
use super::table::OnRow;
use super::text::{Encoding, LONGEST_ROW, LimitedText, RowLimit, text};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most columns that a receipt repeats. An object with more keys contains data, not columns.
const MAX_COLUMNS: usize = 256;

/// Reads a list of objects. Blocks.
///
/// # Errors
/// Returns the reason why nothing of the manifest is used.
pub fn read_list(file: File, on_row: OnRow<'_>) -> Result<Form, String> {
    let limit = RowLimit::default();
    let mut rows = Rows { number: 0, names: BTreeSet::new(), limit: limit.clone(), on_row };
    let text = LimitedText::new(text(file, Encoding::Utf8), limit);
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(text));
    let read = deserializer.deserialize_seq(&mut rows).and_then(|ended| match ended {
        ControlFlow::Continue(()) => deserializer.end(),
        ControlFlow::Break(()) => Ok(()),
    });
    match read {
        Ok(()) => Ok(rows.form()),
        Err(_) if rows.number == u64::MAX => Ok(rows.form()),
        Err(error) => Err(format!("the file is not a list of objects ([{{…}}, …]): {error}")),
    }
}

/// Reads one object a line. Blocks.
///
/// # Errors
/// Returns the file system's error, or that a line is too long.
pub fn read_lines(file: File, on_row: OnRow<'_>) -> Result<Form, String> {
    let mut rows = Rows { number: 0, names: BTreeSet::new(), limit: RowLimit::default(), on_row };
    let mut lines = BufReader::new(text(file, Encoding::Utf8));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(LONGEST_ROW).read_until(b'\n', &mut line);
        match read.map_err(|error| format!("cannot read the file: {error}"))? {
            0 => return Ok(rows.form()),
            n if n as u64 == LONGEST_ROW => return Err("a line of the file is longer than 1 MB".to_owned()),
            _ => {}
        }
        rows.number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let flow = match serde_json::from_slice::<Value>(&line) {
            Ok(value) => rows.report(value),
            Err(error) => rows.report_error(format!("it is not a JSON object: {error}")),
        };
        if flow.is_break() {
            return Ok(rows.form());
        }
    }
}

struct Rows<'a> {
    number: u64,
    names: BTreeSet<String>,
    /// Limits the bytes that are read for one object.
    limit: RowLimit,
    on_row: OnRow<'a>,
}

impl Rows<'_> {
    fn report(&mut self, value: Value) -> ControlFlow<()> {
        match value {
            Value::Object(object) => self.report_object(object),
            other => self.report_error(format!("it must be an object, but is {}", kind(&other))),
        }
    }

    fn report_object(&mut self, object: Map<String, Value>) -> ControlFlow<()> {
        let (mut cells, mut wrong) = (Vec::new(), None);
        for (name, value) in object {
            if self.names.len() < MAX_COLUMNS && !self.names.contains(&name) {
                self.names.insert(name.clone());
            }
            match cell(value) {
                Ok(text) => cells.push((Arc::from(name), text.into_bytes())),
                Err(found) => {
                    let what = format!("must be a string, a number, true, false or a list of strings, but is {found}");
                    wrong.get_or_insert(RowError { row: self.number, column: Some(name), what });
                }
            }
        }
        (self.on_row)(RawRow { number: self.number, cells, encoding: Encoding::Utf8 }, wrong)
    }

    fn report_error(&mut self, what: String) -> ControlFlow<()> {
        let wrong = RowError { row: self.number, column: None, what };
        (self.on_row)(RawRow { number: self.number, cells: Vec::new(), encoding: Encoding::Utf8 }, Some(wrong))
    }

    fn form(&self) -> Form {
        Form {
            columns: self.names.iter().map(|name| Arc::from(name.as_str())).collect(),
            delimiter: b',',
            marked: false,
            encoding: Encoding::Utf8,
        }
    }
}

/// Converts a value to the text of a cell; a list gets one line for each element.
fn cell(value: Value) -> Result<String, &'static str> {
    Ok(match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text,
        Value::Array(list) => {
            let texts = list.into_iter().map(|element| match element {
                Value::String(text) => Ok(text),
                Value::Number(number) => Ok(number.to_string()),
                other => Err(kind(&other)),
            });
            texts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        other => return Err(kind(&other)),
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'de> Visitor<'de> for &mut Rows<'_> {
    type Value = ControlFlow<()>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of objects")
    }

    /// Reads one element at a time, because the list may be larger than memory.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(value) = list.next_element_seed(ElementSeed)? {
            self.number += 1;
            self.limit.row_ended();
            if self.report(value).is_break() {
                // The rest is not read. This number tells [`read_list`] that the error is not one of the file.
                self.number = u64::MAX;
                return Err(serde::de::Error::custom("the reader of the manifest has stopped"));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

struct ElementSeed;

impl<'de> DeserializeSeed<'de> for ElementSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        file
    }

    fn shown(rows: &mut Vec<String>) -> impl FnMut(RawRow, Option<RowError>) -> ControlFlow<()> {
        |record, wrong| {
            let cells = record.cells.iter().map(|(name, cell)| format!("{name}={}", String::from_utf8_lossy(cell)));
            let wrong = wrong.map(|wrong| format!(" ! {wrong}")).unwrap_or_default();
            rows.push(format!("{}: {}{wrong}", record.number, cells.collect::<Vec<_>>().join(" ")));
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn lists_and_lines_give_the_same_rows() {
        let objects =
            [r#"{"file":"a.wav","language":["de","fr"],"year":1999}"#, r#"{"file":"b.wav","x":{"y":1}}"#, "7"];
        let (mut list, mut lines) = (Vec::new(), Vec::new());
        let form = read_list(file(&format!("[{}]\n", objects.join(",\n"))), &mut shown(&mut list)).unwrap();
        read_lines(file(&objects.join("\n")), &mut shown(&mut lines)).unwrap();
        assert_eq!(list, lines);
        assert_eq!(list[0], "1: file=a.wav language=de\nfr year=1999");
        assert!(list[1].contains("row 2, column `x`: must be a string"), "{}", list[1]);
        assert!(list[2].contains("row 3: it must be an object, but is a number"), "{}", list[2]);
        assert_eq!(form.columns.len(), 4);
    }

    #[test]
    fn an_object_without_end_and_one_without_bottom_are_told() {
        for object in ["x".repeat(3 << 20), "[".repeat(100_000)] {
            let list = format!(r#"[{{"file":"a"}},{{"x":"{object}"}}]"#).replace(r#":"["#, ":[");
            let mut rows = Vec::new();
            let error = read_list(file(&list), &mut shown(&mut rows)).unwrap_err();
            assert!(error.contains("1 MB") || error.contains("recursion limit"), "{error}");
            assert_eq!(rows.len(), 1);
        }
    }

    #[test]
    fn half_a_list_is_not_believed_and_half_a_line_is_one_row() {
        let mut rows = Vec::new();
        assert!(
            read_list(file(r#"[{"file":"a"},{"fi"#), &mut shown(&mut rows)).unwrap_err().contains("list of objects")
        );
        let mut rows = Vec::new();
        read_lines(file("{\"file\":\"a\"}\n\n{\"fi"), &mut shown(&mut rows)).unwrap();
        assert!(rows.len() == 2 && rows[1].starts_with("3:  ! row 3: it is not a JSON object"), "{rows:?}");
        let mut count = 0;
        let stop = read_list(file(r#"[{"file":"a"},{"file":"b"},{"#), &mut |_, _| {
            count += 1;
            ControlFlow::Break(())
        });
        assert!(stop.is_ok() && count == 1);
    }
}
