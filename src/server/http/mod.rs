//! The interface over HTTP: routes, keys, bodies, and one file for each group of endpoints. Start reading at `routes.rs`.

pub(crate) mod auth;
pub(crate) mod connections;
pub(crate) mod cors;
pub(crate) mod create;
pub(crate) mod error;
mod forwarded;
mod health;
pub(crate) mod links;
pub(crate) mod listener;
pub(crate) mod lists;
pub(crate) mod long_answers;
pub(crate) mod multipart;
mod openapi;
mod parameter_limits;
pub(crate) mod records;
pub(crate) mod request_body;
pub(crate) mod requests_in_progress;
pub(crate) mod response;
pub(crate) mod routes;
pub(crate) mod streamed;
pub(crate) mod tls;
pub(crate) mod upload;
mod v1;
pub(crate) mod validate_create;
mod write_timeout;
