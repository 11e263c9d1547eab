//! A row of a manifest as it is written, in whatever format.

use super::text::Encoding;
use std::sync::Arc;

/// A row as it is written: its cells with the names of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRow {
    /// As a spreadsheet numbers it: the header is 1. Objects of a list count from 1.
    pub number: u64,
    /// In the order of the columns. Bytes: only text that names a file may be no UTF-8.
    pub cells: Vec<(Arc<str>, Vec<u8>)>,
    /// How the manifest is written; its cells are UTF-8 all the same.
    pub encoding: Encoding,
}

/// Something wrong with one row, at one column where it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    pub row: u64,
    /// As the manifest writes it.
    pub column: Option<String>,
    /// In words, with the mend.
    pub what: String,
}

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.column {
            Some(column) => write!(f, "row {}, column `{column}`: {}", self.row, self.what),
            None => write!(f, "row {}: {}", self.row, self.what),
        }
    }
}

/// Everything that is wrong with a row, in one line.
pub fn join_errors(wrong: &[RowError]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// How the receipt of a manifest is to be written, so that the same program opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The columns of every row that comes back.
    pub columns: Vec<Arc<str>>,
    pub delimiter: u8,
    /// Whether it begins with the mark of UTF-8.
    pub marked: bool,
    /// How the manifest itself is written.
    pub encoding: Encoding,
}

/// The name of a column as settings and templates name it: lower case, with `_` for whatever is no letter or digit.
pub fn normalize_column(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    lower.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// The start of the columns that a receipt adds: a receipt that is used as a manifest orders the same.
pub const OURS: &str = "scribed_";
