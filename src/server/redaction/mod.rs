//! Redacts personal information in a transcript before anything else is made from it. Pure: patterns, checksums and word
//! lists, no model. `plan.rs` reads the request, `find.rs` finds what it names with `rules/`, and `redact.rs` replaces it.
//! Start reading at `redact.rs`.

mod common_words;
mod cue;
mod entity;
mod find;
mod found_span;
mod name_lists;
mod plan;
mod redact;
mod rules;
mod speech_elements;
mod voice_text;

pub use entity::{EntityType, kinds_of};
pub use plan::RedactionPlan;
pub use redact::{find_places, redact};
