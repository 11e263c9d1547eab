//! The HTTP API and the metrics: the commands of the command line for programs at this machine and others. Start reading at
//! `routes.rs`; `access/` decides who may do what, `server.rs` takes the connections.

pub(crate) mod access;
mod answer;
mod call;
mod commands;
mod control;
mod events;
mod metrics;
mod openapi;
mod queries;
mod reads;
mod routes;
pub(crate) mod server;
