//! Reads the file: TOML, its errors with line and caret, the known keys, and the schema made from them.

pub(crate) mod diagnostics;
pub mod keys;
pub(crate) mod quantities;
pub mod read;
pub mod schema;
pub mod shape;
mod syntax;
mod table_forms;
pub(crate) mod toml_reader;
pub(crate) mod values;
