//! What every command needs: its start, its end with an exit code, signals, the service manager, and access to the queue
//! and to the services. Start reading at `entry.rs`.

pub mod batch_result;
pub mod entry;
pub mod exit;
pub mod queue_access;
pub mod service_session;
pub mod signals;
pub mod supervisor;
