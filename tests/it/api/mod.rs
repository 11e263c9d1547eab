//! The HTTP API of the queue: who may use it, what it answers, and the metrics.

mod access;
mod document;
mod remote;
mod requests;
mod served;
