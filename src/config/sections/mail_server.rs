//! Reads `[notify.mail]`: the server that takes e-mail.

use super::notify_target::mailbox;
use crate::config::load::diagnostics::Problem;
use crate::config::load::quantities::quoted;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, integer_from, refusal, text};
use crate::config::load::values::or;
use crate::config::model::{MailServer, MailTls};
use crate::wire::address::is_loopback;
use toml::de::DeValue;

/// Reads the section; `None` if it is absent or wrong.
pub(crate) fn mail_server(reader: &Reader<'_>, section: &Section<'_>) -> Option<MailServer> {
    let table = section.table()?;
    for example in ["server = \"smtp.example.org\"", "from = \"scribed@example.org\""] {
        if !table.contains_key(example.split(' ').next().unwrap_or_default()) {
            section.report_missing(example);
        }
    }
    let host = section.get("server", host);
    let tls = section.get("tls", tls);
    let (user, password) = (section.get("user", text), section.get("password", |value| reader.secret(value)));
    if table.contains_key("user") != table.contains_key("password") {
        let what = "an account of a mail server has a `user` and a `password`";
        section.report(Problem::at(section.span.clone(), what).fix("write both, or remove both"));
    }
    let from = section.get("from", mailbox);
    let port = section.get("port", port);
    let authorities = reader.authorities(section);
    let (host, tls_mode) = (host?.value, tls.as_ref().map_or(MailTls::StartTls, |spot| spot.value));
    check_encryption(section, &host, tls)?;
    let port = or(
        port,
        match tls_mode {
            MailTls::Tls => 465,
            MailTls::StartTls => 587,
            MailTls::None => 25,
        },
    );
    let account = user.zip(password).map(|(user, password)| (user.value, password.value));
    Some(MailServer { host, port, tls: tls_mode, account, from: from?.value, authorities })
}

fn check_encryption(section: &Section<'_>, host: &str, tls: Option<Spot<MailTls>>) -> Option<()> {
    let Some(open) = tls.filter(|spot| spot.value == MailTls::None && !is_loopback(host)) else { return Some(()) };
    let why = "must be \"starttls\" or \"tls\" to another machine: the password and the names of recordings would be \
               sent unencrypted";
    section.report_value("tls", open.span, refusal(why, "remove it: the default is \"starttls\""));
    None
}

fn host(value: &DeValue<'_>) -> Result<String, ValueError> {
    let written = text(value)?;
    let is_host = written.chars().all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c));
    let fix = "write its host name, like \"smtp.example.org\"; `port` is a setting of its own";
    let has_port = written.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':'));
    match is_host && !has_port {
        true => Ok(written),
        false => Err(refusal(format!("must be a host name, found {}", quoted(&written)), fix)),
    }
}

fn port(value: &DeValue<'_>) -> Result<u16, ValueError> {
    let number = integer_from(1)(value)?;
    u16::try_from(number).map_err(|_| refusal("must be a port from 1 to 65535", "the usual ones are 587 and 465"))
}

fn tls(value: &DeValue<'_>) -> Result<MailTls, ValueError> {
    match text(value)?.as_str() {
        "starttls" => Ok(MailTls::StartTls),
        "tls" => Ok(MailTls::Tls),
        "none" => Ok(MailTls::None),
        _ => Err(refusal("must be \"starttls\", \"tls\" or \"none\"", "the default is \"starttls\"")),
    }
}
