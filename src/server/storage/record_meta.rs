//! The stored form of one accepted create: a small JSON file that every later release can read.

use crate::domain::names::{Hash, Timestamp};
use crate::wire::params::CallbackMethod;
use crate::wire::result::File;
use crate::wire::v1::OutputFormat;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One accepted create, as stored; `P` is the type that holds the parameters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordMeta<P = Value> {
    /// The version of the format, 1.
    pub v: u32,
    /// The owner; [`NOBODY`] if the record is older than keys: it then belongs to the first key.
    #[serde(default = "nobody")]
    pub owner: Hash,
    /// The upload that is transcribed; for fetched audio the upload that it becomes.
    pub upload: String,
    /// The address that the audio is fetched from; absent for uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The creation time, unique in this store.
    pub created: Timestamp,
    /// How the transcription ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TranscriptionEnd>,
    /// The properties of the audio. Empty until the transcription has ended, because the upload store knows them;
    /// records of older releases have them from the beginning, if the audio was there.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub file: File,
    /// The parameters as given, in the present names; records of older releases also contain the defaults.
    pub params: P,
    /// The metadata exactly as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// The callback that the create requests. It is stored because the parameters do not tell a toggle that was off
    /// from one that was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<Callee>,
    /// The delivery of its creation to the webhook. Absent if no webhook was configured when it was created, and in
    /// records of older releases, which did not store it: their creations are not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation: Option<DeliveryState>,
    /// The deliveries of its end; decided when it ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<DeliveryState>,
    /// Whether it ended because the service was killed too often during its work. Its audio is then kept as long as the
    /// record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_aside: bool,
}

/// The owner of records from before records had owners.
pub const NOBODY: Hash = Hash([0; 32]);

/// Returns the default owner of records without one.
pub fn nobody() -> Hash {
    NOBODY
}

fn is_unknown(file: &File) -> bool {
    *file == File::default()
}

/// How a transcription ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptionEnd {
    /// Never before the creation.
    pub at: Timestamp,
    /// Absent if the transcription succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TranscriptionFailure>,
}

/// Why a transcription failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptionFailure {
    /// 400 to 599 (interface, "Errors", 1).
    pub code: u16,
    pub message: String,
}

/// One delivery of the creation or of the end, and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryState {
    pub to: Callee,
    #[serde(default)]
    pub failed: u32,
    /// When the next attempt is due; absent when the delivery is over, with or without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Why the last attempt failed; absent after a success, and in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Callee {
    /// An address that the create named.
    Callback { url: String, method: CallbackMethod },
    /// The `webhook_url` of a call of the first version, which gets the body of that version.
    FirstVersion { url: String, format: OutputFormat },
    /// The service's own webhook, at the address that is configured when the delivery is made.
    Webhook,
}

impl Callee {
    /// Returns the address that a create named.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Callback { url, .. } | Self::FirstVersion { url, .. } => Some(url),
            Self::Webhook => None,
        }
    }

    /// Returns the same callback, with bodies of the first version.
    #[must_use]
    pub fn into_first_version(self, format: OutputFormat) -> Self {
        match self {
            Self::Callback { url, .. } | Self::FirstVersion { url, .. } => Self::FirstVersion { url, format },
            Self::Webhook => Self::Webhook,
        }
    }
}
