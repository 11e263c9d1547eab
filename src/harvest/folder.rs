//! The folder that records are gathered into, with a note for each record: what is there already is not fetched
//! again, even after a process was killed in the middle.

use crate::captions::CaptionRules;
use crate::client::contract::{FullListItem, ListKind};
use crate::domain::format::Format;
use crate::domain::names::{Hash, ServiceName, TranscriptionId};
use crate::domain::token::{RESERVED_KEY, Token};
use crate::harvest::naming::{names, recording};
use crate::output::formats::{Author, Production, Provenance};
use crate::output::group_fsync::Syncs;
use crate::output::publish::{Destination, Names, OwnOutputs, PendingOutput, PlaceError, RESULT_KEPT, publish_outputs};
use crate::output::render_result::{OutputKind, RenderedOutput, ResultToRender, render_result};
use crate::output::time_offset::shift_to_recording;
use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::params::SubtitlesConfig;
use crate::wire::record::{Record, Status};
use crate::wire::result::Spoken;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the notes.
const NOTES: &str = ".scribed-harvest";

/// Where the records of one list go.
#[derive(Clone)]
pub struct HarvestFolder {
    pub to: PathBuf,
    pub service: ServiceName,
    pub kind: ListKind,
    /// The formats that are written. A record that ended in error gets only JSON.
    pub outputs: Vec<Format>,
    /// The key of the metadata whose value names the outputs.
    pub name_by: Option<String>,
    /// How captions are laid out that the service did not send.
    pub captions: CaptionRules,
    pub syncs: Arc<Syncs>,
}

/// The note of a record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    id: String,
    /// Whether the record has no text: it ended in error, or a stream brought only events.
    #[serde(default)]
    wordless: bool,
    outputs: BTreeMap<Format, String>,
    /// The outputs in other languages, by language and format: `fr.srt`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    translations: BTreeMap<String, String>,
    /// The formats for which the result has nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    nothing: BTreeSet<Format>,
}

impl Note {
    /// Adds an output that is in the folder.
    fn add(&mut self, kind: OutputKind, name: String) {
        match kind.language.filter(|_| kind.is_translation) {
            Some(language) => self.translations.insert(format!("{language}.{}", kind.format.ext()), name),
            None => self.outputs.insert(kind.format, name),
        };
    }

    /// Whether all outputs of this format are in the folder, or there are none.
    fn has(&self, format: Format, is_there: &dyn Fn(&str) -> bool) -> bool {
        let of_format = |(key, _): &(&String, &String)| Format::of_name(key) == Some(format);
        let mut translations = self.translations.iter().filter(of_format).map(|(_, name)| name.as_str());
        let own = self.outputs.get(&format).map(String::as_str);
        own.map_or(self.nothing.contains(&format), is_there) && translations.all(is_there)
    }
}

/// Why a record is not in the folder.
#[derive(Debug)]
pub enum PutError {
    /// The problem is this record's own. Other records may be written.
    Record(String),
    /// Other records would fail as well.
    Disk(String),
}

impl PutError {
    fn of(error: &PlaceError) -> Self {
        let words = error.to_string().replace(RESULT_KEPT, "run the same command again to continue");
        match error {
            PlaceError::NameTooLong { .. } | PlaceError::NoFreeName { .. } => Self::Record(words),
            _ => Self::Disk(words),
        }
    }

    fn disk(what: &Path, error: &io::Error) -> Self {
        Self::Disk(format!("cannot write to {}: {}", what.display(), describe_error(error, what)))
    }
}

impl HarvestFolder {
    /// Returns which outputs of a record are not in the folder yet. Blocks.
    pub fn missing(&self, id: &TranscriptionId, status: &Status) -> Vec<Format> {
        let note = self.note(id);
        let has_words = *status == Status::Done && !note.wordless;
        let wanted = self.outputs.iter().filter(|format| has_words || **format == Format::Json);
        let is_there = |name: &str| self.to.join(name).exists();
        wanted.filter(|format| !note.has(**format, &is_there)).copied().collect()
    }

    /// Writes these outputs of a record, whole or not at all and over nobody's file. Returns their names. Blocks.
    ///
    /// # Errors
    /// See [`PutError`].
    pub fn put(&self, whole: &FullListItem, formats: &[Format]) -> Result<Vec<String>, PutError> {
        fs::create_dir_all(&self.to).map_err(|error| PutError::disk(&self.to, &error))?;
        let (raw, record) = shift_to_recording(Cow::Borrowed(&whole.raw), None)
            .map_err(|error| PutError::Record(format!("the result is not in the interface's format: {error}")))?;
        let wordless = record.result.as_ref().is_none_or(|result| result.transcription.is_none());
        let formats: Vec<Format> =
            formats.iter().copied().filter(|format| !wordless || *format == Format::Json).collect();
        let (kinds, wanted): (Vec<OutputKind>, Vec<_>) =
            self.wanted((whole, &raw), record, &formats).into_iter().unzip();
        let folder = RootedPath::new(&self.to, "");
        let to = Destination { folder: &folder, access: None, ignores_case: false };
        let placed = publish_outputs(&to, &|| true, wanted, &OwnOutputs::default(), &self.syncs);
        let placed = placed.map_err(|error| PutError::of(&error))?;
        let names: Vec<String> = placed.into_iter().map(|placed| placed.name.to_string_lossy().into_owned()).collect();
        let mut note = Note { id: whole.id.to_string(), wordless, ..self.note(&whole.id) };
        note.nothing.extend(formats.iter().filter(|format| kinds.iter().all(|kind| kind.format != **format)));
        kinds.into_iter().zip(&names).for_each(|(kind, name)| note.add(kind, name.clone()));
        self.write_down(&whole.id, &note)?;
        Ok(names)
    }

    /// Renders the outputs. `raw`: the record as the service sent it, in the time of the recording.
    fn wanted(
        &self,
        (whole, raw): (&FullListItem, &[u8]),
        record: Record<Spoken, BoundedValue>,
        formats: &[Format],
    ) -> Vec<(OutputKind, PendingOutput<impl Names + use<>>)> {
        let called = recording(whole, &record, self.name_by.as_deref());
        let result = ResultToRender {
            raw: Cow::Borrowed(raw),
            made_by: self.provenance(whole, &record, &called),
            captions: &self.captions,
            requested: requested(&record),
            ignores_sent_subtitles: false,
            production: Production {
                params: record.request_params.unwrap_or_default(),
                completed: record.completed_at,
                media: Some(called.clone().into_bytes()),
                author: Author::Service,
            },
            speech: record.result.unwrap_or_default().transcription.unwrap_or_default(),
            formats,
        };
        let output = |RenderedOutput { kind, bytes }: RenderedOutput| {
            let candidates = names(&called, whole.id.as_str(), kind.language.as_deref(), kind.format);
            (kind, PendingOutput { candidates, bytes })
        };
        render_result(result).outputs.into_iter().map(output).collect()
    }

    fn provenance(&self, whole: &FullListItem, record: &Record<Spoken, BoundedValue>, called: &str) -> Provenance {
        let content = record.metadata_text(RESERVED_KEY).and_then(Token::parse).map(|token| token.content.to_string());
        Provenance {
            service: self.service.to_string(),
            transcription_id: whole.id.to_string(),
            request_id: record.request_id.clone(),
            source_name: String::new(),
            source_path: called.to_owned(),
            content_hash: content.unwrap_or_default(),
            created: record.created_at.clone().unwrap_or_default(),
            review: None,
            program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
            transcript: None,
        }
    }

    /// Notes are named by the hash of the id, since an id is the service's text, and spread over folders, since a
    /// million files in one folder are slow.
    fn note_path(&self, id: &TranscriptionId) -> (RootedPath, OsString) {
        let hash = Hash::of(id.as_str().as_bytes()).to_string();
        let notes = RootedPath::new(&self.to, NOTES).join(self.service.as_str()).join(self.kind.name());
        (notes.join(&hash[..2]), format!("{hash}.json").into())
    }

    /// Returns the note of a record. A damaged note counts as none: the record is fetched again.
    fn note(&self, id: &TranscriptionId) -> Note {
        let (folder, name) = self.note_path(id);
        let note: Option<Note> = read(&folder.join(name)).ok().and_then(|json| serde_json::from_slice(&json).ok());
        note.filter(|note| note.id == id.as_str()).unwrap_or_default()
    }

    fn write_down(&self, id: &TranscriptionId, note: &Note) -> Result<(), PutError> {
        let (folder, name) = self.note_path(id);
        let failed = |error: io::Error| PutError::disk(&folder.full(), &error);
        folder.make_folders(&|_| None).map_err(failed)?;
        let bytes = serde_json::to_vec(note).map_err(|error| failed(error.into()))?;
        let old = read(&folder.join(&name)).map(|old| (name.clone(), Hash::of(&old)));
        let ours = OwnOutputs { published: old.into_iter().collect(), ..OwnOutputs::default() };
        let wanted = vec![PendingOutput { candidates: std::iter::once(name), bytes }];
        let to = Destination { folder: &folder, access: None, ignores_case: false };
        publish_outputs(&to, &|| true, wanted, &ours, &self.syncs).map_err(|error| PutError::of(&error))?;
        Ok(())
    }
}

fn read(path: &RootedPath) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    path.open()?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the subtitle layout that was requested.
fn requested(record: &Record<Spoken, BoundedValue>) -> Option<SubtitlesConfig> {
    let config = record.request_params.as_ref()?.get("subtitles_config")?.clone();
    serde_json::from_value(config).ok()
}
