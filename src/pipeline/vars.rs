//! What a source's templates may name of a job.

use crate::config::template::{NameVars, Vars};
use crate::domain::format::Format;
use crate::domain::job::JobKey;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// For the request's parameters.
pub fn of_job(key: &JobKey) -> Vars {
    let path = Path::new(OsStr::from_bytes(key.path.as_bytes()));
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    Vars {
        path: key.path.lossy().into_owned(),
        name: text(path.file_name()),
        stem: text(path.file_stem()),
        ext: text(path.extension()),
        source: key.source.to_string(),
        folder: text(path.parent().map(Path::as_os_str)),
    }
}

/// For an output's name.
pub fn of_output<'a>(job: &'a Vars, lang: Option<&'a str>, format: Format) -> NameVars<'a> {
    NameVars { stem: &job.stem, name: &job.name, source: &job.source, lang, format }
}
