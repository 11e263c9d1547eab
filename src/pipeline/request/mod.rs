//! The create request of a job: built from its template, its sidecars and its row.

pub(crate) mod build;
pub mod callback_address;
pub(crate) mod refresh;
mod row_overrides;
pub(crate) mod template_vars;
