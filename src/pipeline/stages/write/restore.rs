//! Writes missing outputs of a written job again (`verify --repair`).

use crate::domain::fault::Fault;
use crate::domain::format::Format;
use crate::domain::job::{Job, Output};
use crate::domain::names::Hash;
use crate::domain::stage::{JobEvent, Stage};
use crate::output::group_fsync::Syncs;
use crate::output::name_candidates::CANDIDATES;
use crate::output::publish::{Names, OwnOutputs, PendingOutput};
use crate::output::render_result::OutputKind;
use crate::pipeline::stages::write::in_flight::Writing;
use crate::pipeline::stages::write::own_outputs::output_folder;
use crate::pipeline::stages::write::render::render_kept_result;
use crate::pipeline::stages::write::{WriteContext, publish};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::StoreError;
use crate::store::params::ParamFiles;
use std::sync::Arc;

/// What is needed to write outputs outside the engine.
#[derive(Clone)]
pub struct Tools {
    /// The stored parameters.
    pub params: Arc<ParamFiles>,
    /// Syncs the files of all writers together.
    pub syncs: Arc<Syncs>,
    /// The jobs whose outputs are being written.
    pub writing: Arc<Writing>,
}

/// Why missing outputs were not restored.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// The result that they are made from is not kept here, or damaged.
    #[error("the kept result is missing or damaged")]
    NoResult,
    /// The job is being handled, or has changed meanwhile.
    #[error("scribed is writing the outputs at this moment; try again")]
    Moving,
    /// The outputs went to another place than outputs of this job go now.
    #[error(
        "the outputs were written to {0}, and jobs.toml now names another place: `scribed retry --fresh` writes them there"
    )]
    Elsewhere(String),
    /// The job has other outputs now.
    #[error("{0} is not among the outputs of the job")]
    NotMade(String),
    /// The outputs cannot be made or written.
    #[error("{}", .0.words)]
    Fault(Fault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fault> for NotRestored {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Writes these outputs of a written job again, under the names that they had. Files that are there by now are left
/// alone.
///
/// # Errors
/// [`NotRestored`].
pub async fn restore(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    missing: &[Output],
) -> Result<(), NotRestored> {
    let Stage::Written { order, transcription, .. } = &job.stage else { return Err(NotRestored::Moving) };
    let (now, source) = (context.clock.now(), mount.source());
    let at = output_folder(source, job);
    if let Some(output) = missing.iter().find(|output| output.at != at) {
        return Err(NotRestored::Elsewhere(output.display_name()));
    }
    let guard = context.writing.begin(job.id).ok_or(NotRestored::Moving)?;
    let rendered =
        render_kept_result(context, source, job, order, transcription, now).await?.ok_or(NotRestored::NoResult)?;
    let (mut wanted, mut outputs) = (Vec::new(), job.outputs.clone());
    let mut made: Vec<_> = rendered.kinds.into_iter().zip(rendered.wanted).map(Some).collect();
    for (output, made) in missing.iter().zip(assign(missing, &mut made)) {
        let name = output.file_name();
        let bytes = made.ok_or_else(|| NotRestored::NotMade(output.display_name()))?;
        let hash = Hash::of(&bytes);
        outputs.iter_mut().filter(|own| **own == *output).for_each(|own| own.hash = hash);
        wanted.push(PendingOutput { candidates: std::iter::once(name), bytes });
    }
    // Another release may render other bytes. They are committed before they are published: whoever finds the files
    // knows them as ours.
    if outputs != job.outputs && !context.store.overrule(job, JobEvent::Restored { outputs }, now).await?.is_done() {
        return Err(NotRestored::Moving);
    }
    publish(context, mount, job, wanted, OwnOutputs::default(), guard).await?;
    Ok(())
}

/// Finds what each missing output is made from again. First by the names that outputs are given now; what is left, such
/// as after a change of `name_as`, by the longest format extension and by the language in the name.
fn assign<N: Names>(missing: &[Output], made: &mut [Option<(OutputKind, PendingOutput<N>)>]) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<Option<Vec<u8>>> = missing.iter().map(|_| None).collect();
    // The preferred names of all outputs come before the alternatives of any.
    for names in [1, CANDIDATES] {
        for (output, found) in missing.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let name = output.file_name();
            let has_name =
                |one: &PendingOutput<N>| one.candidates.clone().take(names).any(|candidate| candidate == name);
            *found = take(made, |_, one| has_name(one));
        }
    }
    for (output, found) in missing.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
        let name = output.name.lossy().into_owned();
        let Some(format) = Format::of_name(&name) else { continue };
        let in_language = |kind: &OutputKind| {
            kind.language.as_deref().is_some_and(|language| name.split('.').any(|part| part == language))
        };
        *found = take(made, |kind, _| kind.format == format && in_language(kind))
            .or_else(|| take(made, |kind, _| kind.format == format && !kind.is_translation));
    }
    found
}

fn take<N>(
    made: &mut [Option<(OutputKind, PendingOutput<N>)>],
    fits: impl Fn(&OutputKind, &PendingOutput<N>) -> bool,
) -> Option<Vec<u8>> {
    let one = made.iter_mut().find(|one| one.as_ref().is_some_and(|(kind, one)| fits(kind, one)))?;
    one.take().map(|(_, one)| one.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::path::RelPath;
    use crate::output::name_candidates::candidates;
    use std::path::Path;

    fn made(format: Format, language: &str, name: &str) -> Option<(OutputKind, PendingOutput<impl Names + use<>>)> {
        let kind = OutputKind { format, language: Some(language.into()), is_translation: language != "en" };
        let bytes = format!("{} {language}", format.ext()).into_bytes();
        Some((kind, PendingOutput { candidates: candidates(Path::new("/in/talk.wav"), name, false), bytes }))
    }

    fn assigned(names: &[&str]) -> Vec<String> {
        let mut made = vec![
            made(Format::Txt, "en", "talk.en.txt"),
            made(Format::TimesTxt, "en", "talk.en.times.txt"),
            made(Format::Summary, "en", "talk.en.summary.txt"),
            made(Format::Txt, "fr", "talk.fr.txt"),
            made(Format::TimesTxt, "fr", "talk.fr.times.txt"),
        ];
        let missing: Vec<Output> =
            names.iter().map(|name| Output { name: RelPath::new(*name), hash: Hash::of(b""), at: None }).collect();
        let text = |bytes: Option<Vec<u8>>| bytes.map_or("-".to_owned(), |bytes| String::from_utf8(bytes).unwrap());
        assign(&missing, &mut made).into_iter().map(text).collect()
    }

    #[test]
    fn a_missing_output_is_found_by_its_name() {
        let names = ["talk.fr.txt", "talk.en.times.txt", "talk.wav.en.2.txt", "talk.en.summary.txt"];
        assert_eq!(assigned(&names), ["txt fr", "times.txt en", "txt en", "summary.txt en"]);
    }

    #[test]
    fn under_an_older_name_it_is_found_by_format_and_language() {
        let names = ["old.fr.times.txt", "old.txt", "old.times.txt", "old.fr.txt", "old.json", "old.summary.txt"];
        assert_eq!(assigned(&names), ["times.txt fr", "txt en", "times.txt en", "txt fr", "-", "summary.txt en"]);
        assert_eq!(assigned(&["old.txt", "older.txt"]), ["txt en", "-"]);
    }
}
