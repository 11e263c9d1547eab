//! `scribed notify`: tests targets, shows what waits for them, and prints the digest.

use crate::cli::args::{NotifyCommand, NotifyTestArgs};
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::config::model::NotifyTarget;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::count::count;
use crate::domain::names::Timestamp;
use crate::notifications::digest::pages;
use crate::notifications::message::{Message, rfc3339};
use crate::notifications::ping;
use crate::notifications::queue::TargetQueue;
use crate::notifications::send::{SendError, Sender};
use crate::notifications::spool::SpoolFolder;
use crate::notifications::worker::{digest_begin, new_id};
use serde_json::{Value, json};

/// Carries out a subcommand.
pub async fn run(context: &Context, command: NotifyCommand) -> Result<u8, CommandError> {
    match command {
        NotifyCommand::Test(args) => test(context, args).await,
        NotifyCommand::List => list(context),
        NotifyCommand::Digest(args) => print_digest(context, args.html).await,
    }
}

/// Sends a sample to each target.
async fn test(context: &Context, args: NotifyTestArgs) -> Result<u8, CommandError> {
    let config = context.config()?;
    let notify = &config.notify;
    let is_wanted = |target: &&NotifyTarget| args.event.is_none_or(|event| event == target.event);
    let targets: Vec<&NotifyTarget> = notify.targets.iter().filter(is_wanted).collect();
    let ping = notify.ping.as_ref().filter(|_| args.event.is_none());
    if targets.is_empty() && ping.is_none() {
        let words = match args.event {
            Some(event) => format!("jobs.toml has no `{}` in [notify]", event.setting()),
            None => "jobs.toml notifies nobody: add a target to [notify], such as on_failed".to_owned(),
        };
        return Err(CommandError::Usage(words));
    }
    let clock = SystemClock;
    let sent = targets.iter().map(|target| async {
        let message = Message::sample(target.event, (&new_id(), clock.now()), notify);
        let sent = match Sender::open(target) {
            Ok(sender) => sender.send(&message, &clock).await,
            Err(error) => Err(error),
        };
        (target.name(), sent)
    });
    let mut results = futures_util::future::join_all(sent).await;
    if let Some(ping) = ping {
        results.push(("ping".to_owned(), ping::call_once(&clock, ping).await));
    }
    for (name, sent) in &results {
        print_result(context, name, sent)?;
    }
    Ok(if results.iter().all(|(_, sent)| sent.is_ok()) { 0 } else { UNFINISHED })
}

fn print_result(context: &Context, name: &str, sent: &Result<(), SendError>) -> Result<(), CommandError> {
    let error = sent.as_ref().err().map(|error| error.words.as_str());
    context.print_json(&json!({ "target": name, "delivered": error.is_none(), "error": error }))?;
    let words = error.map_or_else(|| "delivered".to_owned(), |error| format!("not delivered: {error}"));
    context.print_line(&format!("{name}: {words}"))?;
    Ok(())
}

/// Shows what waits for each target. The files of the daemon are read, which replaces them whole.
fn list(context: &Context) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let spool = SpoolFolder::of(&config.state);
    for target in &config.notify.targets {
        let queue = spool.load(&target.identity).unwrap_or_default();
        context.print_json(&object(target, &queue))?;
        context.print_line(&line(context, target, &queue))?;
    }
    if config.notify.targets.is_empty() {
        context.print_line("jobs.toml notifies nobody")?;
    }
    Ok(0)
}

fn line(context: &Context, target: &NotifyTarget, queue: &TargetQueue) -> String {
    let waits = match (queue.waiting(), &queue.message) {
        (0, _) => "nothing waits".to_owned(),
        (events, None) => format!("{} being collected", count(events, "event")),
        (events, Some(message)) => {
            let error = message.last_error.as_deref().unwrap_or("being sent");
            format!("{} waiting: {error}; next attempt {}", count(events, "event"), context.moment(message.due))
        }
    };
    let given_up = if queue.given_up > 0 { format!(", {} given up", queue.given_up) } else { String::new() };
    format!("{}: {waits} ({} delivered{given_up})", target.name(), count(queue.delivered, "message"))
}

fn object(target: &NotifyTarget, queue: &TargetQueue) -> Value {
    let message = queue.message.as_ref();
    json!({
        "target": target.name(), "event": target.event.name(), "kind": target.kind.name(),
        "waiting": queue.waiting(), "attempts": message.map_or(0, |message| message.failed),
        "error": message.and_then(|message| message.last_error.as_deref()),
        "next": message.map(|message| rfc3339(message.due)),
        "delivered": queue.delivered, "given_up": queue.given_up,
    })
}

/// Prints the digest of the time since the last one; of a day, if there was none.
async fn print_digest(context: &Context, html: bool) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let to: Timestamp = SystemClock.now();
    let from = digest_begin(&SpoolFolder::of(&config.state), &config.notify, to).min(to);
    let queue = QueueAccess::find(&config).await?;
    let ControlAnswer::Digest(report) = queue.request(ControlRequest::Digest { from, to }).await? else {
        return Err(protocol_mismatch());
    };
    let pages = pages(&report, &config.notify);
    context.print_json(&pages.json)?;
    if html && !context.common.json {
        terminal::write_raw(pages.html.as_bytes())?;
        return Ok(0);
    }
    let text = format!("{}\n{}", pages.title, pages.text);
    text.lines().try_for_each(|line| context.print_line(line))?;
    Ok(0)
}
