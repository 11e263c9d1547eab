//! The HTTP API of the queue: who may use it, what it answers, and the metrics. Beside it the traces.

mod access;
mod document;
pub mod editor;
mod editor_in_a_browser;
mod prometheus;
mod remote;
mod requests;
pub mod served;
mod traces;
