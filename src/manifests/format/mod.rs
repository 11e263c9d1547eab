//! Parsers for manifests: encodings, tables, JSON, columns and cells.

pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod find;
pub(crate) mod kind;
mod objects;
mod quotes;
pub(crate) mod record;
mod table;
pub(crate) mod text;
