//! Gives the speakers of a result the names of known voices.

use super::voice_store::{KnownVoices, VoiceStore};
use crate::voice::speaker_voices::SpeakerVoice;
use crate::voice::voice_match::VoiceComparison;
use crate::wire::result_out::KnownSpeakerOut;

/// Returns the speakers whose voices are known; no name twice. A file or a folder that cannot be read is logged, and costs
/// what is in it. Blocks.
pub fn identify(store: &VoiceStore, speakers: &[SpeakerVoice]) -> Vec<KnownSpeakerOut> {
    let known = store.read().unwrap_or_else(|error| {
        tracing::error!(%error, "the folder of known voices cannot be read; nobody is named");
        KnownVoices::default()
    });
    for broken in &known.broken {
        let (file, reason) = (broken.path.display(), &broken.reason);
        tracing::error!(%file, reason, "a known voice cannot be read; enrol it again, or remove the file");
    }
    if known.voices.is_empty() || speakers.is_empty() {
        return Vec::new();
    }
    let found = speakers.iter().map(|speaker| speaker.model.clone()).collect();
    let models = known.voices.iter().map(|voice| voice.model.clone()).collect();
    let matches = VoiceComparison::default().match_voices(found, models);
    let named = speakers.iter().zip(matches).filter_map(|(SpeakerVoice { speaker, channel, .. }, found)| {
        let found = found?;
        let name = known.voices[found.known].name.to_string();
        let confidence = (found.confidence * 1e3).floor() / 1e3;
        Some(KnownSpeakerOut { speaker: *speaker, channel: *channel, name, confidence })
    });
    named.collect()
}
