//! The formats of manifests.

use std::path::Path;

/// A format of manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestFormat {
    Csv,
    /// A table with tabs.
    Tsv,
    /// One list of objects.
    Json,
    /// An object a line.
    Jsonl,
}

/// How their names end.
pub const ENDINGS: [&str; 4] = [".csv", ".tsv", ".json", ".jsonl"];

/// By the ending of a name, whatever its case.
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
