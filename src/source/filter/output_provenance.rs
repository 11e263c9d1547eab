//! Recognises scribed's outputs by the provenance that they contain: a queue that was lost does not know them.

use crate::domain::format::Format;
use crate::domain::path::RelPath;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::open;
use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;

/// How many bytes at the start of a `.vtt` are searched for its provenance note.
pub const HEAD: u64 = 4 * 1024;

/// How many bytes at the end of a `.json` are searched for its provenance, which contains a path.
pub const TAIL: u64 = 16 * 1024;

/// Whether scribed made a subtitle, by the provenance in the `.vtt` or `.json` of the same name. A file that cannot be
/// read counts as having none. Blocks.
pub fn is_own_subtitle(folder: &RootedPath, subtitle: &RelPath) -> bool {
    let path = folder.join(OsStr::from_bytes(subtitle.as_bytes()));
    let vtt = || start_of(&path.with_extension("vtt")).is_ok_and(|text| vtt_has_provenance(&text));
    let json = || is_own_json(&path.with_extension("json"));
    vtt() || json()
}

/// Whether a `.json` contains scribed's provenance. A file that cannot be read counts as having none. Blocks.
pub fn is_own_json(path: &RootedPath) -> bool {
    end_of(path).is_ok_and(|text| json_has_provenance(&text))
}

/// Whether a `.csv`, `.tsv` or `.jsonl` is a table that scribed writes of a result: those have the same columns everywhere,
/// and name no recording. A file that cannot be read counts as none. Blocks.
pub fn is_own_table(path: &RootedPath) -> bool {
    start_of(path).is_ok_and(|start| has_own_columns(&start))
}

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

/// Whether the start of a `.vtt` contains scribed's provenance note.
pub fn vtt_has_provenance(start: &[u8]) -> bool {
    contains(start, b"\nmade by: scribed ")
}

/// Whether the end of a `.json` contains scribed's provenance.
pub fn json_has_provenance(end: &[u8]) -> bool {
    contains(end, b"\"program\":\"scribed ")
}

fn contains(text: &[u8], words: &[u8]) -> bool {
    memchr::memmem::find(text, words).is_some()
}

fn start_of(path: &RootedPath) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    open(path)?.take(HEAD).read_to_end(&mut text)?;
    Ok(text)
}

fn end_of(path: &RootedPath) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut text = Vec::new();
    file.take(TAIL).read_to_end(&mut text)?;
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
    }
}
