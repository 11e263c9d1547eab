//! The integration tests: one binary, one file per subject. A missing tool is a failure here:
//! `tests/run.sh` installs what they need.
#![allow(clippy::unwrap_used, missing_docs)]

mod abuse;
mod accounts;
mod buckets;
mod budget;
mod callbacks;
mod calls;
mod check;
mod client;
mod clients;
mod commands;
mod confined;
mod connections;
mod counted;
mod crashes;
mod crates;
mod daemon;
mod deadly_work;
mod desk;
mod docs;
mod document;
mod elsewhere;
mod escapes;
mod explained;
mod extract;
mod fair;
mod faults;
mod floors;
mod forget;
mod fuzzed;
#[path = "../support/fuzzing.rs"]
mod fuzzing;
mod generated_pages;
mod glances;
mod growth;
mod harvest;
mod hostile;
mod human;
mod incomplete;
mod intake;
mod jobs;
mod kept_uploads;
mod kill;
mod killed;
mod lanes;
mod large_records;
mod laws;
mod ledger;
mod lengths;
#[path = "../support/librivox.rs"]
mod librivox;
mod links;
mod list_scans;
mod list_trust;
mod lists;
#[path = "../support/long_flac.rs"]
mod long_flac;
mod machine;
mod manifests;
mod messages;
mod model;
mod monitoring;
mod mounts;
mod named_keys;
mod old_data;
mod once;
mod owners;
mod page;
mod pauses;
mod permissions;
mod picks;
mod places;
mod plain_http;
mod plan;
mod power_loss;
mod producers;
mod public_links;
mod received;
mod recogniser;
mod reconcile;
mod reload;
mod relocated;
mod remote;
mod renamed;
mod replaced;
mod results;
mod roots;
mod samples;
mod saves;
mod secrets;
mod server;
mod server_hostile;
mod service;
mod services;
mod set_aside;
mod shown;
mod sim;
mod simulation;
mod slots;
mod source_names;
mod sources;
#[path = "../support/storm/mod.rs"]
mod storm;
mod storms;
mod systemd;
mod tls;
mod understood;
mod urls;
mod verify;
mod windows;
mod wording;
mod writable;
mod wrong_clock;

use support::scripted;

mod support {
    pub mod bed;
    pub mod certificates;
    pub mod literals;
    pub mod proxy;
    pub mod receiver;
    pub mod s3;
    pub mod scripted;
    pub mod stub;
}
