//! The page for people at `GET /`.

pub mod page;
pub mod statistics;
pub mod view;
