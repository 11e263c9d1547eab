//! The layers of a request, the nearest last: the source's template, the sidecars of folders, the row, the
//! recording's own sidecar.

use crate::config::model::Source;
use crate::config::template::name_as::NameProblem;
use crate::config::template::overlay::{Overlay, nearest};
use crate::config::template::text::{RenderedTemplate, Template};
use crate::config::template::variables::Vars;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::Timestamp;
use crate::domain::request_record::{MediaTags, RequestRecord};
use crate::domain::track_selection::TrackSelection;
use crate::media::decode::DecodeError;
use crate::media::tags::describe;
use crate::pipeline::request::beside::{BesideSettings, parse_sidecars};
use crate::pipeline::request::{row_overrides, template_vars};
use crate::pipeline::stages::faults::NOT_SENT;
use crate::rooted_path::RootedPath;
use crate::source::metadata::sidecars;
use crate::source::recording_place::{Recording, recording};

/// What the request of a job is built from, and where each part of it comes from.
#[derive(Debug)]
pub struct RequestLayers {
    pub template: Template,
    /// The settings of the recording itself, the nearest last.
    pub overlays: Vec<Overlay>,
    /// The variables that the template may name.
    pub vars: Vars,
    pub outputs: Vec<Format>,
    /// Which part of the sound is sent, if that is configured.
    pub selection: Option<TrackSelection>,
    row: Option<Box<ManifestRow>>,
}

/// What happens to a job whose settings are wrong.
const UNTIL_FIXED: &str = "scribed does not send the recording until that is fixed; other jobs continue";

/// Returns which part of a recording's sound is sent, if that is configured.
fn track_selection(source: &Source, overlays: &[Overlay]) -> Option<TrackSelection> {
    let track = nearest(overlays, |overlay| overlay.track.clone()).or_else(|| source.track.clone());
    TrackSelection::new(
        track,
        nearest(overlays, |overlay| overlay.channels.clone()).or_else(|| source.channels.clone()),
    )
}

/// Returns the template that the nearest layer names.
fn nearest_template(source: &Source, overlays: &[Overlay]) -> Result<Template, String> {
    let Some((name, from)) = nearest(overlays, |overlay| Some((overlay.template.as_ref()?, &overlay.from))) else {
        return Ok(source.template.clone());
    };
    source.shared.templates.get(name).cloned().ok_or_else(|| {
        format!("{from} names the template {name}, and jobs.toml has no [template.{name}]: add it to jobs.toml, or name another template in {from}")
    })
}

impl RequestLayers {
    /// Collects the settings of a job.
    ///
    /// # Errors
    /// The settings beside the recording cannot be understood.
    pub fn collect(
        source: &Source,
        job: &Job,
        beside_settings: &BesideSettings,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let beside = |words: String| Fault::new(FaultKind::Sidecar, format!("{words}; {UNTIL_FIXED}"), now);
        let found = beside_settings.sidecars.as_ref().map_err(|words| beside(words.clone()))?;
        let mut overlays = parse_sidecars(found, &source.shared.templates).map_err(beside)?;
        if let Some(row) = job.row.as_deref() {
            // The recording's own sidecar is nearer than its row, and the sidecar of its folder is farther.
            let own = overlays.iter().rposition(|overlay| !overlay.from.ends_with(sidecars::OF_FOLDER));
            overlays.insert(own.unwrap_or(overlays.len()), row_overrides::overlay(row));
        }
        let failed = |words| Fault::new(FaultKind::Template, words, now);
        let template = nearest_template(source, &overlays).map_err(failed)?;
        let mut vars = template_vars::of_job(source, job);
        if let Some(language) = nearest(&overlays, |overlay| overlay.language.clone()) {
            vars.language = Some(language);
        }
        let outputs = nearest(&overlays, |overlay| overlay.outputs.clone()).unwrap_or_else(|| source.outputs.clone());
        let selection = track_selection(source, &overlays);
        Ok(Self { template, overlays, vars, outputs, selection, row: job.row.clone() })
    }

    /// Whether the template uses `media`, which only the recording itself can tell.
    pub fn names_media(&self) -> bool {
        self.template.uses("media")
    }

    /// Reads the tags of the recording if the template uses them. Tags that were read before are not read again.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub async fn read_media_tags(&mut self, source: &Source, job: &Job, now: Timestamp) -> Result<(), Fault> {
        if !self.names_media() || job.is_remote() {
            return Ok(());
        }
        let known = job.request_record.as_ref().and_then(|request_record| request_record.described.clone());
        self.vars.media = match (known, recording(source, job)) {
            (Some(described), _) => described,
            (None, Recording::File(path)) => media_tags(&path, now).await?,
            (None, Recording::Object(_) | Recording::Remote(_)) => {
                let words = "its template names `media`, and nothing of an object is read before it is sent";
                return Err(Fault::new(FaultKind::Unreadable, words, now));
            }
        };
        Ok(())
    }

    /// Renders the template.
    ///
    /// # Errors
    /// The template does not render, or not to what the interface accepts; or its outputs would have no names.
    pub fn render(&self, source: &Source, now: Timestamp) -> Result<RenderedTemplate, Fault> {
        let failed = |words: String| Fault::new(FaultKind::Template, words, now);
        let rendered = self.template.render(&self.vars, &self.overlays);
        let mut rendered = rendered.map_err(|problem| match problem.is_of_overlays() {
            true => Fault::new(FaultKind::Sidecar, format!("{problem}; {UNTIL_FIXED}"), now),
            false => failed(problem.to_string()),
        })?;
        if let Some(row) = &self.row {
            let of_row = |words| failed(format!("{}: {words}", row.location()));
            rendered = row_overrides::apply(row, rendered).map_err(of_row)?;
        }
        if let (Some(selection), Some(row)) = (&self.selection, self.row.as_ref().filter(|row| row.is_remote())) {
            let words = "its row names an address that the service fetches, and scribed cannot extract a part of it; move the row to a manifest of a source without `track` and `channels`";
            return Err(failed(format!("asked for of its sound: {selection}; but {words} ({})", row.location())));
        }
        rendered.track_selection.clone_from(&self.selection);
        // Checked before anything is paid for: the outputs must have names.
        self.check_output_names(source).map_err(|problem| failed(problem.to_string()))?;
        Ok(rendered)
    }

    /// Returns what is stored of the request with the job.
    pub fn record(&self, rendered: &RenderedTemplate) -> RequestRecord {
        RequestRecord {
            template: self.template.name().to_owned(),
            metadata: rendered.metadata.clone(),
            outputs: self.outputs.clone(),
            captions: None,
            priority: self.priority(),
            described: self.names_media().then(|| self.vars.media.clone()),
            access: None,
            is_sent: false,
        }
    }

    /// Returns the priority that the overlays set. The sidecar of a folder does not count if the row sets one.
    fn priority(&self) -> Option<i16> {
        let row_says = self.row.as_ref().is_some_and(|row| row.priority != 0);
        let counts = |overlay: &&Overlay| !row_says || !overlay.from.ends_with(sidecars::OF_FOLDER);
        self.overlays.iter().rev().filter(counts).find_map(|overlay| overlay.priority)
    }

    fn check_output_names(&self, source: &Source) -> Result<(), NameProblem> {
        self.outputs.iter().try_for_each(|format| {
            source.name_as.render(&template_vars::of_output(&self.vars, None, *format))?;
            source.name_as.render(&template_vars::of_output(&self.vars, Some("en"), *format)).map(drop)
        })
    }
}

async fn media_tags(path: &RootedPath, now: Timestamp) -> Result<MediaTags, Fault> {
    match describe(path).await {
        Ok(described) => Ok(described),
        // A file without tags has empty ones: a template may handle that.
        Err(DecodeError::NotMedia { .. } | DecodeError::Empty | DecodeError::NoAudio) => Ok(Default::default()),
        Err(error) => {
            let shown = path.full();
            let words = format!(
                "the template uses `media`, and scribed cannot read the tags of {}: {error}; {NOT_SENT}",
                shown.display()
            );
            Err(Fault::new(FaultKind::Unreadable, words, now))
        }
    }
}
