//! `scribed serve`: the transcription service itself, for others on the site.

use crate::cli::args::{ImportLive, Serve, ServeOrder};
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::signals::on_signal;
use crate::clock::SystemClock;
use crate::config::meant;
use crate::config::reading::load_to_serve;
use crate::daemon::{recogniser, service_options};
use crate::server::auth::{Key, own_key};
use crate::server::live::{ImportError, Imported, LiveRecords};
use crate::server::room::Room;
use crate::server::service::{health, start};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

/// Serves until a signal comes, or carries out an order.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, args: &Serve) -> Result<u8, Failure> {
    let meant = load_to_serve(&context.common.config)?;
    let keys = keys(&meant)?;
    match &args.order {
        None => serve(context, &meant, keys).await,
        Some(ServeOrder::ImportLive(order)) => import_live(context, &meant, &keys, order),
    }
}

/// Without configured keys one is made and kept with the data.
fn keys(serve: &meant::Serve) -> Result<Vec<Key>, Failure> {
    match serve.keys.as_slice() {
        [] => Ok(vec![own_key(&serve.data)?]),
        keys => Ok(keys.iter().map(|key| Key::new(key.expose())).collect()),
    }
}

async fn serve(context: &Context, serve: &meant::Serve, keys: Vec<Key>) -> Result<u8, Failure> {
    let stop = on_signal()?;
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

fn import_live(context: &Context, serve: &meant::Serve, keys: &[Key], order: &ImportLive) -> Result<u8, Failure> {
    let key = order.key.checked_sub(1).and_then(|place| keys.get(place));
    let key = key.ok_or_else(|| Failure::Usage(format!("--key must be from 1 to {}", keys.len())))?;
    let named = |error| Failure::Usage(format!("{}: {error}", order.file.display()));
    let lines = BufReader::new(File::open(&order.file).map_err(named)?);
    let room = Room::of(&serve.data, serve.disk)?;
    let imported = LiveRecords::open(&serve.data, None)?.import(lines, key.owner(), room);
    let imported = imported.map_err(|error| match error {
        ImportError::Wrong(_) => Failure::Usage(format!("{}: {error}", order.file.display())),
        ImportError::InUse | ImportError::Full { .. } => Failure::Declined(error.to_string()),
        ImportError::Io(error) => Failure::Io(error),
    })?;
    context.emit(&json!(imported))?;
    let Imported { new, changed, unchanged } = imported;
    context.say(&format!("live transcriptions: {new} new, {changed} changed, {unchanged} known as they are"))?;
    Ok(0)
}
