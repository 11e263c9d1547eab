//! What a store keeps in memory beside its rows, rebuilt when it is opened.

pub mod budget_queue;
pub mod job_index;
pub mod job_table;
pub mod ready_queue;
pub mod spending;
