//! Which files of a source are taken.

pub(crate) mod builtin;
pub(crate) mod existing_subtitles;
pub(crate) mod own_outputs;
pub(crate) mod rules;
pub(crate) mod scribedignore;
