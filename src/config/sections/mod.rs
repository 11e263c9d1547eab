//! One file for each table or group of settings: from TOML values to the checked model. Start reading at `sources.rs`.

pub(crate) mod bucket;
pub(crate) mod budget;
pub(crate) mod callback;
pub(crate) mod captions;
mod certificates;
pub(crate) mod language_model;
mod mail_server;
pub(crate) mod manifests;
pub(crate) mod notify;
mod notify_target;
mod output_files;
pub(crate) mod patterns;
pub(crate) mod recognisers;
pub(crate) mod review;
pub(crate) mod schedule;
pub(crate) mod scheduling;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod service_keys;
pub(crate) mod services;
pub(crate) mod sources;
pub(crate) mod telemetry;
pub(crate) mod timezone;
mod timing;
pub(crate) mod track_selection;
pub(crate) mod web;
