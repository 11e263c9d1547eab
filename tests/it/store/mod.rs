//! The queue on the disk: the laws of every store, and what a killed process or an older release leaves.

mod backup;
mod durability;
mod large_records;
mod laws;
mod model;
mod old_data;
mod power_loss;
mod result_retention;
mod state_file;
mod upgrade;
