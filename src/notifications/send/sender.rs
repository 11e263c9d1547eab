//! What sends to one target, whatever its kind.

use super::http::HttpSender;
use super::{chat, mail, program};
use crate::clock::Clock;
use crate::config::model::{NotifyTarget, PostTarget, TargetKind};
use crate::notifications::message::Message;
use crate::server::webhooks::signature::{SigningSecret, sign};
use crate::wire::address::PlainHttp;
use reqwest::Url;
use std::time::Duration;

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// What happened, without addresses and secrets.
    pub words: String,
    /// How long the receiver asked to wait.
    pub retry_after: Option<Duration>,
}

impl SendError {
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), retry_after: None }
    }
}

/// Sends messages to one target.
pub enum Sender {
    Run(crate::config::template::notice::ProgramArguments),
    Post { http: HttpSender, secret: Option<SigningSecret> },
    Mail(Box<mail::MailSender>),
    Ntfy { http: HttpSender, topic: String, token: Option<String> },
    Slack(HttpSender),
    Discord(HttpSender),
    Matrix { http: HttpSender, token: String },
}

impl Sender {
    /// Makes the sender of a target. Nothing is sent yet.
    ///
    /// # Errors
    /// Why its settings, or the certificates of this machine, have to be corrected.
    pub fn open(target: &NotifyTarget) -> Result<Self, SendError> {
        Ok(match &target.kind {
            TargetKind::Run(arguments) => Self::Run(arguments.clone()),
            TargetKind::Post(PostTarget { url, secret, plain_http }) => Self::Post {
                http: HttpSender::open(url.clone(), *plain_http)?,
                secret: secret.as_ref().map(|secret| SigningSecret::new(secret.expose())),
            },
            TargetKind::Mail { server, to } => Self::Mail(Box::new(mail::MailSender::open(server, to)?)),
            TargetKind::Ntfy { url, token, plain_http } => {
                let (server, topic) = chat::ntfy_server(url);
                let token = token.as_ref().map(|token| token.expose().to_owned());
                Self::Ntfy { http: HttpSender::open(server, *plain_http)?, topic, token }
            }
            TargetKind::Slack(secret) => Self::Slack(webhook(secret.expose())?),
            TargetKind::Discord(secret) => Self::Discord(webhook(secret.expose())?),
            TargetKind::Matrix { homeserver, room, token, plain_http } => Self::Matrix {
                http: HttpSender::open(chat::matrix_room(homeserver, room)?, *plain_http)?,
                token: token.expose().to_owned(),
            },
        })
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// The message was not accepted, or it is not known whether it was.
    pub async fn send(&self, message: &Message, clock: &dyn Clock) -> Result<(), SendError> {
        match self {
            Self::Run(arguments) => program::run(arguments, message, clock).await,
            Self::Post { http, secret } => {
                let body = message.json().to_string().into_bytes();
                let seconds = clock.now().0.div_euclid(1000);
                let request = http.post().header("webhook-id", &message.id).header("webhook-timestamp", seconds);
                let request = match secret {
                    Some(secret) => request.header("webhook-signature", sign(secret, &message.id, seconds, &body)),
                    None => request,
                };
                http.send(request.header("content-type", "application/json").body(body), clock).await
            }
            Self::Mail(mail) => mail.send(message, clock).await,
            Self::Ntfy { http, topic, token } => {
                let request = http.post().json(&chat::ntfy_body(topic, message));
                let request = match token {
                    Some(token) => request.bearer_auth(token),
                    None => request,
                };
                http.send(request, clock).await
            }
            Self::Slack(http) => http.send(http.post().json(&chat::slack_body(message)), clock).await,
            Self::Discord(http) => http.send(http.post().json(&chat::discord_body(message)), clock).await,
            Self::Matrix { http, token } => {
                let request = http.put_below(&message.id).bearer_auth(token).json(&chat::matrix_body(message));
                http.send(request, clock).await
            }
        }
    }
}

fn webhook(address: &str) -> Result<HttpSender, SendError> {
    let url = Url::parse(address).map_err(|_| SendError::new("the address of the webhook is none"))?;
    HttpSender::open(url, PlainHttp::Refused)
}
