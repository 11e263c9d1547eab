//! One file for each command: it reads its arguments, asks the queue or the services, and prints the answer. Start
//! reading at `cancel.rs`.

pub(crate) mod accept;
pub(crate) mod acknowledge;
pub(crate) mod add;
pub(crate) mod bump;
pub(crate) mod cancel;
pub(crate) mod captions;
pub(crate) mod check;
mod check_disk;
mod check_manifests;
mod check_output_files;
mod check_outputs;
pub(crate) mod cost;
pub(crate) mod drain;
pub(crate) mod explain;
pub(crate) mod forget;
pub(crate) mod harvest;
pub(crate) mod init;
pub(crate) mod jobs;
pub(crate) mod manual;
pub(crate) mod once;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod reconcile;
pub(crate) mod reload;
pub(crate) mod render;
pub(crate) mod retry;
mod retry_incomplete;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod status_check;
pub(crate) mod upgrade;
pub(crate) mod verify;
