//! The create request of a job, built from its template, its sidecars and its row. `build` is the one entry: the probe
//! and `plan` use it, and `refresh` before the first create. Start reading at `build.rs`.

mod beside;
mod build;
pub(crate) mod callback_address;
mod create;
mod layers;
mod refresh;
mod row_overrides;
pub(crate) mod stored_params;
pub(crate) mod template_vars;

pub(crate) use beside::{BesideSettings, look_with_settings};
pub(crate) use build::{BuiltRequest, build, build_unless_held, forecast};
pub(crate) use create::create_request;
pub(crate) use layers::RequestLayers;
pub(crate) use refresh::{refresh, refresh_before_upload};
