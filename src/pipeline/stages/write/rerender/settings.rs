//! The settings for outputs as they are now: of a source, by a hash that is cheap to compare, and of one job.

use crate::captions::Layout;
use crate::config::model::Source;
use crate::domain::fault::Fault;
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::output_text::RenderedAs;
use crate::domain::request_record::RequestRecord;
use crate::output::requested_layout::requested_layout;
use crate::pipeline::request::{BesideSettings, RequestLayers};
use crate::store::params::ParamFiles;
use crate::wire::params::SubtitlesConfig;
use serde_json::{Map, Value, json};

/// The parameter of captions in a request.
const CAPTIONS: &str = "subtitles_config";

/// What the outputs of a job are rendered with now.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSettings {
    pub formats: Vec<Format>,
    /// The caption settings, if they are not those that were requested.
    pub captions: Option<Map<String, Value>>,
}

/// Returns the hash of all settings of a source that change its outputs and cost nothing: formats, names, place,
/// captions. Settings beside the recordings are not in it, and neither are owner, group and mode, which new files get.
pub fn settings_hash(source: &Source) -> Hash {
    let formats: Vec<&str> = source.outputs.iter().map(|format| format.ext()).collect();
    let place = source.output_folder.as_ref().map(|place| place.to_string_lossy());
    let requested = source.template.written(CAPTIONS);
    let captions = format!("{:?}", source.captions);
    let files = [source.output_files.also_plain, source.output_files.portable_names];
    let mut all = vec![json!(formats), json!(source.name_as.identity()), json!(place), json!(requested)];
    all.extend([json!(captions), json!(files)]);
    // The hash of an older release has nothing in its place.
    if source.output_files.provenance {
        all.push(json!("provenance"));
    }
    if source.output_files.numbered_speakers {
        all.push(json!("numbered speakers"));
    }
    let all = Value::Array(all);
    Hash::of(all.to_string().as_bytes())
}

/// Returns what is stored of outputs that are rendered with the source's settings of now.
pub fn rendered_now(source: &Source) -> RenderedAs {
    RenderedAs { settings: settings_hash(source), release: env!("CARGO_PKG_VERSION").to_owned() }
}

/// Whether the outputs of a written job may differ from what its source's settings say now. Reads nothing: a job of an
/// older release is compared by its formats.
pub fn may_differ(formats: &[Format], known: Option<Hash>, source: &Source, now: &Hash) -> bool {
    known.map_or_else(|| formats != source.outputs, |known| known != *now)
}

impl JobSettings {
    /// Collects the settings of a job, with those beside its recording. Blocks.
    ///
    /// # Errors
    /// The settings cannot be understood.
    pub fn of(source: &Source, params: &ParamFiles, job: &Job, now: Timestamp) -> Result<Self, Fault> {
        let mut layers = RequestLayers::collect(source, job, &BesideSettings::read(source, job), now)?;
        if let Some(described) = job.request_record.as_ref().and_then(|request_record| request_record.described.clone())
        {
            layers.vars.media = described;
        }
        let config = layers.render(source, now)?.params.subtitles_config;
        let is_as_requested = layout_of(config.as_ref()) == requested(params, job);
        let captions = config.unwrap_or_default();
        Ok(Self { formats: layers.outputs, captions: (!is_as_requested).then(|| as_map(&captions)) })
    }

    /// Whether the job's outputs were last rendered with these settings.
    pub fn are_those_of(&self, job: &Job) -> bool {
        let made = job.request_record.as_deref();
        made.is_some_and(|made| made.outputs == self.formats && made.captions == self.captions)
    }

    /// Returns what is stored of the job's request, with these settings.
    pub fn record(&self, job: &Job) -> RequestRecord {
        let request_record = job.request_record.as_deref().cloned().unwrap_or_default();
        RequestRecord { outputs: self.formats.clone(), captions: self.captions.clone(), ..request_record }
    }
}

fn layout_of(config: Option<&SubtitlesConfig>) -> Layout {
    config.map_or_else(Layout::default, requested_layout)
}

/// Returns the layout that the job's purchase asked for.
fn requested(params: &ParamFiles, job: &Job) -> Layout {
    let purchase_key = job.stage.purchase_key();
    let stored = purchase_key.and_then(|purchase_key| params.load(&purchase_key.params).ok());
    let config = stored.and_then(|stored| serde_json::from_value(stored.get(CAPTIONS)?.clone()).ok());
    layout_of(config.as_ref())
}

fn as_map(config: &SubtitlesConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(map)) => map.into_iter().filter(|(key, value)| key != "formats" && !value.is_null()).collect(),
        _ => Map::new(),
    }
}
