//! The receiver of the services' callbacks.

pub(crate) mod receiver;
