//! What the cells of one row say: its order, or all that is wrong with it at once.

use super::cells::{
    MediaCell, channels, checksum, classify_media, duration, file, languages, output, priority, url, words,
};
use super::record::{OURS, RawRow, RowError, normalize_column};
use super::text::Encoding;
use crate::config::model::Source;
use crate::domain::checksum::Algorithm;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::path::RelPath;
use crate::domain::stage::AudioAmount;
use crate::source::path_policy::{Denied, PathPolicy};
use crate::source::recording_place::full_path;
use std::collections::BTreeMap;

/// What the rows of one manifest are read for.
pub struct ColumnContext<'a> {
    /// The source of the manifest.
    pub source: &'a Source,
    /// The manifest, below its source's folder.
    pub manifest: &'a RelPath,
    /// What they may name.
    pub policy: &'a PathPolicy<'a>,
}

/// A free column is at most so long, in bytes: it is kept with its job.
const LONGEST_CELL: usize = 8 << 10;

/// What a row orders.
///
/// # Errors
/// Everything that is wrong with it; never empty.
pub fn parse_row(record: &RawRow, terms: &ColumnContext<'_>) -> Result<ManifestRow, Vec<RowError>> {
    order_of(Reader { record, terms, any_ending: false, wrong: Vec::new(), columns: BTreeMap::new() })
}

/// What a row orders whatever the ending of its recording is; `None` where something else is wrong with it. Older
/// releases took a recording of any ending.
pub fn parse_row_any_extension(record: &RawRow, terms: &ColumnContext<'_>) -> Option<ManifestRow> {
    order_of(Reader { record, terms, any_ending: true, wrong: Vec::new(), columns: BTreeMap::new() }).ok()
}

fn order_of(mut reader: Reader<'_>) -> Result<ManifestRow, Vec<RowError>> {
    let (record, terms) = (reader.record, reader.terms);
    let media = reader.media().and_then(|(column, media)| reader.may_be_named(column, media));
    let mut row =
        ManifestRow::minimal(terms.manifest.clone(), record.number, media.unwrap_or(RowMedia::File(RelPath::new(""))));
    reader.settings(&mut row);
    row.columns = std::mem::take(&mut reader.columns);
    reader.together(&row);
    if reader.wrong.is_empty() { Ok(row) } else { Err(reader.wrong) }
}

/// The recording that a row names, whatever else is wrong with it; `None` where it names none.
pub fn names(record: &RawRow, terms: &ColumnContext<'_>) -> Option<RowMedia> {
    Reader { record, terms, any_ending: false, wrong: Vec::new(), columns: BTreeMap::new() }
        .media()
        .map(|(_, media)| media)
}

/// What is wrong with the recording that a row names.
pub fn media_error(record: &RawRow, what: String) -> RowError {
    let is_named = |(column, cell): &&(std::sync::Arc<str>, Vec<u8>)| {
        [&FILE[..], &URL].concat().contains(&normalize_column(column).as_str()) && !cell.trim_ascii().is_empty()
    };
    let column = record.cells.iter().find(is_named).map(|(column, _)| column.to_string());
    RowError { row: record.number, column, what }
}

/// How long the recording is by its row's word.
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
    /// Its recording need not have the ending of one.
    any_ending: bool,
    wrong: Vec<RowError>,
    columns: BTreeMap<String, String>,
}

/// What a column is for. Anything else is free.
const FILE: [&str; 3] = ["file", "path", "filename"];
const URL: [&str; 2] = ["url", "audio_url"];

impl<'r> Reader<'r> {
    /// The recording and its column: `None` where that is wrong, which is told.
    fn media(&mut self) -> Option<(&'r str, RowMedia)> {
        let (at_file, at_url) = (self.first(&FILE), self.first(&URL));
        match (at_file, at_url) {
            (None, None) => {
                let what = if self.has(&FILE) || self.has(&URL) {
                    "it names no recording: fill in `file` or `url`, or remove the row"
                } else {
                    "it has no column `file` and no column `url`"
                };
                self.tell(None, what.to_owned());
                None
            }
            (Some(_), Some((column, _))) => {
                self.tell(Some(column), "it names a file and a URL: remove one of them".to_owned());
                None
            }
            (Some((column, cell)), None) | (None, Some((column, cell))) => {
                let read = classify_media(cell, at_url.is_some()).and_then(|named| match named {
                    MediaCell::Path(path) => self.local(&path),
                    MediaCell::Url => self.remote(cell),
                });
                self.noted(column, read).map(|media| (column, media))
            }
        }
    }

    /// `None` where no setting allows it, which is told.
    fn may_be_named(&mut self, column: &str, media: RowMedia) -> Option<RowMedia> {
        let judged = match &media {
            RowMedia::File(path) if self.any_ending => self.terms.policy.check_location(path),
            RowMedia::File(path) => self.terms.policy.check_media_name(path),
            RowMedia::Url(_) => Ok(()),
        };
        self.noted(column, refused(judged)).map(|()| media)
    }

    fn local(&self, cell: &[u8]) -> Result<RowMedia, String> {
        let root = &self.terms.source.folder;
        let path = file(cell, root, self.terms.manifest)?;
        // Outside of the roots a path is judged by its name alone.
        let may_be_looked_at = || self.terms.policy.check_location(&path).is_ok();
        let old = self.in_old_letters(cell).filter(|_| may_be_looked_at());
        let as_on_disk = old.and_then(|cell| file(&cell, root, self.terms.manifest).ok());
        let is_there = |path: &RelPath| full_path(root, path).symlink_metadata().is_ok();
        let old = as_on_disk.filter(|old| !is_there(&path) && is_there(old));
        Ok(RowMedia::File(old.unwrap_or(path)))
    }

    /// A name as an old disk may have it: written like its list, and not in UTF-8.
    fn in_old_letters(&self, cell: &[u8]) -> Option<Vec<u8>> {
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
            let Some(text) = self.noted(column, utf8(cell)) else { continue };
            match name.as_str() {
                "template" => row.template = self.noted(column, self.template(text)).map(str::to_owned),
                "language" | "languages" => row.languages = self.noted(column, languages(text)).unwrap_or_default(),
                "vocabulary" => row.vocabulary = self.noted(column, words(text)).unwrap_or_default(),
                "output" => {
                    let place = output(text, &self.terms.source.folder, self.terms.manifest);
                    let judged = |place| refused(self.terms.policy.outputs(&place)).map(|()| place);
                    row.output = self.noted(column, place.and_then(judged));
                }
                "priority" => row.priority = self.noted(column, priority(text)).unwrap_or_default(),
                "duration" => seconds = self.noted(column, duration(text)),
                "channels" => counted = self.noted(column, channels(text)),
                _ => match Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name) {
                    Some(algorithm) => {
                        let sum = self.noted(column, checksum(algorithm, text));
                        // One of them is enough: the strongest.
                        row.checksum = row.checksum.take().max(sum);
                    }
                    None => self.free(column, &name, text),
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
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(format!("names the template `{text}`, but jobs.toml has no [template.{text}] (it has: {there})"))
    }

    fn free(&mut self, column: &str, name: &str, text: &str) {
        if text.len() > LONGEST_CELL {
            self.tell(Some(column), format!("is longer than {LONGEST_CELL} bytes"));
        } else if !name.is_empty() {
            self.columns.insert(name.to_owned(), text.to_owned());
        }
    }

    fn together(&mut self, row: &ManifestRow) {
        if row.checksum.is_some() && row.is_remote() {
            let column = row.checksum.as_ref().map(|sum| sum.algorithm().name());
            let what = "cannot be checked, since only the service fetches the recording: download it and name the \
                        file, or leave the cell empty";
            self.tell(column, what.to_owned());
        }
    }

    /// The first of these columns that holds something.
    fn first(&self, names: &[&str]) -> Option<(&'r str, &'r [u8])> {
        let each = self.record.cells.iter().map(|(name, cell)| (&**name, cell.trim_ascii()));
        each.into_iter().find(|(name, cell)| names.contains(&normalize_column(name).as_str()) && !cell.is_empty())
    }

    fn has(&self, names: &[&str]) -> bool {
        self.record.cells.iter().any(|(name, _)| names.contains(&normalize_column(name).as_str()))
    }

    fn noted<T>(&mut self, column: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|what| self.tell(Some(column), what)).ok()
    }

    fn tell(&mut self, column: Option<&str>, what: String) {
        let column = column.map(str::to_owned);
        self.wrong.push(RowError { row: self.record.number, column, what });
    }
}

/// What waits for another configuration is right as it is.
fn refused(judged: Result<(), Denied>) -> Result<(), String> {
    match judged {
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
    use std::sync::Arc;

    fn source(more: &str) -> Source {
        let text = format!("[[source]]\nfolder = \"/srv/lists\"\n{more}\n[template.film]\ndiarization = true\n");
        read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0)
    }

    fn read(source: &Source, cells: &[(&str, &str)]) -> Result<ManifestRow, Vec<String>> {
        let cells = cells.iter().map(|(name, cell)| (Arc::from(*name), cell.as_bytes().to_vec())).collect();
        let terms = ColumnContext { source, manifest: &RelPath::new("2024/may.csv"), policy: &PathPolicy::new(source) };
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
