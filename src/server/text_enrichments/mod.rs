//! Enrichments that are made of the transcript alone, where no language model makes them. Pure. `entities` lists what the
//! rules of the redaction find, `sentiments` adds up the valences of words.

mod entities;
mod sentiments;
mod valence;

pub use entities::find_entities;
pub use sentiments::find_sentiments;
pub use valence::{Polarity, polarity};
