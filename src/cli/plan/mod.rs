//! `scribed plan`: what a pass would send, counted without sending it. `scan` goes through the sources, `totals` adds up,
//! `duplicates` finds equal contents, `report` prints. Start reading at `scan/mod.rs`.

mod duplicates;
pub(crate) mod explain_request;
mod manifests;
pub(crate) mod report;
pub(crate) mod scan;
mod totals;
