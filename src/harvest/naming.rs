//! Names of the outputs of records that belong to no source.

use crate::client::contract::FullListItem;
use crate::domain::format::Format;
use crate::output::name_candidates::candidates;
use crate::output::publish::Names;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use serde_json::Value;
use std::path::Path;

/// Longer names are cut, since an id, a language and an extension have to follow.
const LONGEST: usize = 120;

/// Returns the name of a record's recording, one plain path component, never empty: the text under the key `by` of
/// its metadata, else the file's name, else the last part of the address it was fetched from, else its id.
pub fn recording(whole: &FullListItem, record: &Record<Spoken, BoundedValue>, by: Option<&str>) -> String {
    let file = record.file.as_ref();
    let of_metadata = by.and_then(|key| record.custom_metadata.as_ref()?.get(key)).map(text);
    let of_file = || file.and_then(|file| file.filename.as_deref()).map(last_part);
    let of_address = || file.and_then(|file| file.source.as_deref()).map(of_address);
    let names = [of_metadata, of_file(), of_address()];
    let name = names.into_iter().flatten().map(|name| plain(&name)).find(|name| !name.is_empty());
    name.unwrap_or_else(|| plain(whole.id.as_str()))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the last part of a path, whichever system wrote it.
fn last_part(path: &str) -> String {
    path.rsplit(['/', '\\']).find(|part| !part.trim().is_empty()).unwrap_or_default().to_owned()
}

/// Returns the last part of an address without its query, which may contain a key.
fn of_address(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    last_part(path)
}

/// Returns one path component that is no hidden file, leads nowhere else, and leaves room for what follows it.
fn plain(name: &str) -> String {
    let safe = |c: char| if c.is_control() || matches!(c, '/' | '\\') { '_' } else { c };
    let name: String = name.trim().chars().map(safe).collect();
    let name = name.trim_start_matches('.');
    match Path::new(name).extension().and_then(|ext| ext.to_str()) {
        Some(ext) if name.len() > LONGEST && ext.len() < 10 => {
            format!("{}.{ext}", &name[..name.floor_char_boundary(LONGEST - 10)])
        }
        _ => name[..name.floor_char_boundary(LONGEST)].to_owned(),
    }
}

/// Returns the names for one output, best first: `talk.en.srt`; if that name is taken, with the record's id, as many
/// recordings are called `audio.wav`.
pub fn names(recording: &str, id: &str, language: Option<&str>, format: Format) -> impl Names + use<> {
    let path = Path::new(recording);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let language = language.map(|code| format!(".{code}")).unwrap_or_default();
    let end = format!("{language}.{}", format.ext());
    let own = format!("{stem}.{}", plain(id));
    let first = candidates(path, &format!("{stem}{end}"), false).take(1);
    first.chain(candidates(Path::new(&own), &format!("{own}{end}"), false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::answer::whole;
    use serde_json::json;

    fn named(record: Value, by: Option<&str>) -> String {
        let whole = whole(record.to_string().as_bytes()).unwrap();
        recording(&whole, &serde_json::from_slice(&whole.raw).unwrap(), by)
    }

    #[test]
    fn a_record_is_called_as_its_recording_was() {
        let of = |file: Value| json!({ "id": "t-1", "status": "done", "file": file, "custom_metadata": {"tape": 7} });
        assert_eq!(named(of(json!({ "filename": "talk.wav" })), None), "talk.wav");
        assert_eq!(named(of(json!({ "filename": "../../etc/passwd" })), None), "passwd");
        assert_eq!(named(of(json!({ "filename": "C:\\tapes\\a.mp3" })), None), "a.mp3");
        assert_eq!(named(of(json!({ "filename": "..." })), None), "t-1");
        assert_eq!(named(of(json!({ "filename": "a\nb" })), None), "a_b");
        assert_eq!(named(of(json!({ "source": "https://h.example/x/y.mp4?key=secret" })), None), "y.mp4");
        assert_eq!(named(of(json!({ "source": "https://h.example" })), None), "t-1");
        assert_eq!(named(of(json!(null)), None), "t-1");
        assert_eq!(named(of(json!({ "filename": "talk.wav" })), Some("tape")), "7");
        assert_eq!(named(of(json!({ "filename": "talk.wav" })), Some("absent")), "talk.wav");
        assert!(named(of(json!({ "filename": "é".repeat(400) + ".wav" })), None).len() <= LONGEST);
    }

    #[test]
    fn where_a_name_is_taken_the_id_tells_them_apart() {
        let names: Vec<_> = names("talk.wav", "t-1", Some("en"), Format::Srt).take(3).collect();
        assert_eq!(names[..2], ["talk.en.srt", "talk.t-1.en.srt"]);
    }
}
