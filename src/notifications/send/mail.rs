//! Sends e-mail over SMTP: a plain text and an HTML part.

use super::sender::SendError;
use crate::clock::Clock;
use crate::config::model::{MailServer, MailTls};
use crate::domain::escape;
use crate::notifications::digest::html_page;
use crate::notifications::message::{Message, shortened};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use std::error::Error;
use std::time::Duration;

/// How long an attempt may take in all.
const TIME_OUT: Duration = Duration::from_secs(30);

/// How long a step of the dialogue may take.
const STEP: Duration = Duration::from_secs(10);

/// The longest subject, in characters.
const SUBJECT: usize = 200;

/// Sends to some people.
pub struct MailSender {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl MailSender {
    /// Makes the sender. Nothing is sent yet.
    ///
    /// # Errors
    /// The host name cannot be one, or the certificates cannot be read.
    pub fn open(server: &MailServer, to: &[Mailbox]) -> Result<Self, SendError> {
        let tls = match server.tls {
            MailTls::None => Tls::None,
            MailTls::StartTls => Tls::Required(parameters(server)?),
            MailTls::Tls => Tls::Wrapper(parameters(server)?),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host);
        let mut builder = builder.port(server.port).tls(tls).timeout(Some(STEP));
        if let Some((user, password)) = &server.account {
            builder = builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
        }
        Ok(Self { transport: builder.build(), from: server.from.clone(), to: to.to_vec() })
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// The server did not accept the mail, or it is not known whether it did.
    pub async fn send(&self, message: &Message, clock: &dyn Clock) -> Result<(), SendError> {
        let mail = self.mail(message).map_err(|error| SendError::new(format!("it cannot be written: {error}")))?;
        tokio::select! {
            sent = self.transport.send(mail) => sent.map(drop).map_err(|error| SendError::new(describe(&error))),
            () = clock.sleep(TIME_OUT) => {
                Err(SendError::new(format!("the mail server did not answer within {} s", TIME_OUT.as_secs())))
            }
        }
    }

    fn mail(&self, message: &Message) -> Result<lettre::Message, lettre::error::Error> {
        let domain = self.from.email.domain();
        let builder = lettre::Message::builder()
            .from(self.from.clone())
            .subject(shortened(&escape::line(&message.title), SUBJECT))
            .message_id(Some(format!("<{}@{domain}>", message.id)))
            .date(std::time::UNIX_EPOCH + Duration::from_millis(u64::try_from(message.time.0).unwrap_or_default()));
        let builder = self.to.iter().fold(builder, |builder, to| builder.to(to.clone()));
        let html = message.digest.as_ref().map_or_else(|| html_page(message), |digest| digest.html.clone());
        builder.multipart(MultiPart::alternative_plain_html(message.text.clone(), html))
    }
}

fn parameters(server: &MailServer) -> Result<TlsParameters, SendError> {
    let failed = |error: lettre::transport::smtp::Error| SendError::new(describe(&error));
    let mut builder = TlsParameters::builder(server.host.clone());
    for der in server.authorities.ders() {
        builder = builder.add_root_certificate(Certificate::from_der(der.clone()).map_err(failed)?);
    }
    builder.build_rustls().map_err(failed)
}

/// Returns what went wrong with all causes: the first one names no more than a step.
fn describe(error: &lettre::transport::smtp::Error) -> String {
    let mut words = format!("the mail server: {error}");
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let said = deeper.to_string();
        if !words.contains(&said) {
            words += &format!(": {said}");
        }
        cause = deeper.source();
    }
    shortened(&escape::line(&words), 300)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::{JobId, Timestamp};
    use crate::domain::notification::NotificationEvent;
    use crate::notifications::message::NoticedJob;
    use crate::tls::trust::Authorities;

    fn sender() -> MailSender {
        let server = MailServer {
            host: "127.0.0.1".to_owned(),
            port: 25,
            tls: MailTls::None,
            account: None,
            from: "Tapes <scribed@example.org>".parse().unwrap(),
            authorities: Authorities::default(),
        };
        MailSender::open(&server, &["ann@example.org".parse().unwrap()]).unwrap()
    }

    /// A name must add no header, no recipient and no markup.
    #[tokio::test]
    async fn a_hostile_name_stays_a_name() {
        let path = b"x\r\nBcc: eve@example.org\r\n\r\n<script>alert(1)</script>\xff".to_vec();
        let reason = "it \"failed\" <b>".to_owned();
        let job = NoticedJob { job: JobId(1), source: "tapes".into(), path, reason, at: Timestamp(0) };
        let event = NotificationEvent::Failed;
        let message = Message::worded(event, ("msg_1", Timestamp(1_700_000_000_000)), vec![job], Vec::new(), 0);
        let mail = sender().mail(&message).unwrap();
        assert_eq!(mail.envelope().to().len(), 1);
        let text = String::from_utf8(mail.formatted()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.lines().any(|line| line.to_ascii_lowercase().starts_with("bcc:")), "{head}");
        let (_, html) = body.split_once("text/html").unwrap();
        assert!(html.contains("script") && !html.contains("<script>") && !html.contains("<b>"), "{html}");
        assert!(text.lines().all(|line| line.len() < 998));
    }
}
