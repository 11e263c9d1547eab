//! Parses single cells of a manifest. An error message is written to follow the column's name.

use crate::config::paths::rules::normalize_lexically;
use crate::domain::checksum::{Algorithm, Checksum};
use crate::domain::manifest_row::OutputPlace;
use crate::domain::path::RelPath;
use crate::domain::remote_url::{RemoteUrl, percent_decode};
use crate::source::filter::rules::LONGEST_PATH;
use crate::wire::languages::LANGUAGES;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

type CellResult<T> = Result<T, String>;

/// Parses a path relative to the manifest's folder. The result is relative to `root` if the file is below it, and
/// absolute otherwise.
pub fn file(cell: &[u8], root: &Path, manifest: &RelPath) -> CellResult<RelPath> {
    if cell.contains(&b'\\') && !cell.contains(&b'/') {
        return Err("has \\ between folders: write / instead".to_owned());
    }
    if cell.get(1..3) == Some(b":/") && cell[0].is_ascii_alphabetic() {
        return Err(
            "begins with a drive letter: write the path relative to the manifest's folder, or as this machine has \
             it"
            .to_owned(),
        );
    }
    if cell.ends_with(b"/") {
        return Err("names a folder: a row names one recording".to_owned());
    }
    resolve(cell, root, manifest)
}

/// Resolves a path relative to the manifest's folder, without looking at the disk.
fn resolve(cell: &[u8], root: &Path, manifest: &RelPath) -> CellResult<RelPath> {
    if cell.iter().any(|byte| *byte == 0 || *byte == b'\n' || *byte == b'\r') {
        return Err("has a line break within a path".to_owned());
    }
    let manifest = root.join(OsStr::from_bytes(manifest.as_bytes()));
    let whole = normalize_lexically(&manifest.parent().unwrap_or(root).join(OsStr::from_bytes(cell)));
    if whole.as_os_str().len() > LONGEST_PATH {
        return Err(format!("is a path of more than {LONGEST_PATH} bytes, which the system cannot open"));
    }
    let path = whole.strip_prefix(root).unwrap_or(&whole);
    Ok(RelPath::new(path.as_os_str().as_bytes()))
}

/// The way in which a cell gives its recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaCell<'c> {
    Path(Cow<'c, [u8]>),
    /// An address that the service fetches.
    Url,
}

/// Distinguishes paths from addresses. `in_url` is whether the column is one for addresses.
pub fn classify_media(cell: &[u8], in_url: bool) -> CellResult<MediaCell<'_>> {
    let starts = |scheme: &[u8]| cell.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if starts(b"file://") {
        return path_of_file_url(cell).map(|path| MediaCell::Path(Cow::Owned(path)));
    }
    if in_url || starts(b"http://") || starts(b"https://") {
        return Ok(MediaCell::Url);
    }
    let scheme = cell.windows(3).position(|three| three == b"://").map(|end| &cell[..end]);
    let is_scheme = |text: &[u8]| {
        text.first().is_some_and(u8::is_ascii_alphabetic)
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
    };
    match scheme.filter(|scheme| is_scheme(scheme)) {
        None => Ok(MediaCell::Path(Cow::Borrowed(cell))),
        Some(scheme) => Err(format!(
            "is an address with the scheme `{}`, which scribed cannot fetch: write http://, https://, file:// or \
             a path",
            String::from_utf8_lossy(scheme)
        )),
    }
}

/// Returns the path of `file:///srv/a%20b.wav` or `file://localhost/…`.
fn path_of_file_url(cell: &[u8]) -> CellResult<Vec<u8>> {
    let rest = &cell[b"file://".len()..];
    let path = rest.iter().position(|byte| *byte == b'/').map(|at| rest.split_at(at));
    match path {
        Some((host, path)) if host.is_empty() || host.eq_ignore_ascii_case(b"localhost") => Ok(percent_decode(path)),
        _ => Err("is a file:// address with another machine or without a path: write file:///FOLDER/FILE, or the \
                  path"
            .to_owned()),
    }
}

/// Parses an address that the service fetches.
pub fn url(cell: &[u8]) -> CellResult<RemoteUrl> {
    let text = std::str::from_utf8(cell).map_err(|_| "is not UTF-8".to_owned())?;
    let url = RemoteUrl::parse(text).map_err(str::to_owned)?;
    match reqwest::Url::parse(url.expose()) {
        Ok(_) => Ok(url),
        Err(error) => Err(format!("must be an address: {error}")),
    }
}

/// Parses one or more language codes, separated by `,`, `;`, `|` or line breaks.
pub fn languages(text: &str) -> CellResult<Vec<String>> {
    let codes = text.split([',', ';', '|', '\n']).map(|code| code.trim().to_lowercase());
    let codes: Vec<String> = codes.filter(|code| !code.is_empty()).collect();
    match codes.iter().find(|code| !LANGUAGES.contains(&code.as_str())) {
        None => Ok(codes),
        Some(code) => {
            Err(format!("`{code}` is not a language code that the service supports: write it like `en` or `de`"))
        }
    }
}

/// Parses words separated by `;`, `|` or line breaks.
pub fn words(text: &str) -> CellResult<Vec<String>> {
    const MAX_WORDS: usize = 1_000;
    let words = text.split([';', '|', '\n']).map(|word| word.trim().to_owned());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_WORDS { Err(format!("has more than {MAX_WORDS} words")) } else { Ok(words) }
}

/// Parses `folder/` or `folder/name`: where the outputs go, and optionally the name that they get.
pub fn output(text: &str, root: &Path, manifest: &RelPath) -> CellResult<OutputPlace> {
    if text.contains('\0') {
        return Err("contains a NUL character".to_owned());
    }
    let (folder, name) = text.rsplit_once('/').unwrap_or((".", text));
    let folder = if folder.is_empty() { "/" } else { folder };
    let folder = resolve(folder.as_bytes(), root, manifest)?;
    let ends = ["srt", "vtt", "txt", "json"].map(|end| format!(".{end}"));
    let stem = ends.iter().find_map(|end| name.strip_suffix(end.as_str())).unwrap_or(name);
    match stem {
        "" => Ok(OutputPlace { folder, stem: None }),
        "." | ".." => Err("ends with . or ..: end a folder with /".to_owned()),
        _ => Ok(OutputPlace { folder, stem: Some(stem.to_owned()) }),
    }
}

/// Parses a priority; jobs with higher ones come first.
pub fn priority(text: &str) -> CellResult<i32> {
    let number = text.parse::<i32>().ok().filter(|number| number.abs() <= 1_000);
    number.ok_or_else(|| "must be a whole number from -1000 to 1000; higher numbers come first".to_owned())
}

/// Parses a checksum of the whole file.
pub fn checksum(algorithm: Algorithm, text: &str) -> CellResult<Checksum> {
    Checksum::parse(algorithm, text)
        .ok_or_else(|| format!("must be a {} checksum in hexadecimal digits", algorithm.name()))
}

/// Parses a length above 0 and returns milliseconds: `95`, `1:35`, `0:01:35.5`, `95,5`, `1m 35s`.
pub fn duration(text: &str) -> CellResult<u64> {
    // German and French spreadsheets write the fraction after a comma.
    let point = text.replace(',', ".");
    let by_colons = point.split(':').try_fold(0.0, |sum: f64, part| {
        let number = part.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
        Some(sum * 60.0 + number)
    });
    let spoken = || humantime::parse_duration(text).ok();
    let length = by_colons.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).or_else(spoken);
    let millis = length.and_then(|length| u64::try_from(length.as_millis()).ok()).filter(|millis| *millis > 0);
    millis.ok_or_else(|| "must be a length: seconds, 1:02:03 or \"1h 2m\"".to_owned())
}

/// Parses the number of channels that are billed.
pub fn channels(text: &str) -> CellResult<u64> {
    let number = text.parse::<u64>().ok().filter(|number| (1..=64).contains(number));
    number.ok_or_else(|| "must be a whole number from 1 to 64".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_their_manifest() {
        let manifest = RelPath::new("lists/may.csv");
        let file =
            |cell: &str| file(cell.as_bytes(), Path::new("/srv"), &manifest).map(|path| path.lossy().into_owned());
        assert_eq!(file("a.wav").unwrap(), "lists/a.wav");
        assert_eq!(file("../b/./a.wav").unwrap(), "b/a.wav");
        assert_eq!(file("../../mnt/a.wav").unwrap(), "/mnt/a.wav");
        assert_eq!(file("/srv/b/a.wav").unwrap(), "b/a.wav");
        assert!(file(r"C:\talks\a.wav").unwrap_err().contains("write /"));
        assert!(file("C:/talks/a.wav").unwrap_err().contains("drive"));
        assert!(file("talks/").unwrap_err().contains("folder"));
    }

    #[test]
    fn addresses_of_files_are_paths_and_odd_ones_are_told() {
        let path = |cell: &str| classify_media(cell.as_bytes(), false).map(|named| format!("{named:?}"));
        let bytes = |path: &str| format!("{:?}", MediaCell::Path(Cow::Borrowed(path.as_bytes())));
        assert_eq!(path("FILE:///srv/a%20b.wav"), Ok(bytes("/srv/a b.wav")));
        assert_eq!(path("file://localhost/a.wav"), Ok(bytes("/a.wav")));
        assert_eq!(path("a: b://c.wav"), Ok(bytes("a: b://c.wav")));
        assert_eq!(path("HTTPS://h/a"), Ok("Url".to_owned()));
        for odd in ["ftp://h/a", "s3://b/a", "file://h/a", "file://", "view-source+x://a"] {
            assert!(path(odd).unwrap_err().contains("file://"), "{odd}");
        }
        assert_eq!(
            classify_media(b"ftp://h/a", true),
            Ok(MediaCell::Url),
            "that of a column for addresses is told as such"
        );
    }

    #[test]
    fn outputs_have_a_folder_and_maybe_a_name() {
        let place = |text: &str| {
            let place = output(text, Path::new("/srv"), &RelPath::new("lists/may.csv")).unwrap();
            (place.folder.lossy().into_owned(), place.stem)
        };
        assert_eq!(place("subs/"), ("lists/subs".to_owned(), None));
        assert_eq!(place("AB.12"), ("lists".to_owned(), Some("AB.12".to_owned())));
        assert_eq!(place("/out/AB12.srt"), ("/out".to_owned(), Some("AB12".to_owned())));
        assert_eq!(place("../x"), (String::new(), Some("x".to_owned())));
    }

    #[test]
    fn lengths_as_people_write_them() {
        let millis = |text: &str| duration(text).ok();
        let expected = [Some(95_000), Some(95_000), Some(95_500), Some(95_000), None, None, None];
        assert_eq!(["95", "1:35", "0:01:35.5", "1m 35s", "soon", "0", "-1"].map(millis), expected);
        assert_eq!(millis("95,5"), Some(95_500));
    }
}
