//! What a queue's store promises, one trait for each group of callers. A caller takes the narrowest trait that it
//! needs; [`Store`] is all of them together, for the composition root. Start reading at `claims.rs`.
//!
//! | trait | who uses it | what it does |
//! |---|---|---|
//! | [`Jobs`] | scans, manifests, `add` | admits recordings |
//! | [`Claims`] | the engine | hands out leases, takes commits |
//! | [`Purchases`] | the engine and its stages | knows what was bought, and who buys |
//! | [`Budgets`] | the budget gate, `status`, `cost` | reserves and counts |
//! | [`Commands`] | people's commands, and what removes a reason to wait | changes a job whoever holds it |
//! | [`Queries`] | everyone | reads |
//! | [`Lifecycle`] | the daemon | start, reload, end |
//! | [`Backups`] | backups | copies all rows |
//!
//! # What every store guarantees
//!
//! **Atomicity.** Each method takes effect whole or not at all, also when the process dies in it. What a method reads
//! to decide, it reads in the same step in which it writes: no caller reads rows, changes them and writes them back
//! in two calls without a condition. The exceptions are named where they are ([`Commands::rename_source`]).
//!
//! **Fencing.** A job is changed by the worker that holds its newest lease. Each claim of a job gets a fence higher
//! than all before it. A worker's write ([`Claims::commit`], [`Budgets::reserve`]) is conditional: it takes effect if
//! the lease's fence is the newest *and* the job is still at the stage and purchase number that the lease names. If
//! not, nothing is changed, and the answer is [`StoreError::LeaseLost`] or [`StoreError::Superseded`]. A lease ends at
//! its time, by a command that overrules its holder, or, in a store of one process, with the process.
//!
//! **Commands.** A command is conditional, too: on the job as the caller saw it, or on what the method names. Its
//! [`CommandOutcome`] tells whether it was carried out, the job has changed since, or there is no such job. A command
//! that changes a job's stage ends the lease of whoever holds it.
//!
//! **Durability.** [`Claims::commit`] returns after the job is safe from power loss when its stage is one that the
//! next effect stands on: the intent, the transcription's id, what is about to be published, "written". Every other
//! step is kept within half a second; losing it costs work, never money. Other methods say when they are durable.
//! [`Lifecycle::flush`] makes everything durable.
//!
//! **Order.** Steps become durable in the order in which they were committed: a store that was lost in part has lost
//! the end. What was bought for a job becomes durable before the job's row that says so.
//!
//! **Suspicion.** A store that was created empty, set aside or repaired is suspect until [`Purchases::trust`], for
//! each service: it does not know what was bought there before it.
//!
//! # For the author of a store
//!
//! A store may be shared by several processes. Times are the caller's; the store compares them and never asks a clock.
//! A [`GroupFilter`] is asked about groups (a source and a service: some dozens), never about a job: a store that
//! runs statements evaluates it over its groups first. A claim is one statement (`… FOR UPDATE SKIP LOCKED LIMIT n`),
//! a commit one `UPDATE … WHERE id AND fence AND stage AND purchase_number`: no row updated is one of the two answers
//! above.

mod backups;
mod budgets;
mod claims;
mod commands;
mod error;
mod jobs;
mod lifecycle;
mod purchases;
mod queries;

pub use backups::{Backups, CopiedRows, RowCopyError};
pub use budgets::Budgets;
pub use claims::{BudgetOrder, ClaimLimit, Claimed, Claims, Hold, Lease, OrderedClaims};
pub use commands::{CommandOutcome, Commands, Renamed};
pub use error::StoreError;
pub use jobs::{Admission, Jobs};
pub use lifecycle::Lifecycle;
pub use purchases::{DuplicateCheck, KnownPurchase, NewestPurchase, Purchases};
pub use queries::{Filter, HistoryEntry, JobCounts, JobSubset, Queries, RenderingCount, WaitingGroup};

use crate::domain::routing::RouteKey;

/// Selects groups.
pub type GroupFilter<'o> = &'o (dyn Fn(&RouteKey) -> bool + Send + Sync);

pub const ALL: GroupFilter<'static> = &|_| true;

/// The whole contract: for the composition root, and for callers that need most of it.
pub trait Store: Jobs + Claims + Purchases + Budgets + Commands + Queries + Lifecycle + Backups {}

impl<T: Jobs + Claims + Purchases + Budgets + Commands + Queries + Lifecycle + Backups> Store for T {}
