//! Recognises scribed's outputs by the provenance that they contain: a queue that was lost does not know them.

use crate::domain::format::Format;
use crate::domain::path::RelPath;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::open;
use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;

/// A kind of output that contains provenance, and where in the file it is.
pub struct ProvenanceOutput {
    /// The extension, without a dot.
    pub ext: &'static str,
    /// How many bytes are searched.
    pub bytes: u64,
    /// Whether these are the last bytes of the file.
    pub from_end: bool,
    words: &'static [u8],
}

/// The provenance of a `.json`, which contains a path.
const JSON: ProvenanceOutput =
    ProvenanceOutput { ext: "json", bytes: 16 * 1024, from_end: true, words: b"\"program\":\"scribed " };

/// The outputs that say who made the subtitles of the same name. An `.ass` says it with `provenance = true` only.
pub const PROVENANCE_OUTPUTS: [ProvenanceOutput; 3] = [
    ProvenanceOutput { ext: "vtt", bytes: 4 * 1024, from_end: false, words: b"\nmade by: scribed " },
    JSON,
    ProvenanceOutput { ext: "ass", bytes: 4 * 1024, from_end: false, words: b"\n; made by: scribed " },
];

impl ProvenanceOutput {
    /// Whether the part of a file that is searched contains scribed's provenance.
    pub fn is_in(&self, text: &[u8]) -> bool {
        memchr::memmem::find(text, self.words).is_some()
    }

    /// Whether a file contains it. A file that cannot be read counts as having none. Blocks.
    fn is_in_file(&self, path: &RootedPath) -> bool {
        let text = if self.from_end { end_of(path, self.bytes) } else { start_of(path, self.bytes) };
        text.is_ok_and(|text| self.is_in(&text))
    }
}

/// Whether scribed made a subtitle, by the provenance in an output of the same name. A file that cannot be read counts
/// as having none. Blocks.
pub fn is_own_subtitle(folder: &RootedPath, subtitle: &RelPath) -> bool {
    let path = folder.join(OsStr::from_bytes(subtitle.as_bytes()));
    PROVENANCE_OUTPUTS.iter().any(|output| output.is_in_file(&path.with_extension(output.ext)))
}

/// Whether a `.json` contains scribed's provenance. A file that cannot be read counts as having none. Blocks.
pub fn is_own_json(path: &RootedPath) -> bool {
    JSON.is_in_file(path)
}

/// Whether a `.csv`, `.tsv` or `.jsonl` is a table that scribed writes of a result: those have the same columns everywhere,
/// and name no recording. A file that cannot be read counts as none. Blocks.
pub fn is_own_table(path: &RootedPath) -> bool {
    start_of(path, LONGEST_HEADER).is_ok_and(|start| has_own_columns(&start))
}

/// How many bytes at the start of a table are searched for the names of its columns.
const LONGEST_HEADER: u64 = 4 * 1024;

/// Whether a table begins with the columns of an output.
fn has_own_columns(start: &[u8]) -> bool {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (line, own) = (line.trim_end(), |columns: &[&str], separator: &str| columns.join(separator));
    let is_header = |columns: &[&str]| line == own(columns, ",") || line == own(columns, "\t");
    // The first columns of an object; a manifest's object names a recording before anything else.
    let is_object = line.starts_with("{\"start\":") && line.contains(",\"end\":") && line.contains(",\"speaker\":");
    Format::ALL.iter().map(|format| format.columns()).any(|columns| !columns.is_empty() && is_header(columns))
        || is_object
}

fn start_of(path: &RootedPath, bytes: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open(path)?.take(bytes).read_to_end(&mut text)?;
    Ok(text)
}

fn end_of(path: &RootedPath, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_with_it_says_whose_it_is() {
        let root = tempfile::TempDir::new().unwrap();
        let ours = |name: &str| is_own_subtitle(&RootedPath::new(root.path(), ""), &RelPath::new(name));
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write("a.en.srt", "1\n");
        assert!(!ours("a.en.srt"));
        write("a.en.json", "{\"answer\":1,\"scribed\":{\"program\":\"scribed 0.1.0\"}}\n");
        assert!(ours("a.en.srt"));
        write("b.vtt", "WEBVTT\n\nNOTE\nmade by: scribed 0.1.0\n\n");
        assert!(ours("b.vtt") && ours("b.srt"));
        write("c.vtt", "WEBVTT\n\n");
        assert!(!ours("c.vtt"));
        write("d.de.ass", "[Script Info]\nTitle: Transcript\n");
        assert!(!ours("d.de.ass"));
        write("d.de.ass", "[Script Info]\n; status: x\n; made by: scribed 0.1.0\nTitle: Transcript\n");
        assert!(ours("d.de.ass") && ours("d.de.srt") && !ours("d.ass"));
        assert!(ours("a.en.ass") && ours("b.ass"), "an output with provenance has the same name");
    }
}
