//! The service in the form of OpenAI's transcription interface, so that clients written for that work with it. A request
//! is an upload and a transcription like all others, that the connection waits for. It uses `http/` for the body and
//! `storage/` for the rest; `http/routes.rs` asks it for the form of refusals.
//!
//! `request` checks the fields and `answer` converts the result; both are pure. `form` reads the body, `awaited` creates
//! the transcription and waits for its end, `stream` sends events. Start reading at `routes.rs`.

mod answer;
mod awaited;
pub(crate) mod error;
mod form;
mod request;
pub(crate) mod routes;
mod stream;

/// Whether a path belongs to OpenAI's interface, so that its refusals and keys have the form of that.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/v1" || path.starts_with("/v1/")
}
