//! What the queue offers over HTTP: the API for programs and the pages for people, on one address. Start reading at
//! `server.rs`, which takes the connections; `access/` decides who may do what.

pub(crate) mod access;
mod api;
mod editor;
mod pages;
pub(crate) mod server;
