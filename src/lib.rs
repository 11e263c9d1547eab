//! scribed turns folders of recordings into transcripts and subtitles, unattended, paid once.
//!
//! This is the map of the rooms. A file uses only rooms on lower floors and files of its own room;
//! `tests/it/repository/floors.rs` enforces this, and lists the exceptions, each with its reason. The `mod.rs` of each
//! room says what it contains; that of a larger one also where to start reading. `docs/glossary.md` defines the terms.
//!
//! ```text
//! main.rs              calls `run`
//! testing.rs           what tests use of the rooms
//! cli/                 floor 7   the commands, and what people read
//! daemon/              floor 6   the composition root: the only room that knows all others
//! web/                 floor 6   the HTTP API, the metrics, the pages, and who may use them; beside daemon/
//! notifications/       floor 6   who is notified of what, and when; beside daemon/
//! control/             floor 5   what commands ask of the queue, with a daemon and without
//! notifications/queue notifications/spool   floor 4   what waits for each target, and its files
//! pipeline/engine/     floor 4   claims jobs, runs their stages, commits what comes of them
//! server/              floor 4   the embedded transcription service
//! callbacks/           floor 4   the receiver of callbacks
//! traces/              floor 4   traces of jobs, sent to a collector of OpenTelemetry
//! harvest/             floor 4   what a service's lists hold, written into a folder
//! search/              floor 4   the full-text search over all transcripts
//! pipeline/            floor 3   stages, requests, recovery, budget
//! manifests/passes/    floor 3   jobs of the rows of manifests, and receipts; beside pipeline/
//! manifests/format/    floor 2   reading manifests; beside source/
//! store/ client/ source/ media/ output/ config/   floor 2   adapters
//! wire/ tls/           floor 1   the service's interface; certificates
//! backpressure/        floor 1   when something may be sent to a service, `Retry-After`, and how waits grow
//! store/contract client/contract   floor 1   interfaces
//! captions/            floor 1   what of a transcript is shown when, and the subtitle formats
//! review/              floor 1   what of a result to distrust: the checks of a transcript against its recording
//! voice/               floor 1   how alike two voices are
//! html/                floor 1   parts of pages that the service and the queue share
//! clock crash_points permission_errors shortage rooted_path durable_file blocking   floor 1   helpers
//! domain/              floor 0   no I/O, no clock, no async
//! ```
//!
//! A job from its source to the disk:
//!
//! ```text
//! source ─▶ [store] ─▶ engine ─▶ settle ▷ probe ▷ (extract) upload ▷ submit ▷ wait ▷ write ─▶ disk
//!                                                                  ╰ recovery ╯ ↑
//!                                                           callbacks ──hint──╯
//! ```
//!
//! `tests/it/repository/floors.rs` also enforces:
//!
//! 1. Nothing in `domain/` uses time, disk, network or async.
//! 2. Only `clock.rs` reads the time, except for code that shows progress to a person.
//! 3. Only `store/sled/` knows sled, and only `backpressure/backoff.rs` the `backoff` crate. Only `blocking.rs` starts
//!    tokio's threads for work that blocks. Four files start threads of their own; the test lists them.
//! 4. `server/` knows nothing of the queue: it could run alone.
//! 5. Only `cli/render/terminal.rs` writes to stdout and stderr; it escapes text of others (`domain/escape.rs`).
//! 6. The name of a public type is defined once.
//! 7. No module is public, so that the compiler reports what nothing uses; `testing.rs` lists what tests use.

mod backpressure;
mod blocking;
mod callbacks;
mod captions;
mod cli;
mod client;
mod clock;
mod config;
mod control;
mod crash_points;
mod daemon;
mod domain;
mod durable_file;
mod harvest;
mod html;
mod manifests;
mod media;
mod notifications;
mod output;
mod permission_errors;
mod pipeline;
mod review;
mod rooted_path;
mod search;
mod server;
mod shortage;
mod source;
mod store;
mod tls;
mod traces;
mod voice;
mod web;
mod wire;

#[doc(hidden)]
pub mod testing;

/// Runs the program.
pub use cli::runtime::entry::main as run;
