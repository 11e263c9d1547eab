//! Why a file is where it is and what happens next, also for files that have no job.

pub(crate) mod facts;
pub(crate) mod forecast;
pub(crate) mod path;
pub(crate) mod row_lookup;
