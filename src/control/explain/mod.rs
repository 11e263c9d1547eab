//! Why a file is where it is and what happens next, also for files that have no job.

pub mod facts;
pub mod forecast;
pub mod path;
pub mod row_lookup;
