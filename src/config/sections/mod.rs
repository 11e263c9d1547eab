//! One file for each table or group of settings: from TOML values to the checked model.

pub mod bucket;
pub mod budget;
pub mod callback;
pub mod certificates;
pub mod manifests;
pub mod patterns;
pub mod schedule;
pub mod scheduling;
pub mod serve;
pub mod service_keys;
pub mod services;
pub mod sources;
pub mod timezone;
pub mod timing;
pub mod track_selection;
