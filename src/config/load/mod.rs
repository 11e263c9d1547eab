//! Reading the file: TOML, its errors with line and caret, the known keys, and the schema made from them.

pub mod diagnostics;
pub mod keys;
pub mod quantities;
pub mod read;
pub mod schema;
pub mod shape;
pub mod syntax;
pub mod table_forms;
pub mod toml_reader;
pub mod values;
