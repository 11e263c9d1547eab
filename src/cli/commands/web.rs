//! `scribed web`: the HTTP API without a daemon, and what its users need.

use crate::cli::args::{WebArgs, WebCommand};
use crate::cli::commands::run::open_api;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::QueueAccess;
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::SystemClock;
use crate::control::commands::reload::LatestHandler;
use crate::control::commands::search::keep_index;
use crate::control::transport::server::serve;
use crate::control::transport::socket::ListeningSocket;
use crate::web::access::credentials::{LONGEST_PASSWORD, SHORTEST_PASSWORD, new_token, password_hash};
use serde_json::json;
use std::io::{self, BufRead};
use std::sync::Arc;

/// Serves the API until a signal stops it, or carries out a subcommand.
pub async fn run(context: &Context, args: &WebArgs) -> Result<u8, CommandError> {
    match args.command {
        None => serve_without_daemon(context).await,
        Some(WebCommand::Token) => print_token(context),
        Some(WebCommand::Password) => print_password_hash(context),
    }
}

/// Other commands reach the queue through the socket meanwhile, as with a daemon.
async fn serve_without_daemon(context: &Context) -> Result<u8, CommandError> {
    let config = context.config()?;
    let stop = shutdown_token()?;
    let Some(api) = open_api(&config).await? else {
        return Err(CommandError::Usage("jobs.toml has no [web]: add it, an empty one is enough".to_owned()));
    };
    let handler = match QueueAccess::find(&config).await? {
        QueueAccess::Here(handler) => *handler,
        QueueAccess::Daemon(_) | QueueAccess::Remote(_) => {
            let words = "a daemon or a pass runs; a daemon serves the HTTP API itself if jobs.toml has [web]";
            return Err(CommandError::Declined(words.to_owned()));
        }
    };
    let latest = LatestHandler::new(handler);
    let listening = ListeningSocket::at(&config.state).map_err(CommandError::Io)?;
    context.print_json(&json!({ "web": api.url(), "address": api.address.to_string() }))?;
    context.print_line(&format!("listening on {}", api.url()))?;
    let search = keep_index(&latest, &stop);
    let socket = serve(listening, latest.clone(), &stop);
    let web = api.serve(latest.clone(), Arc::new(SystemClock), &stop);
    tokio::join!(socket, web, search);
    Ok(0)
}

fn print_token(context: &Context) -> Result<u8, CommandError> {
    let (token, hash) = new_token()?;
    context.print_json(&json!({ "token": token, "hash": hash }))?;
    context.print_line(&format!("token, for the program or the person; it is shown only now:\n  {token}"))?;
    context.print_line(&format!("hash, for `token` of [web.users.NAME], in a file or the environment:\n  {hash}"))?;
    Ok(0)
}

fn print_password_hash(context: &Context) -> Result<u8, CommandError> {
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    let password = typed.trim_end_matches(['\r', '\n']);
    if password.chars().count() < SHORTEST_PASSWORD || password.len() > LONGEST_PASSWORD {
        let words = format!(
            "the first line of standard input must be a password of {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
        );
        return Err(CommandError::Usage(words));
    }
    let hash = password_hash(password)?;
    context.print_json(&json!({ "hash": hash }))?;
    context.print_line(&hash)?;
    Ok(0)
}
