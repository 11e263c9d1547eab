//! Reads a target of `[notify]`: a program, an address, people or a chat room.

use super::mail_server::mail_server;
use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, refusal, text};
use crate::config::load::values::{base_url, boolean, or, reject_user, values, web_url};
use crate::config::model::{MailServer, NotifyTarget, PostTarget, TargetKind};
use crate::config::template::notice::ProgramArguments;
use crate::domain::names::Hash;
use crate::domain::notification::NotificationEvent;
use crate::wire::address::{PlainHttp, is_unencrypted_remote};
use lettre::message::Mailbox;
use reqwest::Url;
use toml::de::DeValue;

/// Which settings belong to which kind of target; the others have none.
const BELONGING: [(&str, &[&str]); 3] =
    [("secret", &["post"]), ("token", &["ntfy"]), ("allow_http", &["post", "ntfy", "matrix"])];

/// Reads the targets of `[notify]`.
pub(crate) struct TargetReader<'r, 's> {
    reader: &'r Reader<'r>,
    section: &'r Section<'s>,
    /// `[notify.mail]`, if it is there and right.
    mail: Option<MailServer>,
}

impl<'r, 's> TargetReader<'r, 's> {
    pub(crate) fn new(reader: &'r Reader<'_>, section: &'r Section<'s>) -> Self {
        let mail = mail_server(reader, &section.section("mail"));
        Self { reader, section, mail }
    }

    /// Reads the targets of an event. Wrong ones are reported and left out.
    pub(crate) fn of_event(&self, event: NotificationEvent) -> Vec<NotifyTarget> {
        let tables = self.section.tables(event.setting());
        let (mut targets, mut hashes) = (Vec::new(), Vec::new());
        for (index, table) in tables.iter().enumerate() {
            let mut identity = identity(event, table);
            // Equal targets of one event have different hashes.
            while hashes.contains(&identity) {
                identity = Hash::of(&identity.0);
            }
            hashes.push(identity);
            targets.extend(self.kind(table).map(|kind| NotifyTarget { event, number: index + 1, identity, kind }));
        }
        targets
    }

    fn kind(&self, target: &Section<'_>) -> Option<TargetKind> {
        let kind = only_kind(target)?;
        for (setting, kinds) in BELONGING {
            if target.table()?.contains_key(setting) && !kinds.contains(&kind) {
                let what = format!("`{}` is not for a target with `{kind}`", target.name(setting));
                target
                    .report(Problem::at(target.span.clone(), what).fix(format!("it belongs to {}", kinds.join(", "))));
            }
        }
        let plain = self.plain_http(target);
        match kind {
            "run" => program(target).map(TargetKind::Run),
            "post" => {
                let url = target.get("post", hook);
                let secret = target.get("secret", |value| self.reader.secret(value)).map(|spot| spot.value);
                let url = encrypted(target, "post", url?, plain)?;
                Some(TargetKind::Post(PostTarget { url, secret, plain_http: plain }))
            }
            "mail" => {
                let to = values(target.list("mail", mailbox)?.value);
                if !self.section.section("mail").exists() {
                    let what = "e-mail needs a mail server";
                    let fix = "add [notify.mail] with `server` and `from`";
                    target.report(Problem::at(target.span.clone(), what).fix(fix));
                }
                if to.is_empty() {
                    let fix = "write mail = [\"ann@example.org\"]";
                    target.report_value("mail", target.span.clone(), refusal("must not be empty", fix));
                }
                Some(TargetKind::Mail { server: Box::new(self.mail.clone()?), to })
            }
            "ntfy" => {
                let url = target.get("ntfy", ntfy_topic);
                let token = target.get("token", |value| self.reader.secret(value)).map(|spot| spot.value);
                let url = encrypted(target, "ntfy", url?, plain)?;
                Some(TargetKind::Ntfy { url, token, plain_http: plain })
            }
            "slack" | "discord" => {
                let secret = target.get(kind, |value| {
                    let secret = self.reader.secret(value)?;
                    // Without secrets none is read. What was read is not repeated: it is a secret.
                    let url = Url::parse(secret.expose()).ok();
                    let is_web = url.is_some_and(|url| {
                        let host = url.host_str().unwrap_or_default();
                        matches!(url.scheme(), "http" | "https") && !is_unencrypted_remote(url.scheme(), host)
                    });
                    let fix = "copy the address of the webhook into it, which begins with https://";
                    let why = "must name the address of a webhook, and what it names is no https address";
                    if secret.expose().is_empty() || is_web { Ok(secret) } else { Err(refusal(why, fix)) }
                })?;
                Some(if kind == "slack" { TargetKind::Slack(secret.value) } else { TargetKind::Discord(secret.value) })
            }
            _ => self.matrix(&target.section("matrix"), target, plain),
        }
    }

    fn matrix(&self, matrix: &Section<'_>, target: &Section<'_>, plain_http: PlainHttp) -> Option<TargetKind> {
        let table = matrix.table()?;
        for example in
            ["homeserver = \"https://matrix.example.org\"", "room = \"!id:example.org\"", "token = \"env:NAME\""]
        {
            if !table.contains_key(example.split(' ').next().unwrap_or_default()) {
                matrix.report_missing(example);
            }
        }
        let secret = "write the access token into `token`";
        let homeserver = matrix.get("homeserver", |value| base_url(value, "https://matrix.example.org", secret));
        let room = matrix.get("room", |value| {
            let room = text(value)?;
            let fix = "write its id, which begins with an exclamation mark: \"!abc:example.org\"";
            if room.starts_with('!') { Ok(room) } else { Err(refusal("must be the id of a room", fix)) }
        });
        let token = matrix.get("token", |value| self.reader.secret(value));
        let homeserver = encrypted(matrix, "homeserver", homeserver?, self.plain_http(target))?;
        Some(TargetKind::Matrix { homeserver, room: room?.value, token: token?.value, plain_http })
    }

    fn plain_http(&self, target: &Section<'_>) -> PlainHttp {
        if or(target.get("allow_http", boolean), false) { PlainHttp::Direct } else { PlainHttp::Refused }
    }
}

/// Returns the only setting that says what a target is.
fn only_kind(target: &Section<'_>) -> Option<&'static str> {
    let table = target.table()?;
    let kinds: Vec<&'static str> = TargetKind::NAMES.into_iter().filter(|kind| table.contains_key(*kind)).collect();
    if let [kind] = kinds[..] {
        return Some(kind);
    }
    let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(" and ") };
    let what = format!("`{}` must have one of {}, found {found}", target.path, TargetKind::NAMES.join(", "));
    let fix = "write one table for each target, as in on_failed = [{ mail = […] }, { run = […] }]";
    target.report(Problem::at(target.span.clone(), what).fix(fix));
    None
}

fn program(target: &Section<'_>) -> Option<ProgramArguments> {
    let list = target.list("run", text)?;
    let texts: Vec<&str> = list.value.iter().map(|spot| spot.value.as_str()).collect();
    match ProgramArguments::build(&texts) {
        Ok(arguments) => Some(arguments),
        Err((at, wrong)) => {
            let span = list.value.get(at).map_or(list.span, |spot| spot.span.clone());
            target.report_value("run", span, wrong);
            None
        }
    }
}

/// Returns the address, unless others on the network could read what is sent there.
fn encrypted(section: &Section<'_>, key: &str, url: Spot<Url>, plain: PlainHttp) -> Option<Url> {
    let is_readable = is_unencrypted_remote(url.value.scheme(), url.value.host_str().unwrap_or_default());
    if is_readable && plain == PlainHttp::Refused {
        let why = "must be https to another machine, found http: the names of recordings and the secret would be \
                   sent unencrypted";
        let fix = "write https; or, in a trusted network, add allow_http = true";
        section.report_value(key, url.span, refusal(why, fix));
        return None;
    }
    Some(url.value)
}

fn hook(value: &DeValue<'_>) -> Result<Url, ValueError> {
    let url = web_url(value, "write it like \"https://hook.example.org/scribed\"")?;
    reject_user(url, "write a `secret`, with which the receiver checks the signature")
}

fn ntfy_topic(value: &DeValue<'_>) -> Result<Url, ValueError> {
    let fix = "write the server and the topic, like \"https://ntfy.sh/my-topic\"";
    let url = reject_user(web_url(value, fix)?, "write an access token into `token`")?;
    let topic = url.path().trim_matches('/');
    match topic.is_empty() || url.query().is_some() {
        true => Err(refusal("must be the address of a topic", fix)),
        false => Ok(url),
    }
}

pub(crate) fn mailbox(value: &DeValue<'_>) -> Result<Mailbox, ValueError> {
    let written = text(value)?;
    let fix = "write it like \"ann@example.org\" or \"Ann <ann@example.org>\"";
    written.parse().map_err(|_| refusal("must be an e-mail address", fix))
}

/// Returns a hash of the event and of what the table says, whatever its order is.
fn identity(event: NotificationEvent, target: &Section<'_>) -> Hash {
    let mut texts = Vec::new();
    // Whether plain http is allowed does not make another target.
    for (key, value) in target.table().into_iter().flatten().filter(|(key, _)| key.get_ref() != "allow_http") {
        flatten(key.get_ref(), value.get_ref(), &mut texts);
    }
    texts.sort();
    Hash::of(format!("{}\n{}", event.name(), texts.join("\n")).as_bytes())
}

fn flatten(path: &str, value: &DeValue<'_>, texts: &mut Vec<String>) {
    match value {
        DeValue::Table(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{path}.{}", key.get_ref()), value.get_ref(), texts));
        }
        DeValue::Array(list) => {
            let numbered = list.iter().enumerate();
            numbered.for_each(|(number, value)| flatten(&format!("{path}.{number}"), value.get_ref(), texts));
        }
        other => {
            texts.push(other.as_str().map_or_else(|| format!("{path}={other:?}"), |text| format!("{path}={text}")));
        }
    }
}
