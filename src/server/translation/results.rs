//! What came of the translations of a transcript. Pure.

use crate::domain::transcript::Transcript;
use crate::wire::enrichment::{EnvelopeError, TranslatorNote};
use std::collections::BTreeMap;

/// A translation into one language.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeTranslation {
    /// It has the utterances of the original, in the same order.
    pub transcript: Transcript,
    /// How it was made; `None` if a language model has made it.
    pub translator: Option<TranslatorNote>,
}

/// The outcomes of the target languages that are not the one that is spoken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TranslationResults {
    pub by_target: BTreeMap<String, Result<MadeTranslation, EnvelopeError>>,
    /// How many seconds they took.
    pub seconds: f64,
}

impl TranslationResults {
    /// Returns the outcomes if nothing can be translated, for this reason.
    pub fn failed<'t>(targets: impl IntoIterator<Item = &'t str>, error: &EnvelopeError) -> Self {
        let by_target = targets.into_iter().map(|target| (target.to_owned(), Err(error.clone()))).collect();
        Self { by_target, seconds: 0.0 }
    }
}
