//! The status page for people at `GET /`. Start reading at `page.rs`.

pub(crate) mod page;
pub(crate) mod statistics;
mod view;
