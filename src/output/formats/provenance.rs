//! The origin of an output, and what is written of it into outputs.

use super::Finished;
use super::json::{as_json, json};
use super::lines::{one_line, plain_line};
use crate::domain::names::Timestamp;
use crate::domain::zone::Zone;
use crate::wire::timestamps;
use serde::Serialize;
use serde_json::{Map, Value};

/// The origin of an output. The order of the fields is that of the JSON output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Provenance {
    pub program: String,
    /// The service's name in `jobs.toml`.
    pub service: String,
    /// The transcription's id at the service.
    pub transcription_id: String,
    /// The service's id of the request, for the service's support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The source's name in `jobs.toml`; empty if the recording has no source.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    /// The recording's path; bytes that are not UTF-8 are replaced.
    pub source_path: String,
    /// The recording's blake3 hash, 64 hexadecimal digits; empty where only the service has the recording.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content_hash: String,
    /// When the service created the transcription (ISO 8601), as the service wrote it.
    pub created: String,
    /// What the check of the result found, as [`Review::as_json`](crate::domain::review::Review::as_json) gives it;
    /// `None` if it was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Value>,
    /// What [`Author::describe`] says, if the source wants that in its outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// Describes the origin for people who find the file alone. The path is left out because subtitles are published.
pub(super) fn note(result: &Finished) -> String {
    let own = own_note(result.made_by);
    let more = statements(result).into_iter().filter(|statement| !statement.is_in_note);
    let more = more.map(|statement| format!("\n{statement}"));
    own + &more.collect::<String>()
}

/// Something that is known of how an output was made: a single line of plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// Whether the note of WebVTT has it in any case.
    is_in_note: bool,
}

impl std::fmt::Display for Statement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

/// The most characters of the parameters that are written into outputs; of longer ones only the names are.
const MAX_PARAMETERS: usize = 500;

/// Says how an output was made; nothing if the source does not want that in its outputs.
pub(super) fn statements(result: &Finished) -> Vec<Statement> {
    let (made_by, production) = (result.made_by, result.production);
    let Some(status) = made_by.transcript.as_deref() else { return Vec::new() };
    let model = production.params.get("model").and_then(Value::as_str).unwrap_or_default();
    let all = [
        ("status", status, false),
        ("made by", &made_by.program, true),
        ("service", &made_by.service, true),
        ("model", model, false),
        ("parameters", &short_parameters(&production.params), false),
        ("transcription", &made_by.transcription_id, true),
        ("created", &made_by.created, true),
        ("completed", production.completed.as_deref().unwrap_or_default(), false),
        ("recording blake3", &made_by.content_hash, true),
    ];
    let statement = |(name, value, is_in_note)| Statement { name, value: plain_line(value), is_in_note };
    all.into_iter().map(statement).filter(|statement| !statement.value.is_empty()).collect()
}

/// Returns the parameters of a request, without those that are [`LEFT_OUT`].
fn parameters(params: &Value) -> Map<String, Value> {
    let mut parameters = params.as_object().cloned().unwrap_or_default();
    parameters.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    parameters
}

/// Returns the parameters as JSON, or only their names if that is long.
fn short_parameters(params: &Value) -> String {
    let parameters = parameters(params);
    let whole = as_json(&parameters);
    match whole.len() > MAX_PARAMETERS {
        true => {
            parameters.keys().map(String::as_str).collect::<Vec<_>>().join(", ").chars().take(MAX_PARAMETERS).collect()
        }
        false if parameters.is_empty() => String::new(),
        false => whole,
    }
}

/// The note that scribed recognises its WebVTT files by.
pub(super) fn own_note(made_by: &Provenance) -> String {
    let Provenance { program, service, transcription_id, created, content_hash, .. } = made_by;
    let line = |name: &str, value: &str| format!("{name}: {}", one_line(value));
    let mut lines = vec![
        line("made by", program),
        line("service", service),
        line("transcription", transcription_id),
        line("created", created),
    ];
    if !content_hash.is_empty() {
        lines.push(line("recording blake3", content_hash));
    }
    lines.join("\n")
}

/// How a transcription was made, for `provenance.json`, and where its recording is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Production {
    /// The parameters of the request, as far as they are known; an object or null.
    pub params: Value,
    /// When the service completed the transcription (ISO 8601), as the service wrote it.
    pub completed: Option<String>,
    /// The recording's path as seen from its outputs, as bytes: usually its file name. `None` if it has none.
    pub media: Option<Vec<u8>>,
    pub author: Author,
}

/// Whose words a transcript has, as its reader has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Author {
    #[default]
    Service,
    /// A person corrected what the service recognised, and accepted it then.
    Corrector(Timestamp),
    /// The service recognised nothing, or was not asked; a person accepted the text then.
    Person(Timestamp),
}

impl Author {
    /// Says it in words, with the date in UTC: the outputs are the same wherever they are rendered.
    pub fn describe(self) -> String {
        let date = |at: Timestamp| Zone::UTC.date(at);
        match self {
            Self::Service => DISCLAIMER.to_owned(),
            Self::Corrector(at) => format!("machine-generated, corrected by a person and accepted on {}", date(at)),
            Self::Person(at) => format!("written by a person and accepted on {}", date(at)),
        }
    }

    pub(super) fn accepted(self) -> Option<String> {
        match self {
            Self::Service => None,
            Self::Corrector(at) | Self::Person(at) => Some(timestamps::format(at)),
        }
    }
}

impl Production {
    /// Returns the recording's file name for people; bytes that are not UTF-8 are replaced.
    pub(super) fn media_name(&self) -> Option<String> {
        let path = String::from_utf8_lossy(self.media.as_deref()?).into_owned();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Some(plain_line(&name)).filter(|name| !name.is_empty())
    }
}

/// What the reader of a transcript has to know about it if nobody accepted it.
pub(super) const DISCLAIMER: &str = "machine-generated, not reviewed";

/// Parameters that say nothing about how a transcription was made, and may hold addresses, keys or a person's data.
const LEFT_OUT: [&str; 5] = ["audio_url", "callback", "callback_config", "callback_url", "custom_metadata"];

/// The content of `provenance.json`, in this order.
#[derive(Serialize)]
struct Origin<'a> {
    transcript: String,
    /// When a person accepted the text (ISO 8601).
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<String>,
    service: &'a str,
    /// Null where the request did not name one.
    model: Option<&'a Value>,
    parameters: Map<String, Value>,
    languages: &'a [String],
    translations: Vec<&'a str>,
    recording: RecordingOrigin<'a>,
    created: &'a str,
    completed: Option<&'a str>,
}

#[derive(Serialize)]
struct RecordingOrigin<'a> {
    name: Option<String>,
    /// Null where only the service has the recording.
    blake3: Option<&'a str>,
}

/// Writes what made the outputs. Like every `.json` output it ends with the key `scribed`.
pub(super) fn provenance_json(result: &Finished) -> String {
    let (made_by, production) = (result.made_by, result.production);
    let parameters = parameters(&production.params);
    let translations = result.enrichments.translations.iter().filter_map(|one| one.language.as_deref());
    let origin = Origin {
        transcript: production.author.describe(),
        accepted: production.author.accepted(),
        service: &made_by.service,
        model: production.params.get("model"),
        parameters,
        languages: &result.transcript.languages,
        translations: translations.collect(),
        recording: RecordingOrigin {
            name: production.media_name(),
            blake3: Some(made_by.content_hash.as_str()).filter(|hash| !hash.is_empty()),
        },
        created: &made_by.created,
        completed: production.completed.as_deref(),
    };
    json(as_json(&origin).into_bytes(), made_by)
}
