//! A row of a manifest as it is written, in any format.

use super::text::Encoding;
use std::sync::Arc;

/// A row as it is written: its cells with their column names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRow {
    /// The row number as spreadsheets show it: the header of a table is row 1. Objects of a list are counted from 1.
    pub number: u64,
    /// The cells in the order of the columns. Only cells with file names may contain bytes that are not UTF-8.
    pub cells: Vec<(Arc<str>, Vec<u8>)>,
    /// The encoding of the manifest; the cells are converted to UTF-8.
    pub encoding: Encoding,
}

/// An error in one row, in one column if it concerns a single one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    pub row: u64,
    /// The column's name as the manifest writes it.
    pub column: Option<String>,
    /// A message that says what is wrong and how to fix it.
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

/// Joins all errors of a row in one line.
pub fn join_errors(wrong: &[RowError]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The format of a manifest, so that the same program can open its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The columns that the receipt repeats.
    pub columns: Vec<Arc<str>>,
    pub delimiter: u8,
    /// Whether the receipt begins with the byte order mark of UTF-8.
    pub marked: bool,
    /// The encoding of the manifest.
    pub encoding: Encoding,
}

/// Returns a column's name as settings and templates write it: in lower case, with `_` for everything that is not a
/// letter or digit.
pub fn normalize_column(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    lower.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// The prefix of the columns that a receipt adds: they are ignored if the receipt is used as a manifest.
pub const OURS: &str = "scribed_";
