//! The sender of a request, or why it is refused.

use crate::domain::role::Role;
use std::time::Duration;

/// Somebody who may use the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name in `jobs.toml`, or that of the user of this machine.
    pub name: String,
    pub role: Role,
    /// Whether a browser's session says so.
    pub has_session: bool,
}

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The request is addressed to a host name that is not ours: a web page may have rebound its name.
    WrongHost(String),
    /// A web page of another origin sends it.
    ForeignOrigin,
    NoCredentials,
    WrongCredentials,
    /// Too many attempts failed; the next one is allowed after this time.
    LockedOut(Duration),
    /// A proxy or this machine names a user who is not in `jobs.toml`.
    UnknownUser(String),
    /// The user is known, and may not do this.
    RoleTooLow {
        name: String,
        has: Role,
        needs: Role,
    },
}
