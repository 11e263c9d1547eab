//! `scribed serve`: the transcription service itself, for others on the site.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::signals::on_signal;
use crate::clock::SystemClock;
use crate::daemon::{recogniser, service_options};
use crate::server::auth::{Key, own_key};
use crate::server::service::{health, start};
use serde_json::json;
use std::sync::Arc;

/// Serves until a signal comes. Without configured keys one is made and kept with the data.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context) -> Result<u8, Failure> {
    let config = context.config()?;
    let serve = &config.serve;
    let stop = on_signal()?;
    let keys = match serve.keys.as_slice() {
        [] => vec![own_key(&serve.data)?],
        keys => keys.iter().map(|key| Key::new(key.expose())).collect(),
    };
    let recogniser = recogniser(serve);
    if let Err(missing) = health(&recogniser) {
        for words in missing {
            tracing::error!(reason = %words, "nothing can be transcribed");
        }
    }
    let options = service_options(serve, serve.listen, serve.data.clone(), keys);
    let running =
        start(options, recogniser, Arc::new(SystemClock)).await.map_err(|error| Failure::Service(error.to_string()))?;
    context.emit(&json!({"listening": running.address.to_string(), "origin": running.origin.to_string()}))?;
    context.say(&format!("listening on http://{}", running.address))?;
    if serve.keys.is_empty() {
        context.say(&format!("its key is in {}", serve.data.join("key").display()))?;
    }
    stop.cancelled().await;
    running.shutdown().await;
    Ok(0)
}
