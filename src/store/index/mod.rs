//! What a store keeps in memory beside its rows, rebuilt when it is opened. Start reading at `job_index.rs`.

pub(crate) mod budget_queue;
pub(crate) mod job_index;
mod job_table;
mod ready_queue;
mod renderings;
mod spending;
