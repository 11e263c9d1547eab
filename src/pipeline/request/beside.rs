//! What lies around a recording and affects its request: sidecars, and rules that ignore it.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Source;
use crate::config::template::overlay::Overlay;
use crate::config::template::sidecar::parse;
use crate::config::template::text::Templates;
use crate::domain::job::Job;
use crate::domain::path::RelPath;
use crate::domain::stage::{JobEvent, Skip};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::source::filter::scribedignore::IgnoreFiles;
use crate::source::metadata::file_look::{FileLook, stat};
use crate::source::metadata::sidecars;
use crate::source::metadata::sidecars::Sidecar;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{Recording, recording};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// What lies around a recording and affects its request.
#[derive(Debug)]
pub struct BesideSettings {
    pub(super) is_ignored: bool,
    pub(super) sidecars: Result<Vec<Sidecar>, String>,
}

impl BesideSettings {
    /// Reads the sidecars and the ignore rules. A recording outside the source's folder has none, and a recording
    /// that a row orders is never ignored. Blocks.
    pub fn read(source: &Source, job: &Job) -> Self {
        let Some(path) = path_in_folder(source, job) else {
            return Self { is_ignored: false, sidecars: Ok(Vec::new()) };
        };
        let whole = Path::new(OsStr::from_bytes(path.as_bytes()));
        let ignored = || IgnoreFiles::new(&source.folder).rule_anywhere(whole, false).is_some();
        Self { is_ignored: job.row.is_none() && ignored(), sidecars: sidecars::find(&source.folder, &path) }
    }

    /// Returns the outcome for a job that cannot go on now: it is ignored, or somebody may still be writing its
    /// settings.
    pub fn skip_or_wait(&self, mount: &Mount, clock: &dyn Clock, job: &Job) -> Option<StageOutcome> {
        if self.is_ignored {
            return Some(StageOutcome::Step(JobEvent::Skipped { why: Skip::Ignored }));
        }
        let at = clock.moment();
        let changed = sidecars::changed(self.sidecars.as_deref().unwrap_or_default())?;
        let until = at.of_past(changed)?.saturating_add(mount.settle_of(job));
        (until > at.now).then_some(StageOutcome::Sleep { until, reason: None })
    }
}

/// Returns where the recording lies below its source's folder; `None` if it does not.
fn path_in_folder(source: &Source, job: &Job) -> Option<RelPath> {
    let Recording::File(path) = recording(source, job) else { return None };
    Some(RelPath::new(path.below_folder(&source.folder)?.as_os_str().as_bytes()))
}

/// Looks at a job's recording, and reads what lies around it.
pub async fn look_with_settings(mount: &Mount, medium: MediaFile, job: &Job) -> (io::Result<FileLook>, BesideSettings) {
    let (source, of) = (Arc::clone(mount.source()), job.clone());
    if let MediaFile::File { path, disk } = medium {
        return blocking(move || (stat(&path, disk), BesideSettings::read(&source, &of))).await;
    }
    let around = blocking(move || BesideSettings::read(&source, &of)).await;
    (medium.look().await, around)
}

/// Parses the sidecars in their order.
///
/// # Errors
/// Everything that is wrong with them, in words.
pub fn parse_sidecars(sidecars: &[Sidecar], templates: &Templates) -> Result<Vec<Overlay>, String> {
    let (good, wrong): (Vec<_>, Vec<_>) =
        sidecars.iter().map(|sidecar| parse(&sidecar.from, &sidecar.file.text, templates)).partition(Result::is_ok);
    if wrong.is_empty() {
        return Ok(good.into_iter().filter_map(Result::ok).collect());
    }
    Err(wrong.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use crate::source::metadata::small_file::SmallFile;

    #[test]
    fn everything_that_is_wrong_is_reported_with_line_and_fix() {
        let text = "langage = \"de\"\ntemplate = \"interviw\"\nbudget = { day = \"1h\" }\noutputs = []\nvocabulary = [1]\n\
                    [parameters]\ndiarisation = true\naudio_url = \"https://x.example\"\nsentences = \"{{ stem }}\"\n\
                    subtitles_config = { maximum_rows_per_caption = 9 }\n";
        let file = SmallFile { text: text.to_owned(), changed: Timestamp(0) };
        let told = parse_sidecars(&[Sidecar { from: "a/talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
        insta::assert_snapshot!(told.replace("; a/", "\na/"), @r#"
        a/talk.toml, line 1: unknown key `langage` (did you mean `language`?)
        a/talk.toml, line 2: `template` names the template `interviw`, which does not exist (jobs.toml needs [template.interviw])
        a/talk.toml, line 3: `budget` is not allowed in a sidecar (write it in jobs.toml)
        a/talk.toml, line 4: `outputs` must name at least one (name some of txt, srt, vtt, json; to ignore the recording, name it in a .scribedignore)
        a/talk.toml, line 5: `vocabulary` must be a word, found an integer (write it like "Ada", or { value = "Ada", pronunciations = ["ei da"] })
        a/talk.toml, line 7: `parameters.diarisation` is not a parameter of the interface (did you mean `diarization`?)
        a/talk.toml, line 8: `parameters.audio_url` must not be set here (remove it; scribed sets it for each job)
        a/talk.toml, line 9: `parameters.sentences` must not contain template syntax here (write the value itself; `template` selects a [template.NAME] of jobs.toml)
        a/talk.toml, line 10: `parameters.subtitles_config.maximum_rows_per_caption` must be an integer from 1 to 5 (change it, or remove it to use the service's default)
        "#);
        let said = |text: &str| {
            let file = SmallFile { text: text.to_owned(), changed: Timestamp(0) };
            parse_sidecars(&[Sidecar { from: "talk.toml".to_owned(), file }], &Templates::new())
        };
        assert_eq!(said("priority = -7\n").unwrap()[0].priority, Some(-7));
        let told = said("priority = 1001\n").unwrap_err();
        assert!(told.starts_with("talk.toml, line 1: `priority` must be a whole number from -1000 to 1000"), "{told}");
        let file = SmallFile { text: "language = \n".to_owned(), changed: Timestamp(0) };
        let told = parse_sidecars(&[Sidecar { from: "talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
        assert!(told.starts_with("talk.toml, line 1: this is not valid TOML: "), "{told}");
    }
}
