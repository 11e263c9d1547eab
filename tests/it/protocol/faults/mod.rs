//! The faults of a service as a table: each row is a service that does one wrong thing, used by the real binary. The
//! snapshots are what a person reads afterwards.

mod broken;
mod ends;
mod outages;
mod refusals;
mod row;
mod waits;
