//! Enrichments that are made of the transcript alone, where no language model makes them. Pure. `entities` lists what the
//! rules of the redaction find, `sentiments` adds up the `valence`s of words. `chapters` divides the transcript where its
//! words change (`divide`) and names what is said (`keywords`), `summary` selects what most of it resembles
//! (`centrality`); `stems` has the words that they count. `envelopes` wraps them for a result. Start reading at `chapters.rs`.

mod centrality;
mod chapters;
mod divide;
mod entities;
mod envelopes;
mod keywords;
mod sentiments;
mod stems;
mod summary;
#[cfg(test)]
mod testing;
mod valence;

pub use chapters::find_chapters;
pub use entities::find_entities;
pub use envelopes::add_text_enrichments;
pub use keywords::keywords;
pub use sentiments::find_sentiments;
pub use summary::find_summary;
pub use valence::{Polarity, polarity};

/// Another language is spoken. What was measured to be better than a baseline in English alone is made of English alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotEnglish;
