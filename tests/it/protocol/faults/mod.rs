//! What the service may do to us, as a table: each row is a service that does
//! one wrong thing, met by the real binary. The snapshots are what a person reads afterwards.

mod broken;
mod ends;
mod outages;
mod refusals;
mod row;
mod waits;
