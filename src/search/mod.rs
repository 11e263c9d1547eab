//! The full-text search over all transcripts: an index in the state directory, which can be made again from the kept
//! results at any time. Nothing else depends on it.
//!
//! A transcript is divided into `passage`s, and a text into `words`, by the same rules for the index and for a query.
//! `schema` says what is a term, `stored` what is kept to show a hit, `query` what a person may type, and `excerpt` where in
//! a passage a query is met. `index` reads and writes the files, `update` compares them with the queue, and `worker` does
//! that while a daemon runs. Start reading at `index/mod.rs`.

mod excerpt;
mod index;
mod passage;
mod query;
mod schema;
mod stored;
mod update;
mod words;
mod worker;

pub use excerpt::ExcerptPart;
pub use index::{
    FoundPassages, IndexError, IndexMark, LAST_HIT, MOST_COUNTED, PageOrder, PassageHit, QueueComparison, SearchIndex,
};
pub use passage::Passage;
pub use query::{ParsedQuery, PassageFilter};
pub use schema::JobText;
pub use update::{AfterStep, IndexUpdater, TextReader, UpdateError};
pub use worker::keep_up_to_date;
