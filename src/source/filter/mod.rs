//! Which files of a source are taken.

pub mod builtin;
pub mod existing_subtitles;
pub mod own_outputs;
pub mod rules;
pub mod scribedignore;
