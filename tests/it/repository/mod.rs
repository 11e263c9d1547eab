//! The repository itself: the map of the rooms, the documentation, the wording, the crates, the snapshots.

mod contributing;
mod crates;
mod docs;
mod floors;
mod generated_pages;
mod packaging;
mod snapshots;
mod wording;
