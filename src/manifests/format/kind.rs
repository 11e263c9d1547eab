//! The formats of manifests.

use std::path::Path;

/// A format of manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFormat {
    Csv,
    /// A table with tabs between the cells.
    Tsv,
    /// A list of objects.
    Json,
    /// One object a line.
    Jsonl,
}

/// The extensions of manifests.
pub const ENDINGS: [&str; 4] = [".csv", ".tsv", ".json", ".jsonl"];

/// Returns the format by the extension of a name, in upper or lower case.
pub fn kind(path: &Path) -> Option<ManifestFormat> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "csv" => ManifestFormat::Csv,
        "tsv" => ManifestFormat::Tsv,
        "json" => ManifestFormat::Json,
        "jsonl" => ManifestFormat::Jsonl,
        _ => return None,
    })
}
