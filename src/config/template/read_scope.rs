//! Reads which variables templates may use. This is read before the templates, so that problems are reported at their
//! texts.

use super::capture::Capture;
use super::variables::{TemplateScope, TemplateUser};
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, refusal, text};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeValue;

impl Reader<'_> {
    /// Reads `[env]` and the settings of each source that templates depend on. Problems of a source are reported when
    /// it is read.
    pub(crate) fn scope(&self, file: &Section<'_>) -> TemplateScope {
        let users = file.sections("source").iter().map(user_of).collect();
        TemplateScope { env: self.env_allowed(&file.section("env")), needs_env: self.options.env.is_some(), users }
    }

    fn env_allowed(&self, section: &Section<'_>) -> BTreeMap<String, Option<String>> {
        section.list("allow", |value| self.env_name(&text(value)?));
        // A wrong name is reported once, and not at each text that uses another one.
        let written = section.table().and_then(|table| table.get("allow")).and_then(|list| list.get_ref().as_array());
        let names = written.into_iter().flat_map(|list| list.iter()).filter_map(|name| name.get_ref().as_str());
        names.map(|name| (name.to_owned(), self.env_value(name))).collect()
    }

    /// A value that is not UTF-8 is converted lossily, as a path is.
    fn env_value(&self, name: &str) -> Option<String> {
        let value = match self.options.env {
            Some(env) => env(name),
            None => std::env::var_os(name),
        };
        value.map(|value| value.to_string_lossy().into_owned())
    }

    fn env_name(&self, name: &str) -> Result<String, ValueError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let fix = format!("write the whole name, as in {{{{ env.{} }}}}: letters, digits and _", "STATION");
            return Err(refusal("must contain names of environment variables", fix));
        }
        let is_secret = ["\"", "'"].iter().any(|quote| self.text.contains(&format!("{quote}env:{name}{quote}")));
        if is_secret {
            let why = format!("must not contain `{name}`: it is a secret of this file");
            return Err(refusal(why, "templates write their values into requests and outputs; use another variable"));
        }
        Ok(name.to_owned())
    }
}

/// Reads the settings of a source that templates depend on.
pub(crate) fn user_of(section: &Section<'_>) -> TemplateUser {
    let value = |key: &str| section.table()?.get(key).map(Spanned::get_ref);
    let text = |key: &str| value(key).and_then(DeValue::as_str).map(str::to_owned);
    let capture = text("capture").and_then(|capture| Capture::build(&capture).ok());
    TemplateUser {
        source: text("name").or(text("folder")).or(text("manifest")).unwrap_or_default(),
        template: text("template"),
        groups: capture.map(|capture| capture.groups()).unwrap_or_default(),
        has_rows: value("manifest").is_some(),
    }
}
