//! The command line of `scribed notify`.

use crate::domain::notification::NotificationEvent;
use clap::{Args, Subcommand};

/// Notifications, as [notify] of jobs.toml has them.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum NotifyCommand {
    /// Send a sample to each target, and say what happened
    Test(NotifyTestArgs),
    /// Show what waits for each target, and why
    List,
    /// Print the digest of the time since the last one
    Digest(NotifyDigestArgs),
}

#[derive(Debug, Clone, Copy, Args)]
pub struct NotifyTestArgs {
    /// Only the targets of this event: failed, written, idle, outage, budget or digest
    #[arg(value_name = "EVENT", value_parser = notification_event)]
    pub event: Option<NotificationEvent>,
}

#[derive(Debug, Clone, Copy, Args)]
pub struct NotifyDigestArgs {
    /// Print the HTML that is sent by e-mail
    #[arg(long)]
    pub html: bool,
}

fn notification_event(name: &str) -> Result<NotificationEvent, String> {
    NotificationEvent::parse(name).ok_or_else(|| format!("must be one of {}", NotificationEvent::NAMES.join(", ")))
}
