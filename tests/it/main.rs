//! The integration tests, one binary. A missing tool is a failure here: install `ffmpeg
//! libpocketsphinx3 pocketsphinx-en-us pocketsphinx-testdata`.
#![allow(clippy::unwrap_used, missing_docs)]

mod desk;
#[path = "../support/librivox.rs"]
mod librivox;
mod server;
mod server_hostile;
mod service;
