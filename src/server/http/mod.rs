//! The interface over HTTP: routes, keys, bodies, and one file for each group of endpoints. Start reading at `routes.rs`.

pub mod auth;
pub mod connections;
pub mod cors;
pub mod create;
pub mod error;
pub mod forwarded;
pub mod limits;
pub mod links;
pub mod listener;
pub mod lists;
pub mod multipart;
pub mod openapi;
pub mod read;
pub mod request_body;
pub mod requests_in_progress;
pub mod response;
pub mod routes;
pub mod streamed;
pub mod tls;
pub mod upload;
pub mod v1;
pub mod validate_create;
pub mod write_timeout;
