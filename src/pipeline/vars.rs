//! What a source's templates may name of a job, and what they give for it.

use crate::config::meant::Source;
use crate::config::template::{NameVars, RenderProblem, Rendered, Vars};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::row::{Row, RowMedia};
use crate::pipeline::ordered;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The request's parameters and metadata for a job: its template filled in, and what its row orders.
///
/// # Errors
/// A template that does not render, or to something that the interface does not take.
pub fn rendered(source: &Source, job: &Job, now: Timestamp) -> Result<Rendered, Fault> {
    let failed = |words: String| Fault::new(FaultKind::Template, words, now);
    let vars = of_job(job);
    let template = ordered::template(source, job.row.as_deref()).map_err(failed)?;
    let rendered = template.render(&vars).map_err(|problem: RenderProblem| failed(problem.to_string()))?;
    match job.row.as_deref() {
        Some(row) => ordered::apply(row, rendered).map_err(failed),
        None => Ok(rendered),
    }
}

/// For the request's parameters.
pub fn of_job(job: &Job) -> Vars {
    match job.row.as_deref() {
        Some(row) => of_row(row, job),
        None => of_path(job.key.path.as_bytes(), job),
    }
}

fn of_row(row: &Row, job: &Job) -> Vars {
    match &row.media {
        RowMedia::File(path) => of_path(path.as_bytes(), job),
        RowMedia::Url(url) => {
            let named = of_path(url.file_name().as_bytes(), job);
            Vars { path: url.name(), folder: String::new(), ..named }
        }
    }
}

fn of_path(path: &[u8], job: &Job) -> Vars {
    let whole = Path::new(OsStr::from_bytes(path));
    let text = |part: Option<&OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    Vars {
        path: String::from_utf8_lossy(path).into_owned(),
        name: text(whole.file_name()),
        stem: text(whole.file_stem()),
        ext: text(whole.extension()),
        source: job.key.source.to_string(),
        folder: text(whole.parent().map(Path::as_os_str)),
    }
}

/// For an output's name: after the path that outputs go beside.
pub fn of_output<'a>(
    (stem, name): (&'a str, &'a str),
    source: &'a str,
    lang: Option<&'a str>,
    format: Format,
) -> NameVars<'a> {
    NameVars { stem, name, source, lang, format }
}
