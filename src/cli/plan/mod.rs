//! `scribed plan`: what a pass would send, counted without sending it. `scan` goes through the sources, `totals` adds up,
//! `duplicates` finds equal contents, `report` prints.

pub mod duplicates;
pub mod explain_request;
pub mod manifests;
pub mod report;
pub mod scan;
pub mod totals;
