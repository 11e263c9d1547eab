//! The filter: which files of a source become jobs. Start reading at `rules.rs`.

pub(crate) mod builtin;
pub(crate) mod existing_subtitles;
pub(crate) mod own_outputs;
pub(crate) mod rules;
pub(crate) mod scribedignore;
