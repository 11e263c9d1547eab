//! Sessions of browsers: the form that a key is entered into.

pub(super) mod form;
