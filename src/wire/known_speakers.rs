//! Reads which speakers of a result are known people: the embedded service adds `known_speakers`, which the interface does
//! not have.

use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::wire::bounded_value::BoundedValue;
use serde_json::Value;

/// The field of the result.
pub const KNOWN_SPEAKERS: &str = "known_speakers";

/// Returns the names of speakers. What cannot be read names nobody: no text depends on it.
pub(super) fn speaker_names(value: &BoundedValue) -> SpeakerNames {
    let list = value.0.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut known: Vec<(u32, SpeakerName, f64)> = list.iter().filter_map(known_speaker).collect();
    known.sort_by(|(.., one), (.., other)| other.total_cmp(one));
    let mut names = SpeakerNames::default();
    known.into_iter().for_each(|(speaker, name, confidence)| names.add(speaker, name, confidence));
    names
}

fn known_speaker(value: &Value) -> Option<(u32, SpeakerName, f64)> {
    let speaker = u32::try_from(value.get("speaker")?.as_u64()?).ok()?;
    let name = SpeakerName::parse(value.get("name")?.as_str()?).ok()?;
    Some((speaker, name, value.get("confidence")?.as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_read_and_what_is_none_is_nobodys() {
        let list = json!([
            { "speaker": 1, "channel": 0, "name": "Ann", "confidence": 0.93 },
            { "speaker": 0, "name": "Ann", "confidence": 0.97 },
            { "speaker": 2, "name": "Bob", "confidence": 0.5 },
            { "speaker": -3, "name": "Eve", "confidence": 1.0 },
            { "speaker": 3, "name": "a\nb", "confidence": 1.0 },
            { "speaker": 4, "name": "Zoë", "confidence": "1" },
            17, null,
        ]);
        let names = speaker_names(&BoundedValue(Some(list)));
        let called = [0, 1, 2, 3, 4].map(|speaker| names.name_of(speaker));
        assert_eq!(called, ["Ann", "Speaker 2", "Speaker 3", "Speaker 4", "Speaker 5"]);
        for other in [None, Some(json!({ "speaker": 1 })), Some(json!("Ann"))] {
            assert_eq!(speaker_names(&BoundedValue(other)), SpeakerNames::default());
        }
    }
}
