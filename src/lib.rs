//! scribed turns folders of recordings into transcripts and subtitles, unattended, paid once.
//!
//! This is the map. A file uses only what stands on a lower floor, or beside it in the same room;
//! `tests/it/floors.rs` holds that.
//!
//! ```text
//! main.rs                    parse, run, print the error, exit code
//! cli/            floor 7    one small file per command
//! daemon.rs       floor 6    composition root: the only file that knows everybody
//! control/        floor 5    what commands ask of the queue: one way in, with a daemon and without
//! pipeline/engine floor 4    claim ▷ walk ▷ commit; permits, lines, leases
//! web/            floor 4    what others may ask of the daemon over HTTP: the receiver of callbacks
//! server/         floor 4    the transcription service: routes, desk, recogniser
//! harvest/        floor 4    what a service's lists hold, into a folder
//! pipeline/<move> floor 3    one file per move, one public function each
//! store/ client/ source/ media/ output/ config/   floor 2   adapters
//! wire/ clock store/contract client/contract      floor 1   doors
//! tls/            floor 1    certificates: a listener's own, and those that are trusted
//! crash.rs        floor 1    named places at which a debug build can be told to die
//! beneath.rs      floor 1    paths below a configured root, where no link is followed
//! permission.rs   floor 1    what to say where a right is missing
//! domain/         floor 0    no I/O, no clock, no async
//! ```
//!
//! The way of a job:
//!
//! ```text
//! source ─▶ [store] ─▶ engine ─▶ settle ▷ probe ▷ (extract) upload ▷ submit ▷ wait ▷ write ─▶ disk
//!                                                                  ╰ resolve ╯ ↑
//!                                                                web ──hint──╯
//! ```
//!
//! What is deliberately absent:
//!
//! 1. Nothing in `domain` knows time, disk, network or async.
//! 2. Only `domain/stage.rs` makes a stage out of a stage.
//! 3. Only `clock.rs` asks the time.
//! 4. Moves do not call moves, except to ask what another one knows of the file.
//! 5. Only `daemon.rs` constructs adapters.
//! 6. Only `wire/` knows the interface's field names.
//! 7. There is no `static` state, but for what `crash.rs` counts, which release builds lack, and how many programs
//!    that `media/sandbox.rs` starts run at once in the process.
//! 8. Nothing that costs money happens before its intent is durable, and no layer repeats a create.
//! 9. A source file is never modified, moved or deleted; an output appears whole or not at all.
//! 10. `server/` sees nothing of the queue: it could be cut out and run alone.
//! 11. Only `cli/terminal.rs` writes to stdout and stderr, and escapes what others wrote (`domain/escape.rs`).

/// One small file per command.
pub mod cli {
    pub mod acknowledge;
    pub mod add;
    pub mod args;
    pub mod bump;
    pub mod cancel;
    pub mod check;
    pub mod check_disk;
    pub mod check_lists;
    pub mod cost;
    pub mod drain;
    pub mod each;
    pub mod entry;
    pub mod explain;
    pub mod failure;
    pub mod foreseen;
    pub mod forget;
    pub mod harvest;
    pub mod init;
    pub mod jobs;
    pub mod laid_out;
    pub mod listed;
    pub mod manual;
    pub mod monitoring;
    pub mod next;
    pub mod once;
    pub mod part;
    pub mod pause;
    pub mod plan;
    pub mod planned;
    pub mod planner;
    pub mod progress;
    pub mod reconcile;
    pub mod reload;
    pub mod retry;
    pub mod row;
    pub mod run;
    pub mod schema;
    pub mod serve;
    pub mod served;
    pub mod show;
    pub mod signals;
    pub mod status;
    pub mod supervisor;
    pub mod terminal;
    pub mod twins;
    pub mod upgrade;
    pub mod verify;
    pub mod visit;
    pub mod way;
}

/// The only file that asks the time.
pub mod clock;

/// Named places at which a debug build can be told to die.
pub mod crash;

/// Paths below a root, resolved without following links.
pub mod beneath;

/// What to say where a right is missing.
pub mod permission;

/// Speaking to a transcription service.
pub mod client {
    pub mod again;
    pub mod answer;
    pub mod contract;
    pub mod hearing;
    pub mod http;
    pub mod meaning;
    pub mod pace;
    pub mod sending;
}

/// `jobs.toml`: as written, as meant, and what is wrong with it.
pub mod config {
    pub mod blind;
    mod bucket;
    mod callback;
    pub mod capture;
    mod certificates;
    pub mod folders;
    pub mod keys;
    pub mod lists;
    pub mod meant;
    #[cfg(test)]
    mod mistakes_tests;
    pub mod name_as;
    pub mod overlay;
    mod parameters;
    mod path_checks;
    pub mod path_rules;
    pub mod patterns;
    mod picking;
    pub mod places;
    pub mod problem;
    mod quantities;
    pub mod reading;
    pub mod schedule;
    pub mod schema;
    mod scoping;
    pub mod secret;
    pub mod service_keys;
    mod services;
    mod serving;
    pub mod shape;
    mod shown;
    pub mod sidecar;
    mod sources;
    mod spending;
    mod standings;
    pub mod starter;
    mod syntax;
    mod table_forms;
    pub mod template;
    #[cfg(test)]
    mod tests;
    mod timing;
    mod values;
    pub mod variables;
    pub mod written;
}

/// What commands ask of the queue, and who carries it out: the daemon over its socket, or the command itself.
pub mod control {
    pub mod acknowledging;
    pub mod adding;
    pub mod adding_url;
    pub mod caller;
    pub mod comparison;
    pub mod costing;
    pub mod deleting;
    pub mod explaining;
    pub mod facts;
    pub mod forecast;
    pub mod forgetting;
    pub mod freshening;
    pub mod hands;
    pub mod health;
    pub mod last_lists;
    pub mod last_pass;
    pub mod listing;
    mod named;
    pub mod ordering;
    pub mod pausing;
    pub mod place;
    pub mod plan_file;
    pub mod plan_run;
    pub mod reckoning;
    pub mod reloading;
    pub mod request;
    pub mod scanning;
    pub mod server;
    pub mod socket;
    mod state_file;
    pub mod status;
    pub mod steering;
    pub mod verifying;
}

/// The composition root: the only file that knows everybody.
pub mod daemon;

/// What scribed is about, pure: names, the job, its stages, the token, the retry decision.
pub mod domain {
    pub mod access;
    pub mod budget;
    pub mod charge;
    pub mod checksum;
    pub mod cron_line;
    pub mod due_limit;
    pub mod escape;
    pub mod fault;
    pub mod finish;
    pub mod format;
    pub mod health;
    pub mod hint;
    pub mod home;
    pub mod job;
    pub mod making;
    pub mod missing;
    pub mod names;
    pub mod nearest;
    pub mod path;
    pub mod pattern;
    pub mod pause;
    pub mod pick;
    pub mod reason;
    pub mod remote;
    pub mod retell;
    pub mod retry;
    pub mod row;
    pub mod sent;
    pub mod slots;
    pub mod stage;
    pub mod standing;
    pub mod time_of_day;
    pub mod token;
    pub mod transcript;
    pub mod turnaround;
    pub mod wait_reason;
    pub mod window;
    pub mod zone;
    pub mod zone_suggestion;
}

/// What a service's lists hold, gathered into a folder.
pub mod harvest {
    pub mod folder;
    pub mod gather;
    pub mod naming;
    pub mod pages;
}

/// Recordings: what is in them, and their sound.
pub mod media {
    pub mod decode;
    pub mod describing;
    pub mod extract;
    mod ffmpeg;
    pub mod header;
    pub mod length;
    mod length_boxes;
    mod length_streams;
    pub mod measured;
    mod native;
    mod resample;
    mod sandbox;
}

/// Files written for a job: what is in them, what they are called, how they get into their place.
pub mod output {
    mod exchange;
    pub mod formats;
    pub mod naming;
    mod pieces;
    pub mod placing;
    pub mod relocated;
    pub mod results;
    pub mod shifting;
    pub mod spool;
    pub mod subtitles;
    pub mod syncing;
    pub mod table;
    mod temporary;
    pub mod writable;
}

/// The way of a job: the engine and one file per move.
pub mod pipeline {
    pub mod absence;
    pub mod asking;
    pub mod blocking;
    pub mod callbacks;
    pub mod chosen;
    pub mod deposit;
    pub mod engine;
    pub mod engines;
    pub mod excess;
    pub mod extract;
    pub mod fixity;
    pub mod follow;
    pub mod gone;
    pub mod hold;
    pub mod in_progress;
    pub mod limit;
    pub mod line;
    pub mod list_scan;
    pub mod lists;
    pub mod log_limit;
    pub mod making;
    pub mod medium;
    pub mod ordered;
    pub mod outcome;
    pub mod output_folders;
    pub mod probe;
    pub mod purse;
    pub mod remaking;
    pub mod remote;
    pub mod resolve;
    pub mod settle;
    pub mod submit;
    pub mod upload;
    pub mod vars;
    pub mod wait;
    pub mod windows;
    pub mod write;
}

/// The embedded transcription service: what comes in (`intake`) waits at the durable `desk` (`accepting`, and
/// below it the `ledger`) for its audio (`fetching`) and to be heard (`worker`), is read (`reading`, `lists`;
/// by people: `page`), and its end is told (`deliver`).
pub mod server {
    pub mod accepting;
    pub mod address;
    pub mod answer;
    pub mod auth;
    pub mod book;
    pub mod calls;
    pub mod certainty;
    pub mod channels;
    pub mod committer;
    pub mod connections;
    pub mod cors;
    pub mod deliver;
    pub mod desk;
    pub mod dictionary;
    pub mod fetch;
    pub mod fetching;
    pub mod files;
    pub mod first;
    pub mod forwarded;
    pub mod head;
    pub mod hearing;
    pub mod in_flight;
    pub mod incoming;
    pub mod index;
    pub mod intake;
    pub mod lazy;
    pub mod ledger;
    pub mod limits;
    pub mod line;
    pub mod links;
    pub mod listening;
    pub mod lists;
    pub mod live;
    mod model;
    pub mod multipart;
    pub mod openapi;
    pub mod opening;
    pub mod outbox;
    pub mod outcome;
    pub mod owners;
    pub mod page;
    pub mod pen;
    pub mod pocketsphinx;
    pub mod pool;
    pub mod reading;
    pub mod recogniser;
    pub mod recognition;
    pub mod records;
    pub mod recovery;
    pub mod refusal;
    pub mod removal;
    pub mod rendered;
    pub mod request;
    pub mod request_body;
    pub mod room;
    pub mod routes;
    pub mod sealed;
    pub mod segment;
    pub mod service;
    pub mod shares;
    pub mod shelf;
    pub mod sign;
    pub mod sounds;
    pub mod starts;
    pub mod streamed;
    pub mod survey;
    pub mod tls;
    pub mod turn;
    pub mod undone;
    pub mod untold;
    pub mod upload;
    pub mod view;
    pub mod wording;
    pub mod worker;
    pub mod write_timeout;
}

/// Where media comes from.
pub mod source {
    pub mod bag;
    pub mod beside;
    pub mod bookmark;
    pub mod bucket;
    pub mod choice;
    pub mod claim;
    pub mod disk;
    pub mod fixity;
    pub mod folder;
    pub mod ignore;
    pub mod ignoring;
    pub mod installation;
    pub mod intake;
    pub mod lease;
    pub mod likeness;
    pub mod listing;
    /// Lists of recordings: which files they are, and what their rows say.
    pub mod manifest {
        pub mod cells;
        pub mod columns;
        pub mod find;
        pub mod kind;
        mod objects;
        mod quotes;
        pub mod record;
        pub mod table;
        pub mod text;
    }
    mod kept;
    pub mod marker;
    pub mod mount;
    pub mod mount_table;
    pub mod objects;
    pub mod ours;
    pub mod owner;
    pub mod pages;
    pub mod path_policy;
    pub mod place;
    pub mod presence;
    pub mod reopen;
    pub mod s3;
    pub mod scans;
    pub mod sidecars;
    pub mod small;
    pub mod source_folders;
    pub mod stamp;
    pub mod survey;
    pub mod tree;
    pub mod watch;
}

/// The persistent queue.
pub mod store {
    pub mod contract;
    pub mod copy;
    pub mod decode;
    pub mod gate;
    pub mod index;
    pub mod journal;
    pub mod large;
    mod line;
    pub mod memory;
    pub mod ordered;
    pub mod params;
    pub mod parts;
    pub mod queue;
    pub mod roll;
    pub mod sled;
    mod spending;
    mod turns;
}

/// Certificates: a listener's own, and those that are trusted.
pub mod tls {
    pub mod pair;
    pub mod trust;
    pub mod validity;
}

/// The interface's bodies, for both sides.
pub mod wire {
    pub mod address;
    pub mod configs;
    pub mod delivered;
    pub mod enrichment;
    pub mod error;
    pub mod event;
    pub mod fields;
    pub mod first;
    pub mod iso;
    pub mod languages;
    pub mod live;
    pub mod modest;
    pub mod network;
    pub mod old_result;
    pub mod page;
    pub mod params;
    pub mod published;
    pub mod record;
    mod requested;
    pub mod result;
    pub mod result_out;
    pub mod said;
    pub mod schema;
    pub mod shorthand;
    mod table;
    pub mod upgrade;
    pub mod upload;
}

/// What others may ask of the daemon over HTTP.
pub mod web {
    pub mod receiver;
}
