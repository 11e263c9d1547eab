//! What engines that are reached over HTTP have in common, whether they recognise speech or answer as a language model:
//! `connection` sends, `failure` says what failures mean, `refusal` reads messages, `outage` leaves an engine alone that
//! goes on failing, `persistence` says how often one is tried. Start reading at `connection.rs`.

pub(crate) mod connection;
pub(crate) mod failure;
pub(crate) mod outage;
pub(crate) mod persistence;
pub(crate) mod refusal;
