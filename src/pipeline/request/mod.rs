//! The create request of a job: built from its template, its sidecars and its row.

pub mod build;
pub mod callback_address;
pub mod refresh;
pub mod row_overrides;
pub mod template_vars;
