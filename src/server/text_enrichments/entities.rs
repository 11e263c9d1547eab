//! `named_entity_recognition` by the rules that also find what is redacted: patterns, checksums and word lists.

use crate::domain::transcript::Transcript;
use crate::server::redaction::{EntityType, find_places};
use crate::wire::enrichment::Entity;
use serde_json::Map;

/// Types that are only useful where something is hidden.
const NOT_LISTED: [EntityType; 1] = [EntityType::NumericalPii];

/// Returns the entities of a transcript, in order of time. `is_written` says whether its recogniser writes case and
/// punctuation. What the redaction has replaced is no entity any more.
pub fn find_entities(transcript: &Transcript, is_written: bool) -> Vec<Entity> {
    let wanted = EntityType::ALL.iter().copied().filter(|kind| !NOT_LISTED.contains(kind)).collect();
    let mut all = Vec::new();
    for place in find_places(transcript, is_written, &wanted) {
        let Some(said) = transcript.utterances.get(place.utterance) else { continue };
        let words = said.words.get(place.words.clone()).unwrap_or_default();
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        let text = text.trim().trim_matches(|letter: char| letter.is_ascii_punctuation() && letter != '+');
        if text.is_empty() || text.contains(['[', ']', '#']) {
            continue;
        }
        let start = words.first().map_or(said.start, |word| word.start);
        let end = words.last().map_or(said.end, |word| word.end);
        let entity_type = place.kind.name().to_owned();
        all.push(Entity { entity_type, text: text.to_owned(), start, end, other: Map::new() });
    }
    all.sort_by(|one, other| one.start.total_cmp(&other.start));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transcript::{Utterance, Word};

    fn transcript(said: &str) -> Transcript {
        let word = |(at, text): (usize, &str)| Word {
            text: format!(" {text}"),
            start: at as f64,
            end: at as f64 + 0.5,
            confidence: 0.9,
        };
        let words: Vec<Word> = said.split(' ').enumerate().map(word).collect();
        let base = Utterance {
            text: String::new(),
            start: 0.0,
            end: 0.0,
            confidence: 0.9,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words: Vec::new(),
        };
        Transcript { languages: vec!["en".to_owned()], utterances: vec![base.with_words(words)] }
    }

    fn found(said: &str, is_written: bool) -> Vec<(String, String, f64, f64)> {
        let all = find_entities(&transcript(said), is_written);
        all.into_iter().map(|one| (one.entity_type, one.text, one.start, one.end)).collect()
    }

    #[test]
    fn an_entity_has_the_times_of_its_words() {
        let of = |kind: &str, text: &str, start, end| (kind.to_owned(), text.to_owned(), start, end);
        assert_eq!(
            found("my name is john smith and we meet on monday in paris", false),
            [
                of("NAME", "john smith", 3.0, 4.5),
                of("DAY", "monday", 9.0, 9.5),
                of("LOCATION_CITY", "paris", 11.0, 11.5)
            ]
        );
        assert_eq!(
            found("Write to john@example.com, please.", true),
            [of("EMAIL_ADDRESS", "john@example.com", 2.0, 2.5)]
        );
    }

    #[test]
    fn what_is_redacted_is_no_entity() {
        assert_eq!(found("My name is [NAME_1] and I live in [LOCATION_CITY_2].", true), []);
        assert_eq!(found("my name is #### #####", false), []);
        assert_eq!(found("", false), []);
    }
}
