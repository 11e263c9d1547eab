//! Reads `[web]`: the HTTP API, and who may use it.

use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, refusal, text};
use crate::config::load::values::{address, header, network, or, values};
use crate::config::model::{TrustedHeader, WebConfig, WebUser};
use crate::domain::role::Role;
use axum::http::uri::Authority;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use toml::de::DeValue;

/// The longest name of a user.
const LONGEST_NAME: usize = 64;

/// Reads the section; `None` if the file has none.
pub(crate) fn web(reader: &Reader<'_>, section: &Section<'_>) -> Option<WebConfig> {
    section.table()?;
    let users = users(reader, section);
    let local_users = section.list("local_users", text).map_or(Vec::new(), |list| list.value);
    for name in local_users.iter().filter(|name| !users.contains_key(&name.value)) {
        let what = format!("`web.local_users` names {:?}, which is no user of [web.users]", name.value);
        let fix = format!("add [web.users.{}] with a role", name.value);
        section.report(Problem::at(name.span.clone(), what).fix(fix));
    }
    Some(WebConfig {
        listen: or(section.get("listen", address), SocketAddr::from(([127, 0, 0, 1], 8473))),
        tls: reader.tls(section),
        hosts: section.list("hosts", host).map_or(Vec::new(), |list| values(list.value)),
        local_users: values(local_users),
        trust: trust(section),
        users,
    })
}

fn users(reader: &Reader<'_>, section: &Section<'_>) -> BTreeMap<String, WebUser> {
    let mut users = BTreeMap::new();
    for (name, user) in section.named("users") {
        if !is_name(&name.value) {
            let what = format!("{:?} cannot be the name of a user of `web`", name.value);
            let fix = format!("at most {LONGEST_NAME} characters, without spaces, colons and control characters");
            section.report(Problem::at(name.span.clone(), what).fix(fix));
            continue;
        }
        let hash = |form: HashForm| {
            move |value: &DeValue<'_>| {
                let hash = reader.secret(value)?;
                // Without secrets none is read.
                let is_hash = hash.expose().is_empty() || form.fits(hash.expose());
                if is_hash { Ok(hash) } else { Err(form.refusal()) }
            }
        };
        let (token, password) =
            (user.get("token", hash(HashForm::Token)), user.get("password", hash(HashForm::Password)));
        let role = or(user.get("role", role), Role::Viewer);
        let secrets = [token, password].map(|spot: Option<Spot<_>>| spot.map(|spot| spot.value));
        let [token, password] = secrets;
        users.insert(name.value, WebUser { role, token, password });
    }
    users
}

/// Which hash a setting names.
#[derive(Clone, Copy)]
enum HashForm {
    Token,
    Password,
}

impl HashForm {
    fn fits(self, hash: &str) -> bool {
        match self {
            Self::Token => hash.strip_prefix("sha256:").is_some_and(|hex| {
                hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            }),
            Self::Password => hash.starts_with("$argon2"),
        }
    }

    /// Does not repeat what was read: it may be the secret itself.
    fn refusal(self) -> ValueError {
        let (what, command) = match self {
            Self::Token => ("a token", "scribed web token"),
            Self::Password => ("a password", "scribed web password"),
        };
        refusal(format!("must name the hash of {what}, and what it names is none"), format!("`{command}` makes one"))
    }
}

/// A colon would end the name in the header of a request.
fn is_name(name: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    !name.is_empty() && name.chars().count() <= LONGEST_NAME && !name.contains(is_bad)
}

fn trust(section: &Section<'_>) -> Option<TrustedHeader> {
    let trust = section.section("trust");
    let table = trust.table()?;
    let proxies = trust.list("proxies", network).map_or(Vec::new(), |list| values(list.value));
    let name = trust.get("header", header);
    for (key, example) in [("proxies", "[\"10.0.0.0/8\"]"), ("header", "\"Remote-User\"")] {
        if !table.contains_key(key) {
            let what = format!("`{}` is missing: a trusted header needs both", trust.name(key));
            trust.report(Problem::at(trust.span.clone(), what).fix(format!("{key} = {example}")));
        }
    }
    Some(TrustedHeader { proxies, header: name?.value })
}

fn role(value: &DeValue<'_>) -> Result<Role, ValueError> {
    let fix = "a viewer sees everything, an editor decides about recordings, an operator may do all";
    Role::parse(&text(value)?).ok_or_else(|| refusal("must be \"viewer\", \"editor\" or \"operator\"", fix))
}

/// Reads a host name, with a port or without.
fn host(value: &DeValue<'_>) -> Result<String, ValueError> {
    let written = text(value)?;
    let authority = written.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'));
    let fix = "write it as browsers show it, like \"scribed.example.org\"";
    authority.map(|_| written.to_ascii_lowercase()).ok_or_else(|| refusal("must be a host name", fix))
}
