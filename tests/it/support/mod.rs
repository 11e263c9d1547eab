//! Test support: a folder with the real binary, stubs of a service, recorded speech.

pub mod bed;
pub mod certificates;
pub mod child;
pub mod config;
pub mod faulty_service;
pub mod fuzzing;
pub mod jobs;
pub mod leftovers;
pub mod librivox;
pub mod literals;
pub mod long_flac;
pub mod manifests;
pub mod manual_clock;
pub mod prometheus;
pub mod proxy;
pub mod receiver;
pub mod s3;
pub mod scripted;
pub mod store_rules;
pub mod stub;
pub mod terminal;
pub mod test_service;
pub mod two_voices;
pub mod wall;
pub mod whisper_model;
