//! What a row of a manifest orders besides its template.

use crate::config::template::overlay::Overlay;
use crate::config::template::text::RenderedTemplate;
use crate::domain::manifest_row::ManifestRow;
use crate::wire::params::{Params, Vocabulary};

/// What the row says over its template, as anything else that is said of a recording.
pub fn overlay(row: &ManifestRow) -> Overlay {
    let mut overlay = Overlay::new(row.location());
    overlay.template.clone_from(&row.template);
    if !row.languages.is_empty() {
        overlay.set_languages(&row.languages);
    }
    overlay
}

/// Adds the words to be known: besides the others.
///
/// # Errors
/// In words, what the interface does not take of it.
pub fn apply(row: &ManifestRow, rendered: RenderedTemplate) -> Result<RenderedTemplate, String> {
    let params = with(row, rendered.params);
    let wrong = params.check();
    match wrong.is_empty() {
        true => Ok(RenderedTemplate { params, ..rendered }),
        false => Err(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

fn with(row: &ManifestRow, mut params: Params) -> Params {
    if !row.vocabulary.is_empty() {
        params.custom_vocabulary = Some(true);
        let words = row.vocabulary.iter().map(|word| Vocabulary { value: word.clone(), ..Vocabulary::default() });
        params.custom_vocabulary_config.get_or_insert_default().vocabulary.extend(words);
    }
    params
}
