//! What `scribed reconcile --adopt-by` asks for one recording.

use crate::domain::names::{JobId, ServiceName, Timestamp, TranscriptionId};
use serde::{Deserialize, Serialize};

/// The parameters of [`super::ControlRequest::Adopt`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptQuery {
    pub service: ServiceName,
    pub job: JobId,
    /// The transcription that is the job's from now on.
    pub transcription: TranscriptionId,
    /// When it was created, by the service's clock, if its list says that.
    #[serde(default)]
    pub created: Option<Timestamp>,
    /// The billed milliseconds, if the list says them.
    #[serde(default)]
    pub billed: Option<u64>,
}
