//! Which speakers of the parts of a recording are one person.

use super::speaker_voices::SpeakerVoice;
use super::voice_match::{SURE, VoiceComparison, one_to_one};
use super::voice_model::VoiceModel;
use crate::domain::joined_transcript::VoicePerson;
use std::collections::BTreeMap;

/// Below this confidence two voices are clearly those of two people: it is as certain as that two are one.
const UNLIKE: f64 = 1.0 - SURE;

/// Tells for each speaker of each part, in the order of the recording, who of the people before it is, or that it is
/// somebody new. In one part no two speakers are the same person.
pub fn people(comparison: &VoiceComparison, parts: Vec<Vec<SpeakerVoice>>) -> Vec<BTreeMap<u32, VoicePerson>> {
    let mut known: Vec<VoiceModel> = Vec::new();
    parts.into_iter().map(|part| people_of_part(comparison, &mut known, part)).collect()
}

/// Adds what is heard in the part to the voices that are known.
fn people_of_part(
    comparison: &VoiceComparison,
    known: &mut Vec<VoiceModel>,
    part: Vec<SpeakerVoice>,
) -> BTreeMap<u32, VoicePerson> {
    let models = part.iter().map(|voice| voice.model.clone()).collect();
    let confidences = comparison.confidences(models, known.clone());
    let matches = one_to_one(&confidences);
    let mut found = BTreeMap::new();
    for ((SpeakerVoice { speaker, model, .. }, same), confidences) in part.into_iter().zip(matches).zip(confidences) {
        let person = match same {
            Some(same) => {
                known[same.known] = known[same.known].join(&model);
                VoicePerson { number: same.known, is_new: false }
            }
            None => {
                known.push(model);
                let is_new = confidences.iter().all(|confidence| *confidence < UNLIKE);
                VoicePerson { number: known.len() - 1, is_new }
            }
        };
        found.insert(speaker, person);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::voice_match::tests::comparison;
    use super::super::voice_model::tests::voice;
    use super::*;

    #[test]
    fn people_keep_their_numbers_from_part_to_part() {
        let said = |speaker, seed, kind| SpeakerVoice { speaker, channel: 0, model: voice(seed, 600, kind) };
        let parts = vec![
            vec![said(0, 1, 2.0), said(1, 2, -2.0)],
            vec![],
            vec![said(0, 3, -2.0), said(1, 4, 4.0), said(2, 5, 2.0)],
            vec![said(4, 6, 4.0)],
        ];
        let found = people(&comparison(), parts);
        let numbers: Vec<Vec<(u32, usize)>> =
            found.iter().map(|part| part.iter().map(|(speaker, person)| (*speaker, person.number)).collect()).collect();
        assert_eq!(numbers, [vec![(0, 0), (1, 1)], vec![], vec![(0, 1), (1, 2), (2, 0)], vec![(4, 2)]]);
        assert!(found[0].values().all(|person| person.is_new) && !found[2][&0].is_new && !found[3][&4].is_new);
    }
}
