//! Who is notified of what, as `[notify]` says.

use super::secret::Secret;
use super::template::notice::ProgramArguments;
use crate::domain::cron_line::CronLine;
use crate::domain::names::{Hash, ServiceName};
use crate::domain::notification::NotificationEvent;
use crate::domain::window::Windows;
use crate::domain::zone::Zone;
use crate::tls::trust::Authorities;
use crate::wire::address::PlainHttp;
use lettre::message::Mailbox;
use reqwest::Url;
use std::collections::BTreeMap;
use std::time::Duration;

/// `[notify]`.
#[derive(Debug, Clone)]
pub struct NotifyConfig {
    /// The targets of all events, in the order of the events.
    pub targets: Vec<NotifyTarget>,
    /// When the digest is made.
    pub digest_at: CronLine,
    /// How long events are collected for one message.
    pub window: Duration,
    /// The most messages that a target gets in an hour.
    pub hourly: u32,
    /// When no message is sent, except for the digest; `None`: there is no such time.
    pub quiet: Option<Windows>,
    /// How long an outage lasts before it is reported.
    pub outage_after: Duration,
    /// The dead man's switch, if there is one.
    pub ping: Option<Ping>,
    /// The time zone in which messages show moments.
    pub zone: Zone,
    /// The price of an hour of billed audio at each service, for the digest.
    pub prices: BTreeMap<ServiceName, f64>,
}

/// An address that is called as long as all is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    pub url: Url,
    pub every: Duration,
}

/// Somebody who is notified of an event.
#[derive(Debug, Clone)]
pub struct NotifyTarget {
    pub event: NotificationEvent,
    /// Its number among the targets of the event, from 1.
    pub number: usize,
    /// A hash of how it is written: the same target has the same hash after a restart.
    pub identity: Hash,
    pub kind: TargetKind,
}

impl NotifyTarget {
    /// Returns the name in messages and commands: `on_failed 1 (post)`.
    pub fn name(&self) -> String {
        format!("{} {} ({})", self.event.setting(), self.number, self.kind.name())
    }
}

/// How a target is notified.
#[derive(Debug, Clone)]
pub enum TargetKind {
    /// A program.
    Run(ProgramArguments),
    /// An address that gets JSON.
    Post(PostTarget),
    /// People who get e-mail.
    Mail { server: Box<MailServer>, to: Vec<Mailbox> },
    /// A topic of ntfy.
    Ntfy { url: Url, token: Option<Secret>, plain_http: PlainHttp },
    /// A channel of Slack, by the address of its webhook.
    Slack(Secret),
    /// A channel of Discord, by the address of its webhook.
    Discord(Secret),
    /// A room of Matrix.
    Matrix { homeserver: Url, room: String, token: Secret, plain_http: PlainHttp },
}

impl TargetKind {
    /// The settings of which a target has one.
    pub const NAMES: [&'static str; 7] = ["run", "post", "mail", "ntfy", "slack", "discord", "matrix"];

    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Post(_) => "post",
            Self::Mail { .. } => "mail",
            Self::Ntfy { .. } => "ntfy",
            Self::Slack(_) => "slack",
            Self::Discord(_) => "discord",
            Self::Matrix { .. } => "matrix",
        }
    }
}

/// An address that gets JSON, signed if there is a secret.
#[derive(Debug, Clone)]
pub struct PostTarget {
    pub url: Url,
    pub secret: Option<Secret>,
    pub plain_http: PlainHttp,
}

/// `[notify.mail]`.
#[derive(Debug, Clone)]
pub struct MailServer {
    /// Its host name or address.
    pub host: String,
    pub port: u16,
    pub tls: MailTls,
    /// The name and password of the account, if it needs one.
    pub account: Option<(String, Secret)>,
    pub from: Mailbox,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
}

/// How the connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// From the first byte.
    Tls,
    /// After the server was asked for it; without it nothing is sent.
    StartTls,
    /// Not at all: only to this machine.
    None,
}
