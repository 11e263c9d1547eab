//! Parsers for manifests: encodings, tables, JSON, columns and cells. Start reading at `find.rs`.

pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod find;
pub(crate) mod kind;
mod objects;
mod quotes;
pub(crate) mod record;
mod table;
pub(crate) mod text;
