//! Request templates: their text, the variables in it, and the settings that lie over them.

pub mod capture;
pub mod name_as;
pub mod overlay;
pub mod parameters;
pub mod scoping;
pub mod sidecar;
pub mod text;
pub mod variables;
