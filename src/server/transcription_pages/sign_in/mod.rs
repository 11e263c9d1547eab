//! Sessions of browsers: the form that a key is entered into, the cookie, and the table of sessions.

pub(super) mod form;
pub(super) mod session_cookie;
pub(super) mod sessions;
