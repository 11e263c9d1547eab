//! The store of one machine: rows in sled, history in files beside them. Start reading at `open.rs`.
//!
//! ```text
//! <dir>/queue/     sled: `j` + number -> job, `b` + hash of the order -> purchase, `m/…` -> what is true of the store
//! <dir>/queue/large/  see `store/large.rs`
//! <dir>/history/   see `store/journal.rs`
//! <dir>/queue.lock  see `store/process_lock.rs`
//! <dir>/restore-unfinished  see `restore.rs`
//! ```
//!
//! sled 0.34.7 is safe from a killed process by itself, and from power loss only when used like this
//! (its own `flush` never calls fsync; 639 of 640 simulated power losses lost what it had acknowledged,
//! none of 4,640 with these rules):
//! - a `sync_data` on our own handle of its file follows every `flush`;
//! - what it creates when opened is synced before anything is acknowledged;
//! - a value stays far below the size at which sled puts it into a file of its own, never synced;
//! - one plain insert for each step, in order; no batches, no transactions, no `flush_async`;
//! - its own flusher stays on: it collects garbage, and makes durable what nobody waits for.
//!
//! A page that went bad can come back as rows of an older time, or be missing, without a word from
//! sled. So every value carries a checksum and its own key, and the numbers of jobs have no gaps.

mod committer;
mod encoding;
mod failure;
mod open;
mod restore;
mod row_check;
mod row_copy;
mod rows;
#[cfg(test)]
mod tests;

pub use open::{open, open_at, open_copy, open_rebuilt};
pub use restore::{RestoredState, may_be_filled};
pub use row_check::{CheckedRow, RowCheckError, check_rows};
pub use rows::{is_job_key, is_purchase_key};
