//! `POST /v2/upload`: the answer (interface, "Upload response").

use crate::domain::names::UploadId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of the upload endpoint.
pub const PATH: &str = "/v2/upload";

/// The name of the multipart part that carries the file.
pub const PART: &str = "audio";

/// What the service says of a file that it has taken.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Uploaded {
    /// `{base_url}/file/<file_id>`; to be given to the create.
    pub audio_url: String,
    /// What was found in the file.
    pub audio_metadata: AudioMetadata,
}

/// What the service found in an uploaded file. Everything may be missing in an answer that is read.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct AudioMetadata {
    /// The file's id at the service.
    pub id: String,
    /// The name it was sent under.
    pub filename: String,
    /// Where it was fetched from, when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Without a dot.
    pub extension: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Seconds.
    pub audio_duration: Option<f64>,
    /// Counted in the file, equal ones included.
    pub number_of_channels: Option<u32>,
}

impl Uploaded {
    /// The id by which the file can be named again: the last part of the address's path. `None`
    /// when the address is not of the interface's shape.
    pub fn id(&self) -> Option<UploadId> {
        let (_, id) = self.audio_url.rsplit_once("/file/")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fit = !id.is_empty() && id.len() <= 200 && id.chars().all(plain);
        fit.then(|| UploadId::new(id))
    }
}

/// The address of an uploaded file under a service's base address (no slash at its end).
pub fn address(base: &str, id: &UploadId) -> String {
    format!("{base}/file/{id}")
}
