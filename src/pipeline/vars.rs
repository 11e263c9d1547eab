//! What a source's templates may name of a job.

use crate::config::meant::Source;
use crate::config::name_as::NameVars;
use crate::config::variables::Vars;
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// For the request's parameters; without what only the file itself can tell (`media`).
pub fn of_job(source: &Source, job: &Job) -> Vars {
    let path = Path::new(OsStr::from_bytes(job.key.path.as_bytes()));
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    let lossy = job.key.path.lossy().into_owned();
    Vars {
        name: text(path.file_name()),
        stem: text(path.file_stem()),
        ext: text(path.extension()),
        source: job.key.source.to_string(),
        folder: text(path.parent().map(Path::as_os_str)),
        language: source.language.clone(),
        capture: source.capture.as_ref().map(|capture| capture.of(&lossy)).unwrap_or_default(),
        date: source.shared.zone.date(Timestamp(job.seen.mtime_ns.div_euclid(1_000_000))),
        env: source.shared.env.clone(),
        path: lossy,
        ..Vars::default()
    }
}

/// For an output's name.
pub fn of_output<'a>(job: &'a Vars, lang: Option<&'a str>, format: Format) -> NameVars<'a> {
    NameVars { lang, format, job }
}
