//! Reads the file: TOML, its errors with line and caret, the known keys, and the schema made from them. Start reading
//! at `read.rs`.

pub(crate) mod diagnostics;
pub(crate) mod keys;
pub(crate) mod quantities;
pub(crate) mod read;
pub(crate) mod schema;
pub(crate) mod shape;
mod syntax;
mod table_forms;
pub(crate) mod toml_reader;
pub(crate) mod values;
