//! The HTTP API and the metrics: the commands of the command line for programs at this machine and others. Start reading at
//! `routes.rs`.

pub(super) mod answer;
pub(super) mod call;
mod commands;
pub(super) mod control;
pub(super) mod events;
pub(super) mod metrics;
pub(super) mod openapi;
mod queries;
mod reads;
pub(super) mod routes;
mod search;
