//! What a job is made with: its source's template, filled in, and over it what is said beside the recording. Asked
//! before the upload, and once more right before the first create: until then every change counts.

use crate::beneath::{RootedPath, access_of};
use crate::clock::Clock;
use crate::config::model::Source;
use crate::config::template::name_as::NameProblem;
use crate::config::template::overlay::{Overlay, nearest};
use crate::config::template::sidecar::parse;
use crate::config::template::text::{RenderedTemplate, Template, Templates};
use crate::config::template::variables::Vars;
use crate::domain::access::Access;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::domain::request_record::{MediaTags, RequestRecord};
use crate::domain::stage::{JobEvent, Skip};
use crate::domain::track_selection::TrackSelection;
use crate::media::decode::DecodeError;
use crate::media::tags::describe;
use crate::pipeline::blocking::blocking;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::row_overrides;
use crate::pipeline::request::template_vars;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::source::filter::scribedignore::IgnoreFiles;
use crate::source::metadata::sidecars;
use crate::source::metadata::sidecars::Sidecar;
use crate::source::metadata::stamp::{FileLook, look};
use crate::source::mount::source_mount::Mount;
use crate::source::place::{Recording, recording};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A template filled in for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltRequest {
    /// What is asked of the service.
    pub rendered: RenderedTemplate,
    /// What is kept of it with the job.
    pub making: RequestRecord,
}

/// What a job is made with, and where each part of it comes from.
#[derive(Debug)]
pub struct ExplainedRequest {
    /// Its template.
    pub template: Template,
    /// What is said of the recording itself, the nearest last.
    pub overlays: Vec<Overlay>,
    /// What the template may name.
    pub vars: Vars,
    /// What is written.
    pub outputs: Vec<Format>,
    /// Which sound of it is sent, where that is not left to it.
    pub pick: Option<TrackSelection>,
    row: Option<Box<ManifestRow>>,
}

/// What lies around a recording that has a say in it.
#[derive(Debug)]
pub struct BesideSettings {
    is_ignored: bool,
    sidecars: Result<Vec<Sidecar>, String>,
}

impl BesideSettings {
    /// Looks. Nothing lies around what lies elsewhere. What a row orders is ordered, whatever is ignored. Blocks.
    pub fn look(source: &Source, job: &Job) -> Self {
        let Some(path) = below(source, job) else { return Self { is_ignored: false, sidecars: Ok(Vec::new()) } };
        let whole = Path::new(OsStr::from_bytes(path.as_bytes()));
        let ignored = || IgnoreFiles::new(&source.folder).rule_anywhere(whole, false).is_some();
        Self { is_ignored: job.row.is_none() && ignored(), sidecars: sidecars::of(&source.folder, &path) }
    }

    /// What stands in the way of going on: it is to be passed over, or somebody is writing at its settings.
    fn hindrance(&self, mount: &Mount, clock: &dyn Clock, job: &Job) -> Option<StageOutcome> {
        if self.is_ignored {
            return Some(StageOutcome::Step(JobEvent::Skipped { why: Skip::Ignored }));
        }
        let at = clock.moment();
        let changed = sidecars::changed(self.sidecars.as_deref().unwrap_or_default())?;
        let until = at.of_past(changed)?.after(mount.settle_of(job));
        (until > at.now).then_some(StageOutcome::Sleep { until, reason: None })
    }
}

/// Where the recording lies below its source's folder; `None` where it does not.
fn below(source: &Source, job: &Job) -> Option<RelPath> {
    let Recording::File(path) = recording(source, job) else { return None };
    Some(RelPath::new(path.below_folder(&source.folder)?.as_os_str().as_bytes()))
}

/// What stands where a job's recording is, and what lies around it.
pub async fn look_around(mount: &Mount, medium: MediaFile, job: &Job) -> (io::Result<FileLook>, BesideSettings) {
    let (source, of) = (Arc::clone(mount.source()), job.clone());
    if let MediaFile::File { path, disk } = medium {
        return blocking(move || (look(&path, disk), BesideSettings::look(&source, &of))).await;
    }
    let around = blocking(move || BesideSettings::look(&source, &of)).await;
    (medium.look().await, around)
}

/// Makes what a job is made with; or says why that is not to be, now or at all.
///
/// # Errors
/// What stands beside the recording, or its template, cannot be understood.
pub async fn make(
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    around: &BesideSettings,
) -> Result<Result<BuiltRequest, StageOutcome>, Fault> {
    if let Some(outcome) = around.hindrance(mount, clock, job) {
        return Ok(Err(outcome));
    }
    let (source, now) = (mount.source(), clock.now());
    let mut laid = lay(source, job, around, now)?;
    laid.ask(source, job, now).await?;
    let mut made = laid.made(source, now)?;
    made.making.access = access(source, job).await;
    Ok(Ok(made))
}

/// Who may use a recording that lies on this machine, as it was last seen: its outputs take that where it is gone when
/// they are written.
async fn access(source: &Source, job: &Job) -> Option<Access> {
    let now = match recording(source, job) {
        Recording::File(path) if source.bucket.is_none() => blocking(move || access_of(&path).ok()).await,
        _ => None,
    };
    now.or_else(|| job.making.as_ref().and_then(|making| making.access.clone()))
}

/// What a job would be made with as far as that can be told without asking the recording itself, `None` where it
/// cannot; and which sound of it would be sent, where that is not all. Blocks.
///
/// # Errors
/// Why it would not be made: what is said of it cannot be understood, or does not render.
pub fn foretold(
    source: &Source,
    job: &Job,
    now: Timestamp,
) -> Result<(Option<BuiltRequest>, Option<TrackSelection>), Fault> {
    let laid = lay(source, job, &BesideSettings::look(source, job), now)?;
    let made = if laid.template.uses("media") { None } else { Some(laid.made(source, now)?) };
    Ok((made, laid.pick))
}

/// What becomes of a job whose settings are wrong.
const WHEN_MENDED: &str = "scribed does not send the recording until that is fixed; other jobs continue";

/// Lays what is said of a job together.
///
/// # Errors
/// What stands beside the recording cannot be understood.
pub fn lay(source: &Source, job: &Job, around: &BesideSettings, now: Timestamp) -> Result<ExplainedRequest, Fault> {
    let beside = |words: String| Fault::new(FaultKind::Sidecar, format!("{words}; {WHEN_MENDED}"), now);
    let found = around.sidecars.as_ref().map_err(|words| beside(words.clone()))?;
    let mut overlays = understood(found, &source.shared.templates).map_err(beside)?;
    if let Some(row) = job.row.as_deref() {
        // What lies beside the recording itself is nearer than its row, and its folder is farther.
        let own = overlays.iter().rposition(|overlay| !overlay.from.ends_with(sidecars::OF_FOLDER));
        overlays.insert(own.unwrap_or(overlays.len()), row_overrides::overlay(row));
    }
    let failed = |words| Fault::new(FaultKind::Template, words, now);
    let template = template_of(source, &overlays).map_err(failed)?;
    let mut vars = template_vars::of_job(source, job);
    if let Some(language) = nearest(&overlays, |overlay| overlay.language.clone()) {
        vars.language = Some(language);
    }
    let outputs = nearest(&overlays, |overlay| overlay.outputs.clone()).unwrap_or_else(|| source.outputs.clone());
    let pick = pick(source, &overlays);
    Ok(ExplainedRequest { template, overlays, vars, outputs, pick, row: job.row.clone() })
}

/// Which sound of a recording is sent.
fn pick(source: &Source, overlays: &[Overlay]) -> Option<TrackSelection> {
    let track = nearest(overlays, |overlay| overlay.track.clone()).or_else(|| source.track.clone());
    TrackSelection::new(
        track,
        nearest(overlays, |overlay| overlay.channels.clone()).or_else(|| source.channels.clone()),
    )
}

/// The template that is named nearest.
fn template_of(source: &Source, overlays: &[Overlay]) -> Result<Template, String> {
    let Some((name, from)) = nearest(overlays, |overlay| Some((overlay.template.as_ref()?, &overlay.from))) else {
        return Ok(source.template.clone());
    };
    source.shared.templates.get(name).cloned().ok_or_else(|| {
        format!(
            "{from} names the template {name}, and jobs.toml has no [template.{name}]: add it to jobs.toml, or \
             name another template in {from}"
        )
    })
}

impl ExplainedRequest {
    /// Asks the recording itself, where its template names what it says. What was asked before is not asked again.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn ask(&mut self, source: &Source, job: &Job, now: Timestamp) -> Result<(), Fault> {
        let Recording::File(path) = recording(source, job) else { return Ok(()) };
        if !self.template.uses("media") {
            return Ok(());
        }
        let known = job.making.as_ref().and_then(|making| making.described.clone());
        self.vars.media = match known {
            Some(described) => described,
            None => described(&path, now).await?,
        };
        Ok(())
    }

    /// Fills it in.
    ///
    /// # Errors
    /// It does not render, or not to what the interface takes; or its outputs would have no names.
    pub fn made(&self, source: &Source, now: Timestamp) -> Result<BuiltRequest, Fault> {
        let failed = |words: String| Fault::new(FaultKind::Template, words, now);
        let rendered = self.template.render(&self.vars, &self.overlays);
        let mut rendered = rendered.map_err(|problem| match problem.is_of_overlays() {
            true => Fault::new(FaultKind::Sidecar, format!("{problem}; {WHEN_MENDED}"), now),
            false => failed(problem.to_string()),
        })?;
        if let Some(row) = &self.row {
            rendered = row_overrides::apply(row, rendered).map_err(failed)?;
        }
        if let (Some(pick), Some(row)) = (&self.pick, self.row.as_ref().filter(|row| row.is_remote())) {
            let words = "its row names an address that the service fetches, and scribed cannot extract a part of \
                         it; move the row to a manifest of a source without `track` and `channels`";
            return Err(failed(format!("cannot send only {pick}: {words} ({})", row.place())));
        }
        rendered.pick = self.pick.clone();
        // Before anything is paid: what was paid for must have a name.
        self.named(source).map_err(|problem| failed(problem.to_string()))?;
        let making = RequestRecord {
            template: self.template.name().to_owned(),
            metadata: rendered.metadata.clone(),
            outputs: self.outputs.clone(),
            priority: self.priority(),
            described: self.template.uses("media").then(|| self.vars.media.clone()),
            access: None,
            is_sent: false,
        };
        Ok(BuiltRequest { rendered, making })
    }

    /// By what stands beside the recording; its folder is farther than a row that says so itself.
    fn priority(&self) -> Option<i16> {
        let row_says = self.row.as_ref().is_some_and(|row| row.priority != 0);
        let counts = |overlay: &&Overlay| !row_says || !overlay.from.ends_with(sidecars::OF_FOLDER);
        self.overlays.iter().rev().filter(counts).find_map(|overlay| overlay.priority)
    }

    fn named(&self, source: &Source) -> Result<(), NameProblem> {
        self.outputs.iter().try_for_each(|format| {
            source.name_as.render(&template_vars::of_output(&self.vars, None, *format))?;
            source.name_as.render(&template_vars::of_output(&self.vars, Some("en"), *format)).map(drop)
        })
    }
}

async fn described(path: &RootedPath, now: Timestamp) -> Result<MediaTags, Fault> {
    match describe(path).await {
        Ok(described) => Ok(described),
        // It says nothing: a template may have words for that.
        Err(DecodeError::NotMedia { .. } | DecodeError::Empty | DecodeError::NoAudio) => Ok(Default::default()),
        Err(error) => {
            let words = format!("the template uses `media`, and scribed cannot read the file's tags: {error}");
            Err(Fault::new(FaultKind::Unreadable, words, now))
        }
    }
}

/// What they say, in their order.
///
/// # Errors
/// Everything that is wrong with them, in words.
fn understood(sidecars: &[Sidecar], templates: &Templates) -> Result<Vec<Overlay>, String> {
    let (good, wrong): (Vec<_>, Vec<_>) =
        sidecars.iter().map(|sidecar| parse(&sidecar.from, &sidecar.file.text, templates)).partition(Result::is_ok);
    if wrong.is_empty() {
        return Ok(good.into_iter().filter_map(Result::ok).collect());
    }
    Err(wrong.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; "))
}

/// Whether the file is to be passed over, or what is said of it has changed since this was made of it; `None` where
/// a create left already: then it stays as it is.
///
/// # Errors
/// As [`make`].
pub async fn remade(
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    around: &BesideSettings,
) -> Result<Option<Result<BuiltRequest, StageOutcome>>, Fault> {
    if job.making.as_ref().is_some_and(|making| making.is_sent) {
        return Ok(None);
    }
    make(mount, clock, job, around).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::metadata::small_file::SmallFile;

    #[test]
    fn everything_that_is_wrong_is_told_with_line_and_mend() {
        let text = "langage = \"de\"\ntemplate = \"interviw\"\nbudget = { day = \"1h\" }\noutputs = []\nvocabulary = [1]\n\
                    [parameters]\ndiarisation = true\naudio_url = \"https://x.example\"\nsentences = \"{{ stem }}\"\n\
                    subtitles_config = { maximum_rows_per_caption = 9 }\n";
        let file = SmallFile { text: text.to_owned(), changed: Timestamp(0) };
        let told = understood(&[Sidecar { from: "a/talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
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
            understood(&[Sidecar { from: "talk.toml".to_owned(), file }], &Templates::new())
        };
        assert_eq!(said("priority = -7\n").unwrap()[0].priority, Some(-7));
        let told = said("priority = 1001\n").unwrap_err();
        assert!(told.starts_with("talk.toml, line 1: `priority` must be a whole number from -1000 to 1000"), "{told}");
        let file = SmallFile { text: "language = \n".to_owned(), changed: Timestamp(0) };
        let told = understood(&[Sidecar { from: "talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
        assert!(told.starts_with("talk.toml, line 1: this is not valid TOML: "), "{told}");
    }
}
