//! The create request of a job: built from its template, its sidecars and its row.

pub(crate) mod beside;
pub(crate) mod build;
pub mod callback_address;
pub(crate) mod create;
pub(crate) mod layers;
pub(crate) mod refresh;
mod row_overrides;
pub(crate) mod stored_params;
pub(crate) mod template_vars;
