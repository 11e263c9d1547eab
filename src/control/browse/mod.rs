//! Searches among all jobs of the queue, and figures of all of them, in the time that a person waits for a page: from a
//! table in memory, which is made when it is first asked for. Start reading at `browser.rs`.

mod activity;
mod browser;
mod columns;
mod evaluate;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use browser::{Browser, activity, browse, matching};
