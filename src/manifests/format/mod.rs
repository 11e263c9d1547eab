//! Reading manifests: encodings, tables, JSON, columns and cells.

pub mod cells;
pub mod columns;
pub mod find;
pub mod kind;
pub mod objects;
pub mod quotes;
pub mod record;
pub mod table;
pub mod text;
