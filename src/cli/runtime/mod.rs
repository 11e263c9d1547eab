//! What every command needs: its start, its end with an exit code, signals, the service manager, and access to the queue
//! and to the services. Start reading at `entry.rs`.

pub(crate) mod batch_result;
pub(crate) mod entry;
pub(crate) mod exit;
pub(crate) mod only_paths;
pub(crate) mod queue_access;
pub(crate) mod reload_signal;
pub(crate) mod remote_queue;
pub(crate) mod serve_reload;
pub(crate) mod service_session;
pub(crate) mod signals;
pub(crate) mod supervisor;
