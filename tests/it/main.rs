//! The integration tests: one binary, one file per subject. A missing tool is a failure here:
//! `tests/run.sh` installs what they need.
#![allow(clippy::unwrap_used, missing_docs)]

mod budget;
mod calls;
mod client;
mod commands;
mod crashes;
mod daemon;
mod desk;
mod elsewhere;
mod faults;
mod floors;
mod hostile;
mod human;
mod intake;
mod jobs;
mod kill;
mod killed;
mod laws;
#[path = "../support/librivox.rs"]
mod librivox;
mod lists;
mod machine;
mod model;
mod mounts;
mod old_data;
mod once;
mod plan;
mod power_loss;
mod producers;
mod recogniser;
mod renamed;
mod results;
mod samples;
mod secrets;
mod server;
mod server_hostile;
mod service;
mod services;
mod sim;
mod simulation;
mod systemd;
mod walking;

mod support {
    pub mod bed;
    pub mod proxy;
    pub mod receiver;
    pub mod scripted;
    pub mod stub;
}
