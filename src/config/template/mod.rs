//! Request templates: their text, their variables, and the settings that override them. Start reading at `text.rs`.

pub(crate) mod capture;
pub(crate) mod name_as;
pub(crate) mod notice;
pub(crate) mod overlay;
pub(crate) mod parameters;
mod player;
pub(crate) mod read_scope;
pub(crate) mod sidecar;
pub(crate) mod text;
pub(crate) mod variables;
