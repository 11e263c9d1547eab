//! What a row of a manifest orders besides its template.

use crate::config::meant::Source;
use crate::config::template::{Rendered, Template};
use crate::domain::row::Row;
use crate::wire::params::{Params, Vocabulary};

/// The template of a job: the one that its row names, or its source's.
///
/// # Errors
/// In words, where jobs.toml has no template of that name.
pub fn template<'s>(source: &'s Source, row: Option<&Row>) -> Result<&'s Template, String> {
    let Some(name) = row.and_then(|row| row.template.as_ref()) else { return Ok(&source.template) };
    source
        .shared
        .templates
        .get(name)
        .ok_or_else(|| format!("jobs.toml has no [template.{name}], which the row names: write it, or change the row"))
}

/// Adds what the row says.
///
/// # Errors
/// In words, what the interface does not take of it.
pub fn apply(row: &Row, rendered: Rendered) -> Result<Rendered, String> {
    let params = with(row, rendered.params);
    let wrong = params.check();
    match wrong.is_empty() {
        true => Ok(Rendered { params, ..rendered }),
        false => Err(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// The parameters as a row changes them.
pub fn with(row: &Row, mut params: Params) -> Params {
    if !row.languages.is_empty() {
        let config = params.language_config.get_or_insert_default();
        config.languages = Some(row.languages.clone());
        // One that is named is not looked for among others.
        if row.languages.len() == 1 {
            config.code_switching = None;
        }
    }
    if !row.vocabulary.is_empty() {
        params.custom_vocabulary = Some(true);
        let words = row.vocabulary.iter().map(|word| Vocabulary { value: word.clone(), ..Vocabulary::default() });
        params.custom_vocabulary_config.get_or_insert_default().vocabulary.extend(words);
    }
    params
}
