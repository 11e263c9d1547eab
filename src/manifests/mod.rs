//! Manifests: lists of recordings in CSV, TSV or JSON. `format/` parses them; `passes/` makes jobs of their rows and
//! writes receipts.

pub(crate) mod format;
pub(crate) mod passes;
