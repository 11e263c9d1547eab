//! The filter: which files of a source become jobs.

pub(crate) mod builtin;
pub(crate) mod existing_subtitles;
pub(crate) mod own_outputs;
pub(crate) mod rules;
pub(crate) mod scribedignore;
