//! What a manifest row orders besides its template.

use crate::config::template::overlay::Overlay;
use crate::config::template::text::RenderedTemplate;
use crate::domain::manifest_row::ManifestRow;
use crate::wire::params::{Params, Vocabulary};

/// Returns the row's settings as an overlay, like other settings of a recording.
pub fn overlay(row: &ManifestRow) -> Overlay {
    let mut overlay = Overlay::new(row.location());
    overlay.template.clone_from(&row.template);
    if !row.languages.is_empty() {
        overlay.set_languages(&row.languages);
    }
    overlay
}

/// Adds the row's vocabulary to the words that the template has.
///
/// # Errors
/// What the interface does not accept of it.
pub fn apply(row: &ManifestRow, rendered: RenderedTemplate) -> Result<RenderedTemplate, String> {
    let params = add_vocabulary(row, rendered.params);
    let wrong = params.check();
    match wrong.is_empty() {
        true => Ok(RenderedTemplate { params, ..rendered }),
        false => Err(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

fn add_vocabulary(row: &ManifestRow, mut params: Params) -> Params {
    if !row.vocabulary.is_empty() {
        params.custom_vocabulary = Some(true);
        let words = row.vocabulary.iter().map(|word| Vocabulary { value: word.clone(), ..Vocabulary::default() });
        params.custom_vocabulary_config.get_or_insert_default().vocabulary.extend(words);
    }
    params
}
