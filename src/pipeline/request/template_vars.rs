//! The variables that a source's templates may name.

use crate::config::model::Source;
use crate::config::template::name_as::NameVars;
use crate::config::template::variables::Vars;
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::Timestamp;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the variables for the request's parameters, without `media`, which only the file itself can tell.
pub fn of_job(source: &Source, job: &Job) -> Vars {
    let vars = of_recording(job);
    let columns = job.row.iter().flat_map(|row| &row.columns);
    let row_language = job.row.as_ref().and_then(|row| row.languages.first().cloned());
    Vars {
        source: job.key.source.to_string(),
        language: row_language.or(source.language.clone()),
        capture: source.capture.as_ref().map(|capture| capture.captures(&vars.path)).unwrap_or_default(),
        date: source.shared.zone.date(Timestamp(job.seen.mtime_ns.div_euclid(1_000_000))),
        env: source.shared.env.clone(),
        row: columns.map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect(),
        ..vars
    }
}

/// Returns the recording's own path, as templates have it.
pub fn path_of(job: &Job) -> String {
    of_recording(job).path
}

fn of_recording(job: &Job) -> Vars {
    match job.row.as_deref() {
        Some(row) => of_row(row),
        None => of_path(job.key.path.as_bytes()),
    }
}

fn of_row(row: &ManifestRow) -> Vars {
    match &row.media {
        RowMedia::File(path) => of_path(path.as_bytes()),
        RowMedia::Url(url) => {
            let named = of_path(url.file_name().as_bytes());
            Vars { path: url.name(), folder: String::new(), ..named }
        }
    }
}

fn of_path(path: &[u8]) -> Vars {
    let whole = Path::new(OsStr::from_bytes(path));
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    Vars {
        path: String::from_utf8_lossy(path).into_owned(),
        name: text(whole.file_name()),
        stem: text(whole.file_stem()),
        ext: text(whole.extension()),
        folder: text(whole.parent().map(Path::as_os_str)),
        ..Vars::default()
    }
}

/// Returns the variables for the names of a job's outputs, which go beside this path and are named after it.
pub fn of_outputs(source: &Source, job: &Job, beside: &Path) -> Vars {
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    Vars { name: text(beside.file_name()), stem: text(beside.file_stem()), ..of_job(source, job) }
}

/// Returns the variables for the name of one output.
pub fn of_output<'a>(job: &'a Vars, lang: Option<&'a str>, format: Format) -> NameVars<'a> {
    NameVars { lang, format, job }
}
