//! `scribed serve`: runs the embedded transcription service for other machines.

use crate::cli::args::{ImportLiveArgs, ServeArgs, ServeCommand};
use crate::cli::commands::{serve_models, serve_voices};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::serve_reload::{KeyReload, keys};
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::SystemClock;
use crate::config::load::read::load_to_serve;
use crate::config::model;
use crate::daemon::{recognisers, service_options};
use crate::domain::escape;
use crate::permission_errors::{describe_error, root_refusal, typed_command};
use crate::server::http::auth::ApiKey;
use crate::server::service::{ServiceOptions, health_of, start};
use crate::server::storage::disk_quota::DiskQuota;
use crate::server::storage::live::{ImportError, Imported, LiveRecords};
use crate::server::storage::owners::Owners;
use crate::store::contract::StoreError;
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;

/// Runs the service until a signal stops it, or carries out a subcommand.
pub async fn run(context: &Context, args: &ServeArgs) -> Result<u8, CommandError> {
    match &args.command {
        Some(ServeCommand::Models(order)) => serve_models::run(context, order),
        Some(ServeCommand::Voices(command)) => serve_voices::run(context, command).await,
        Some(ServeCommand::ImportLive(order)) => {
            let (serve_config, keys) = configured(context)?;
            import_live(context, &serve_config, &keys, order)
        }
        None => {
            let (serve_config, keys) = configured(context)?;
            serve(context, &serve_config, keys).await
        }
    }
}

/// Returns the configuration of the service, and its keys: one is created if none is configured.
fn configured(context: &Context) -> Result<(model::ServeConfig, Vec<ApiKey>), CommandError> {
    let serve_config = load_to_serve(&context.common.config)?;
    // This check comes before anything is created in the data directory: `keys` may create a key there.
    if let Some(words) = root_refusal(&serve_config.data, &typed_command()) {
        return Err(CommandError::Store(StoreError::Unwritable(words)));
    }
    let keys = keys(&serve_config)?;
    Ok((serve_config, keys))
}

async fn serve(context: &Context, serve: &model::ServeConfig, keys: Vec<ApiKey>) -> Result<u8, CommandError> {
    let stop = shutdown_token()?;
    let recognisers = recognisers(serve);
    if let Err(missing) = health_of(&recognisers) {
        for words in missing {
            tracing::error!(reason = %words, "the service cannot transcribe anything");
        }
    }
    serve.keys.remarks.iter().for_each(|words| tracing::warn!("{words}"));
    let options = ServiceOptions {
        tls: serve.tls.clone(),
        public_url: serve.public_url.clone(),
        trusted_proxies: serve.trusted_proxies.clone(),
        ..service_options(serve, serve.listen, serve.data.clone(), keys)
    };
    let running = start(options, recognisers, Arc::new(SystemClock))
        .await
        .map_err(|error| CommandError::Service(error.to_string()))?;
    let served = KeyReload::listen(&context.common.config, serve)?;
    let (address, scheme) = (running.address, running.scheme);
    context.print_json(&json!({
        "listening": address.to_string(), "origin": running.origin.to_string(), "url": format!("{scheme}://{address}"),
        "public_url": serve.public_url.as_ref().map(ToString::to_string),
    }))?;
    context.print_line(&format!("listening on {scheme}://{address}"))?;
    let public = serve.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let base = public.unwrap_or_else(|| format!("{scheme}://{address}"));
    context.print_line(&format!("transcriptions in a browser, with a key: {base}/transcriptions"))?;
    if serve.keys.is_empty() {
        context.print_line(&format!("its key is in {}", serve.data.join("key").display()))?;
    }
    served.run(&running, &stop).await;
    running.shutdown().await;
    Ok(0)
}

/// Finds a key by its name or by its position in `keys` of the configuration, from 1. Returns its index.
fn key_index(keys: &[ApiKey], written: &str) -> Result<usize, CommandError> {
    let number = written.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let place = keys.iter().position(|key| key.name() == Some(written));
    place.or(number.filter(|place| *place < keys.len())).ok_or_else(|| {
        let names: Vec<&str> = keys.iter().filter_map(ApiKey::name).collect();
        let or_name = if names.is_empty() { String::new() } else { format!(", or one of {}", names.join(", ")) };
        CommandError::Usage(format!("--key must be from 1 to {}{or_name}", keys.len()))
    })
}

fn import_live(
    context: &Context,
    serve: &model::ServeConfig,
    keys: &[ApiKey],
    order: &ImportLiveArgs,
) -> Result<u8, CommandError> {
    let index = key_index(keys, &order.key)?;
    // Only a preview: a service that runs beside this command writes the owners.
    let owner = Owners::open(&serve.data)?.preview_assign(keys, &serve.keys.names).owners[index];
    let named =
        |error| CommandError::Usage(format!("{}: {}", order.file.display(), describe_error(&error, &order.file)));
    let lines = BufReader::new(File::open(&order.file).map_err(named)?);
    let room = DiskQuota::measure(&serve.data, serve.disk)?;
    let imported = LiveRecords::open(&serve.data, None)?.import(lines, owner, room);
    let imported = imported.map_err(|error| match error {
        ImportError::Wrong(_) => {
            let lines = error.to_string();
            let lines: Vec<_> = lines.lines().map(escape::line).collect();
            CommandError::Report(format!("{}: {}", escape::line(&order.file.display().to_string()), lines.join("\n")))
        }
        ImportError::InUse | ImportError::Full { .. } => CommandError::Declined(error.to_string()),
        ImportError::Io(error) => CommandError::Io(error),
    })?;
    context.print_json(&json!(imported))?;
    let Imported { new, changed, unchanged } = imported;
    context.print_line(&format!("live transcriptions: {new} new, {changed} changed, {unchanged} unchanged"))?;
    Ok(0)
}
