//! Parses the cells of one row: returns the row, or all its errors at once.

use super::cells::{
    MediaCell, channels, checksum, classify_media, duration, file, languages, output, priority, url, words,
};
use super::record::{OURS, RawRow, RowError, normalize_column};
use super::text::Encoding;
use crate::config::model::Source;
use crate::domain::checksum::Algorithm;
use crate::domain::did_you_mean::nearest;
use crate::domain::manifest_row::{ManifestRow, RowMedia, UsedColumns};
use crate::domain::path::RelPath;
use crate::domain::stage::AudioAmount;
use crate::source::path_policy::{Denied, PathPolicy};
use crate::source::recording_place::full_path;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The context in which the rows of one manifest are parsed.
pub struct ColumnContext<'a> {
    /// The source of the manifest.
    pub source: &'a Source,
    /// The manifest, below its source's folder.
    pub manifest: &'a RelPath,
    /// The recordings and outputs that rows may name.
    pub policy: &'a PathPolicy<'a>,
    /// The free columns that count.
    used: UsedColumns,
}

impl<'a> ColumnContext<'a> {
    pub fn new(source: &'a Source, manifest: &'a RelPath, policy: &'a PathPolicy<'a>) -> Self {
        Self { source, manifest, policy, used: source.used_columns() }
    }
}

/// The longest cell of a free column, in bytes: it is stored with the job.
const MAX_CELL_BYTES: usize = 8 << 10;

/// Parses a row.
///
/// # Errors
/// Returns every error of the row; never an empty list.
pub fn parse_row(record: &RawRow, terms: &ColumnContext<'_>) -> Result<ManifestRow, Vec<RowError>> {
    read_row(Reader { record, terms, any_ending: false, wrong: Vec::new(), columns: BTreeMap::new() })
}

/// Parses a row but accepts any extension of its recording, as older releases did; `None` if the row has another error.
pub fn parse_row_any_extension(record: &RawRow, terms: &ColumnContext<'_>) -> Option<ManifestRow> {
    read_row(Reader { record, terms, any_ending: true, wrong: Vec::new(), columns: BTreeMap::new() }).ok()
}

fn read_row(mut reader: Reader<'_>) -> Result<ManifestRow, Vec<RowError>> {
    let (record, terms) = (reader.record, reader.terms);
    let media = reader.media().and_then(|(column, media)| reader.check_allowed(column, media));
    let mut row =
        ManifestRow::minimal(terms.manifest.clone(), record.number, media.unwrap_or(RowMedia::File(RelPath::new(""))));
    reader.settings(&mut row);
    row.columns = std::mem::take(&mut reader.columns);
    row.used = terms.used.clone();
    reader.check_combinations(&row);
    if reader.wrong.is_empty() { Ok(row) } else { Err(reader.wrong) }
}

/// Returns the recording that a row names, whatever other errors the row has; `None` if it names none.
pub fn names(record: &RawRow, terms: &ColumnContext<'_>) -> Option<RowMedia> {
    Reader { record, terms, any_ending: false, wrong: Vec::new(), columns: BTreeMap::new() }
        .media()
        .map(|(_, media)| media)
}

/// Returns an error about the recording that a row names.
pub fn media_error(record: &RawRow, what: String) -> RowError {
    let is_named = |(column, cell): &&(Arc<str>, Vec<u8>)| {
        [&FILE[..], &URL].concat().contains(&normalize_column(column).as_str()) && !cell.trim_ascii().is_empty()
    };
    let column = record.cells.iter().find(is_named).map(|(column, _)| column.to_string());
    RowError { row: record.number, column, what }
}

/// Returns the columns that are none of scribed's but look like one of them, as `priorty`, with the name that they may
/// mean. Their cells are free values for templates.
pub fn misspelt<'c>(columns: &'c [Arc<str>]) -> Vec<(&'c str, &'static str)> {
    // A row without a recording is wrong by itself, and many a column has a name like `title` or `time`.
    let meant = [&SETTINGS[..], &Algorithm::ALL.map(Algorithm::name)].concat();
    let known = [&FILE[..], &URL, &meant].concat();
    let is_known = |name: &str| known.contains(&name) || name.starts_with(OURS);
    let look = |column: &'c Arc<str>| {
        let name = normalize_column(column);
        if is_known(&name) {
            return None;
        }
        nearest(&name, meant.iter().copied()).map(|meant| (&**column, meant))
    };
    columns.iter().filter_map(look).collect()
}

/// Returns the length of the recording that the row declares.
pub fn declared_audio(record: &RawRow) -> Option<AudioAmount> {
    let cell = |name: &str| {
        let found = record.cells.iter().find(|(column, _)| normalize_column(column) == name);
        found.and_then(|(_, cell)| std::str::from_utf8(cell.trim_ascii()).ok())
    };
    let millis = duration(cell("duration")?).ok()?;
    let channels = cell("channels").and_then(|text| channels(text).ok()?.try_into().ok()).unwrap_or(1);
    Some(AudioAmount { millis, channels, billed: None })
}

struct Reader<'r> {
    record: &'r RawRow,
    terms: &'r ColumnContext<'r>,
    /// Whether the recording may have any extension.
    any_ending: bool,
    wrong: Vec<RowError>,
    columns: BTreeMap<String, String>,
}

/// The names of the columns with a recording's path.
const FILE: [&str; 3] = ["file", "path", "filename"];
const URL: [&str; 2] = ["url", "audio_url"];
/// The other columns that mean something to scribed, without those of checksums.
const SETTINGS: [&str; 8] =
    ["template", "language", "languages", "vocabulary", "output", "priority", "duration", "channels"];

impl<'r> Reader<'r> {
    /// Returns the recording and its column; `None` after reporting an error.
    fn media(&mut self) -> Option<(&'r str, RowMedia)> {
        let (at_file, at_url) = (self.first(&FILE), self.first(&URL));
        match (at_file, at_url) {
            (None, None) => {
                let what = if self.has(&FILE) || self.has(&URL) {
                    "it names no recording: fill in `file` or `url`, or remove the row"
                } else {
                    "it has no column `file` and no column `url`"
                };
                self.report(None, what.to_owned());
                None
            }
            (Some(_), Some((column, _))) => {
                self.report(Some(column), "it names a file and a URL: remove one of them".to_owned());
                None
            }
            (Some((column, cell)), None) | (None, Some((column, cell))) => {
                let read = classify_media(cell, at_url.is_some()).and_then(|named| match named {
                    MediaCell::Path(path) => self.local(&path),
                    MediaCell::Url => self.remote(cell),
                });
                self.ok_or_report(column, read).map(|media| (column, media))
            }
        }
    }

    /// Returns the recording; `None` after reporting that no setting allows it.
    fn check_allowed(&mut self, column: &str, media: RowMedia) -> Option<RowMedia> {
        let decision = match &media {
            RowMedia::File(path) if self.any_ending => self.terms.policy.check_location(path),
            RowMedia::File(path) => self.terms.policy.check_media_name(path),
            RowMedia::Url(_) => Ok(()),
        };
        self.ok_or_report(column, refused(decision)).map(|()| media)
    }

    fn local(&self, cell: &[u8]) -> Result<RowMedia, String> {
        let root = &self.terms.source.folder;
        let path = file(cell, root, self.terms.manifest)?;
        // Outside the allowed folders only the path itself is checked, never the disk.
        let may_be_looked_at = || self.terms.policy.check_location(&path).is_ok();
        let old = self.in_manifest_encoding(cell).filter(|_| may_be_looked_at());
        let as_on_disk = old.and_then(|cell| file(&cell, root, self.terms.manifest).ok());
        let is_there = |path: &RelPath| full_path(root, path).symlink_metadata().is_ok();
        let old = as_on_disk.filter(|old| !is_there(&path) && is_there(old));
        Ok(RowMedia::File(old.unwrap_or(path)))
    }

    /// Returns the file name in the manifest's encoding, as an old disk may have it; `None` for UTF-8.
    fn in_manifest_encoding(&self, cell: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(cell).ok().filter(|text| !text.is_ascii())?;
        let encoding = self.record.encoding;
        (encoding != Encoding::Utf8).then(|| encoding.bytes_of(text))
    }

    fn remote(&self, cell: &[u8]) -> Result<RowMedia, String> {
        if self.terms.source.local_only {
            let name = &self.terms.source.name;
            return Err(format!(
                "is an address, and scribed does not let a service fetch addresses for the source {name} \
                 (`local_only`): download the recording and name the file"
            ));
        }
        url(cell).map(RowMedia::Url)
    }

    fn settings(&mut self, row: &mut ManifestRow) {
        let (mut seconds, mut counted) = (None, None);
        let record = self.record;
        for (column, cell) in &record.cells {
            let (name, cell) = (normalize_column(column), cell.trim_ascii());
            if cell.is_empty() || name.starts_with(OURS) || [&FILE[..], &URL].concat().contains(&name.as_str()) {
                continue;
            }
            let Some(text) = self.ok_or_report(column, utf8(cell)) else { continue };
            match name.as_str() {
                "template" => row.template = self.ok_or_report(column, self.template(text)).map(str::to_owned),
                "language" | "languages" => {
                    row.languages = self.ok_or_report(column, languages(text)).unwrap_or_default();
                }
                "vocabulary" => row.vocabulary = self.ok_or_report(column, words(text)).unwrap_or_default(),
                "output" => {
                    let place = output(text, &self.terms.source.folder, self.terms.manifest);
                    let decision = |place| refused(self.terms.policy.outputs(&place)).map(|()| place);
                    row.output = self.ok_or_report(column, place.and_then(decision));
                }
                "priority" => row.priority = self.ok_or_report(column, priority(text)).unwrap_or_default(),
                "duration" => seconds = self.ok_or_report(column, duration(text)),
                "channels" => counted = self.ok_or_report(column, channels(text)),
                _ => match Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name) {
                    Some(algorithm) => {
                        let sum = self.ok_or_report(column, checksum(algorithm, text));
                        // One checksum is enough: the strongest is kept.
                        row.checksum = row.checksum.take().max(sum);
                    }
                    None => self.add_free_column(column, &name, text),
                },
            }
        }
        row.billed = seconds.map(|millis: u64| millis.saturating_mul(counted.unwrap_or(1)));
    }

    fn template<'t>(&self, text: &'t str) -> Result<&'t str, String> {
        let known = &self.terms.source.shared.templates;
        if known.contains_key(text) {
            return Ok(text);
        }
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        let available = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(format!("names the template `{text}`, but jobs.toml has no [template.{text}] (it has: {available})"))
    }

    fn add_free_column(&mut self, column: &str, name: &str, text: &str) {
        if text.len() > MAX_CELL_BYTES {
            self.report(Some(column), format!("is longer than {MAX_CELL_BYTES} bytes"));
        } else if !name.is_empty() {
            self.columns.insert(name.to_owned(), text.to_owned());
        }
    }

    fn check_combinations(&mut self, row: &ManifestRow) {
        if row.checksum.is_some() && row.is_remote() {
            let column = row.checksum.as_ref().map(|sum| sum.algorithm().name());
            let what = "cannot be checked, since only the service fetches the recording: download it and name the \
                        file, or leave the cell empty";
            self.report(column, what.to_owned());
        }
    }

    /// Returns the first of these columns that is not empty.
    fn first(&self, names: &[&str]) -> Option<(&'r str, &'r [u8])> {
        let each = self.record.cells.iter().map(|(name, cell)| (&**name, cell.trim_ascii()));
        each.into_iter().find(|(name, cell)| names.contains(&normalize_column(name).as_str()) && !cell.is_empty())
    }

    fn has(&self, names: &[&str]) -> bool {
        self.record.cells.iter().any(|(name, _)| names.contains(&normalize_column(name).as_str()))
    }

    fn ok_or_report<T>(&mut self, column: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|what| self.report(Some(column), what)).ok()
    }

    fn report(&mut self, column: Option<&str>, what: String) {
        let column = column.map(str::to_owned);
        self.wrong.push(RowError { row: self.record.number, column, what });
    }
}

/// Returns the reason of a refusal. A row that only waits for another configuration is valid.
fn refused(decision: Result<(), Denied>) -> Result<(), String> {
    match decision {
        Err(Denied::Refused(words)) => Err(words),
        Err(Denied::Held(_)) | Ok(()) => Ok(()),
    }
}

fn utf8(cell: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(cell).map_err(|_| "is not UTF-8: save the table as \"CSV UTF-8\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    use crate::domain::path::RelPath;
    use std::path::Path;

    #[test]
    fn a_column_that_looks_like_one_of_ours_is_named() {
        let columns =
            ["File", "priorty", "Langauge", "title", "time", "sha256", "SHA-256", "scribed_row", "shelf", "Chanels"];
        let columns = columns.map(Arc::from);
        let expected =
            [("priorty", "priority"), ("Langauge", "language"), ("SHA-256", "sha256"), ("Chanels", "channels")];
        assert_eq!(misspelt(&columns), expected);
    }

    fn source(more: &str) -> Source {
        let text = format!("[[source]]\nfolder = \"/srv/lists\"\n{more}\n[template.film]\ndiarization = true\n");
        read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0)
    }

    fn read(source: &Source, cells: &[(&str, &str)]) -> Result<ManifestRow, Vec<String>> {
        let cells = cells.iter().map(|(name, cell)| (Arc::from(*name), cell.as_bytes().to_vec())).collect();
        let (manifest, policy) = (RelPath::new("2024/may.csv"), PathPolicy::new(source));
        let terms = ColumnContext::new(source, &manifest, &policy);
        let wrong = |wrong: Vec<RowError>| wrong.iter().map(ToString::to_string).collect();
        parse_row(&RawRow { number: 7, cells, encoding: Encoding::Utf8 }, &terms).map_err(wrong)
    }

    #[test]
    fn a_row_says_what_is_ordered() {
        let sum = "a".repeat(32);
        let row = read(
            &source(""),
            &[
                ("File", "talks/a b.wav"),
                ("Language", "de, FR"),
                ("Vocabulary", "Müller; Łódź"),
                ("template", "film"),
                ("Output", "../subs/AB.12.srt"),
                ("Priority", "-3"),
                ("MD5", &sum),
                ("Shelf Mark", "AB 12"),
                ("duration", "1:02:03.5"),
                ("channels", "2"),
                ("scribed_state", "written"),
                ("", ""),
            ],
        );
        insta::assert_snapshot!(serde_json::to_string_pretty(&row.unwrap()).unwrap());
    }

    #[test]
    fn all_that_is_wrong_with_a_row_is_told_at_once() {
        let wrong = read(
            &source("local_only = true"),
            &[
                ("url", "https://h/a.mp3"),
                ("language", "klingon"),
                ("template", "flim"),
                ("priority", "high"),
                ("sha256", "123"),
                ("duration", "soon"),
                ("output", "x/\0"),
            ],
        );
        insta::assert_snapshot!(wrong.unwrap_err().join("\n"));
        let wrong = |cells: &[(&str, &str)]| read(&source(""), cells).unwrap_err().join("\n");
        assert_eq!(wrong(&[("titel", "x")]), "row 7: it has no column `file` and no column `url`");
        assert!(wrong(&[("file", " "), ("titel", "x")]).contains("names no recording"));
        assert!(wrong(&[("file", "a"), ("url", "https://h/")]).contains("a file and a URL"));
        assert!(wrong(&[("file", "a\\b.wav")]).contains('/'));
        assert!(wrong(&[("url", "https://h/a"), ("md5", &"a".repeat(32))]).contains("only the service fetches"));
    }
}
