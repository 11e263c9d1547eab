//! How much of a parameter this service takes: what the interface leaves open and a recogniser does not.

use crate::wire::params::Params;

/// Words of a vocabulary: each is a few kilobytes in the recogniser, for as long as the transcription lasts.
const VOCABULARY: usize = 10_000;

/// Spellings that are looked for.
const SPELLINGS: usize = 100_000;

/// What is more than this service takes, as "field must …".
pub fn beyond(params: &Params) -> Vec<String> {
    let words = params.custom_vocabulary_config.as_ref().map_or(0, |config| config.vocabulary.len());
    let dictionary = params.custom_spelling_config.as_ref().map(|config| &config.spelling_dictionary);
    let spellings = dictionary.map_or(0, |dictionary| dictionary.values().map(Vec::len).sum());
    let limits = [
        ("custom_vocabulary_config.vocabulary", words, VOCABULARY),
        ("custom_spelling_config.spelling_dictionary", spellings, SPELLINGS),
    ];
    let over = limits.into_iter().filter(|(_, count, most)| count > most);
    over.map(|(field, _, most)| format!("{field} must hold at most {most} entries")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::params::{CustomVocabularyConfig, Vocabulary};

    #[test]
    fn a_vocabulary_has_an_end() {
        let with = |count| {
            let vocabulary = vec![Vocabulary { value: "word".to_owned(), ..Vocabulary::default() }; count];
            let config = CustomVocabularyConfig { vocabulary, default_intensity: None };
            beyond(&Params { custom_vocabulary_config: Some(config), ..Params::default() })
        };
        assert_eq!(with(VOCABULARY), [] as [&str; 0]);
        assert_eq!(with(VOCABULARY + 1), ["custom_vocabulary_config.vocabulary must hold at most 10000 entries"]);
    }
}
