//! `scribed pause` and `scribed resume`.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::way::{Way, strange};
use crate::control::request::{Answer, Request};
use serde_json::json;

/// Nothing new is uploaded or submitted from now on, or again. Holds over restarts.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, request: Request) -> Result<u8, Failure> {
    let way = Way::find(&context.config()?)?;
    let Answer::Paused(paused) = way.ask(request).await? else { return Err(strange()) };
    context.emit(&json!({"paused": paused}))?;
    context.say(match paused {
        true => {
            "paused: nothing new is uploaded or submitted until `scribed resume`; what is at the service is awaited \
             and written"
        }
        false => "the queue goes on",
    })?;
    Ok(0)
}
