//! The status page for people at `GET /`.

pub(crate) mod page;
pub(crate) mod statistics;
mod view;
