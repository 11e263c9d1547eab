//! The file of a voice.

use crate::domain::names::{Hash, Timestamp};
use crate::domain::speaker_names::SpeakerName;
use crate::voice::voice_model::VoiceModel;
use serde::{Deserialize, Serialize};

/// The version of the file's form.
const VERSION: u32 = 1;

/// The voice of a person, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVoice {
    pub name: SpeakerName,
    pub enrolled: Timestamp,
    /// The hashes of the recordings that it was enrolled from; none if an older release enrolled it.
    pub recordings: Vec<Hash>,
    pub model: VoiceModel,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct VoiceFile {
    version: u32,
    name: String,
    enrolled: Timestamp,
    #[serde(default)]
    recordings: Vec<Hash>,
    frames: f64,
    covariance: Vec<f64>,
}

impl StoredVoice {
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let (frames, covariance) = self.model.covariance();
        let (name, covariance) = (self.name.to_string(), covariance.to_vec());
        let (enrolled, recordings) = (self.enrolled, self.recordings.clone());
        serde_json::to_vec(&VoiceFile { version: VERSION, name, enrolled, recordings, frames, covariance })
    }

    /// Reads a file; fields of later releases count for nothing.
    ///
    /// # Errors
    /// Says why it is no voice.
    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| format!("it cannot be read: {error}");
        let Versioned { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if version != VERSION {
            return Err(format!("it has the version {version} of another release, this one reads {VERSION}"));
        }
        let file: VoiceFile = serde_json::from_slice(bytes).map_err(unreadable)?;
        let name = SpeakerName::parse(&file.name).map_err(|error| error.to_string())?;
        let model = VoiceModel::from_covariance(file.frames, &file.covariance);
        let model = model.ok_or("its numbers are those of no voice")?;
        Ok(Self { name, enrolled: file.enrolled, recordings: file.recordings, model })
    }
}
