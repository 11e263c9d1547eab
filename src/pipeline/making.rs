//! What a job is made with: its source's template, filled in, and over it what is said beside the recording. Asked
//! before the upload, and once more right before the first create: until then every change counts.

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::config::name_as::NameProblem;
use crate::config::overlay::{Overlay, nearest};
use crate::config::sidecar::parse;
use crate::config::template::{Rendered, Template, Templates};
use crate::config::variables::Vars;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::making::{Described, Making};
use crate::domain::names::Timestamp;
use crate::domain::stage::{Event, Skip};
use crate::media::decode::DecodeError;
use crate::media::describing::describe;
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::vars;
use crate::source::folder::full_path;
use crate::source::ignoring::Ignoring;
use crate::source::mount::Mount;
use crate::source::sidecars::{self, Sidecar};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A template filled in for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// What is asked of the service.
    pub rendered: Rendered,
    /// What is kept of it with the job.
    pub making: Making,
}

/// What a job is made with, and where each part of it comes from.
#[derive(Debug)]
pub struct Laid {
    /// Its template.
    pub template: Template,
    /// What is said of the recording itself, the nearest last.
    pub overlays: Vec<Overlay>,
    /// What the template may name.
    pub vars: Vars,
    /// What is written.
    pub outputs: Vec<Format>,
}

/// What lies around a recording that has a say in it.
pub struct Around {
    ignored: Option<String>,
    sidecars: Result<Vec<Sidecar>, String>,
}

impl Around {
    /// Looks. Blocks.
    pub fn look(source: &Source, job: &Job) -> Self {
        let path = Path::new(OsStr::from_bytes(job.key.path.as_bytes()));
        let ignored = Ignoring::new(&source.folder).rule_anywhere(path, false).map(|rule| rule.to_string());
        Self { ignored, sidecars: sidecars::of(&source.folder, &job.key.path) }
    }

    /// What stands in the way of going on: it is to be passed over, or somebody is writing at its settings.
    fn hindrance(&self, mount: &Mount, clock: &dyn Clock) -> Option<Outcome> {
        if self.ignored.is_some() {
            return Some(Outcome::Step(Event::Skipped { why: Skip::Ignored }));
        }
        let at = clock.moment();
        let changed = sidecars::changed(self.sidecars.as_deref().unwrap_or_default())?;
        let until = at.of_past(changed)?.after(mount.settle());
        (until > at.now).then_some(Outcome::Sleep { until, reason: None })
    }
}

/// Makes what a job is made with; or says why that is not to be, now or at all.
///
/// # Errors
/// What stands beside the recording, or its template, cannot be understood.
pub async fn make(mount: &Mount, clock: &dyn Clock, job: &Job) -> Result<Result<Made, Outcome>, Fault> {
    let (source, looked) = (std::sync::Arc::clone(mount.source()), job.clone());
    let around = blocking(move || Around::look(&source, &looked)).await;
    if let Some(outcome) = around.hindrance(mount, clock) {
        return Ok(Err(outcome));
    }
    let now = clock.now();
    let laid = lay(mount.source(), job, &around, now).await?;
    laid.made(mount.source(), now).map(Ok)
}

/// Lays what is said of a job together.
///
/// # Errors
/// What stands beside the recording cannot be understood, or the recording cannot be asked.
pub async fn lay(source: &Source, job: &Job, around: &Around, now: Timestamp) -> Result<Laid, Fault> {
    let beside = |words: String| Fault::new(FaultKind::Sidecar, format!("{words}; {WHEN_MENDED}"), now);
    let found = around.sidecars.as_ref().map_err(|words| beside(words.clone()))?;
    let overlays = understood(found, &source.shared.templates).map_err(beside)?;
    let named = nearest(&overlays, |overlay| overlay.template.as_deref());
    let template = named.and_then(|name| source.shared.templates.get(name)).unwrap_or(&source.template).clone();
    let mut vars = vars::of_job(source, job);
    if let Some(language) = nearest(&overlays, |overlay| overlay.language.clone()) {
        vars.language = Some(language);
    }
    if template.uses("media") {
        vars.media = described(source, job, now).await?;
    }
    let outputs = nearest(&overlays, |overlay| overlay.outputs.clone()).unwrap_or_else(|| source.outputs.clone());
    Ok(Laid { template, overlays, vars, outputs })
}

/// What becomes of a job whose settings are wrong.
const WHEN_MENDED: &str = "nothing is sent for it until that is mended, and the others go on";

impl Laid {
    /// Fills it in.
    ///
    /// # Errors
    /// It does not render, or not to what the interface takes; or its outputs would have no names.
    pub fn made(&self, source: &Source, now: Timestamp) -> Result<Made, Fault> {
        let rendered =
            self.template.render(&self.vars, &self.overlays).map_err(|problem| match problem.is_of_overlays() {
                true => Fault::new(FaultKind::Sidecar, format!("{problem}; {WHEN_MENDED}"), now),
                false => Fault::new(FaultKind::Template, problem.to_string(), now),
            })?;
        // Before anything is paid: what was paid for must have a name.
        self.named(source).map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
        let making = Making {
            template: self.template.name().to_owned(),
            metadata: rendered.metadata.clone(),
            outputs: self.outputs.clone(),
            described: self.template.uses("media").then(|| self.vars.media.clone()),
            is_sent: false,
        };
        Ok(Made { rendered, making })
    }

    fn named(&self, source: &Source) -> Result<(), NameProblem> {
        self.outputs.iter().try_for_each(|format| {
            source.name_as.render(&vars::of_output(&self.vars, None, *format))?;
            source.name_as.render(&vars::of_output(&self.vars, Some("en"), *format)).map(drop)
        })
    }
}

/// What the file says of itself; what was asked before is not asked again.
async fn described(source: &Source, job: &Job, now: Timestamp) -> Result<Described, Fault> {
    if let Some(described) = job.making.as_ref().and_then(|making| making.described.clone()) {
        return Ok(described);
    }
    match describe(&full_path(&source.folder, &job.key.path)).await {
        Ok(described) => Ok(described),
        // It says nothing: a template may have words for that.
        Err(DecodeError::NotMedia { .. } | DecodeError::Empty | DecodeError::NoAudio) => Ok(Described::default()),
        Err(error) => {
            let words = format!("its template names `media`, and the file cannot be asked: {error}");
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
pub async fn remade(mount: &Mount, clock: &dyn Clock, job: &Job) -> Result<Option<Result<Made, Outcome>>, Fault> {
    if job.making.as_ref().is_some_and(|making| making.is_sent) {
        return Ok(None);
    }
    make(mount, clock, job).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::small::SmallFile;

    #[test]
    fn everything_that_is_wrong_is_told_with_line_and_mend() {
        let text = "langage = \"de\"\ntemplate = \"interviw\"\nbudget = { day = \"1h\" }\noutputs = []\nvocabulary = [1]\n\
                    [parameters]\ndiarisation = true\naudio_url = \"https://x.example\"\nsentences = \"{{ stem }}\"\n\
                    subtitles_config = { maximum_rows_per_caption = 9 }\n";
        let file = SmallFile { text: text.to_owned(), changed: Timestamp(0) };
        let told = understood(&[Sidecar { from: "a/talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
        insta::assert_snapshot!(told.replace("; a/", "\na/"), @r#"
        a/talk.toml, line 1: unknown key `langage` (did you mean `language`?)
        a/talk.toml, line 2: `template` names `interviw`, and there is no such template (jobs.toml needs [template.interviw])
        a/talk.toml, line 3: `budget` may not be said beside recordings (say it in jobs.toml)
        a/talk.toml, line 4: `outputs` must name at least one (name some of txt, srt, vtt, json; to pass over the recording, name it in a .scribedignore)
        a/talk.toml, line 5: `vocabulary` must be a word, found an integer (write it like "Ada", or { value = "Ada", pronunciations = ["ei da"] })
        a/talk.toml, line 7: `parameters.diarisation` is no parameter of the interface (did you mean `diarization`?)
        a/talk.toml, line 8: `parameters.audio_url` may not be set here (take it out; it is set for each job)
        a/talk.toml, line 9: `parameters.sentences` may not be a template here (write the value itself; a [template.NAME] of jobs.toml can be chosen by `template`)
        a/talk.toml, line 10: `parameters.subtitles_config.maximum_rows_per_caption` must be an integer from 1 to 5 (change it, or take it out for the service's default)
        "#);
        let file = SmallFile { text: "language = \n".to_owned(), changed: Timestamp(0) };
        let told = understood(&[Sidecar { from: "talk.toml".to_owned(), file }], &Templates::new()).unwrap_err();
        assert!(told.starts_with("talk.toml, line 1: this is no TOML: "), "{told}");
    }
}
