//! Why a file is where it is and what happens next, also for files that have no job. `explain_path` looks at the path,
//! its job and the rows that name it; `facts` collects what holds a job back; `text` and `next_step` compose the
//! sentences that `scribed explain` and `scribed show` print. Start reading at `explain_path.rs`.

pub(crate) mod explain_path;
pub(crate) mod facts;
pub(crate) mod forecast;
mod manifest_path;
pub(crate) mod next_step;
mod row_lookup;
pub(crate) mod text;
