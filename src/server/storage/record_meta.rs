//! What is kept of one accepted create: a small JSON file, read by every later release.

use crate::domain::names::{Hash, Timestamp};
use crate::wire::params::CallbackMethod;
use crate::wire::result::File;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One accepted create, as it is kept; `P` is how the parameters are held.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordMeta<P = Value> {
    /// 1.
    pub v: u32,
    /// Whose it is; [`NOBODY`] where it is older than keys: then the first key's.
    #[serde(default = "nobody")]
    pub owner: Hash,
    /// The upload it is made from; of fetched audio the one that it becomes.
    pub upload: String,
    /// Where the audio is fetched from; absent for uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Unlike that of any other in this store.
    pub created: Timestamp,
    /// How it ended; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TranscriptionEnd>,
    /// The audio, as it was found; empty until this has ended: the upload store knows it. Those of older releases
    /// have it from the beginning, where it was here.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub file: File,
    /// The parameters as given, in the present names; those of older releases with the defaults too.
    pub params: P,
    /// As it was sent, to the letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    /// The address that the create wants to be called at; the record's parameters do not tell a
    /// toggle that was off from one that was not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<Callee>,
    /// Who is called about its end; decided when it ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<DeliveryState>,
    /// It ended because the service was killed too often while it was in progress; its audio is kept as long as
    /// this is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_aside: bool,
}

/// The owner of what was kept before records had one.
pub const NOBODY: Hash = Hash([0; 32]);

/// For records that say nothing of an owner.
pub fn nobody() -> Hash {
    NOBODY
}

fn is_unknown(file: &File) -> bool {
    *file == File::default()
}

/// How a transcription ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptionEnd {
    /// Never before its creation.
    pub at: Timestamp,
    /// Absent: well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TranscriptionFailure>,
}

/// Why a transcription ended badly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptionFailure {
    /// 400 to 599 (interface, "Errors", 1).
    pub code: u16,
    pub message: String,
}

/// One who is to be called about the end, and how far that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryState {
    pub to: Callee,
    #[serde(default)]
    pub failed: u32,
    /// When it is due; absent when it is over, one way or the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Callee {
    /// An address that the create named.
    Callback { url: String, method: CallbackMethod },
    /// The service's own webhook, wherever that is by then.
    Webhook,
}
