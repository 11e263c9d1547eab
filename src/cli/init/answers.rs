//! What a person has answered, and the configuration that it makes.

use crate::domain::time_of_day::{self, TimeOfDay};
use std::fmt::Write as _;
use toml::Value;

/// What transcribes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChosenService {
    Embedded,
    Hosted {
        url: String,
        /// Where the key is: `env:NAME` or `file:PATH`.
        key: String,
    },
}

/// The answers. Those that are not given yet are the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    pub folder: String,
    pub service: ChosenService,
    /// From when to when recordings are sent; `None`: always.
    pub window: Option<(TimeOfDay, TimeOfDay)>,
    /// The most audio of a day, as `40h`.
    pub budget: Option<String>,
}

impl Default for Answers {
    fn default() -> Self {
        Self { folder: "inbox".to_owned(), service: ChosenService::Embedded, window: None, budget: None }
    }
}

impl Answers {
    /// Returns the text of `jobs.toml`.
    pub fn toml(&self) -> String {
        let mut text =
            "# jobs.example.toml has every setting with its default. `scribed check` tests this file.\n".to_owned();
        let quoted = |text: &str| Value::from(text).to_string();
        let mut add = |lines: std::fmt::Arguments<'_>| text.write_fmt(lines).unwrap_or_default();
        match &self.service {
            ChosenService::Embedded => {
                let words = "Without [service] the embedded service transcribes: no account, no network.";
                add(format_args!("\n# {words}\n"));
            }
            ChosenService::Hosted { url, key } => {
                add(format_args!("\n[service]\nurl = {}\nkey = {}\n", quoted(url), quoted(key)));
            }
        }
        if let Some(day) = &self.budget {
            add(format_args!("\n[budget]\nday = {}\n", quoted(day)));
        }
        add(format_args!("\n[[source]]\nfolder = {}\n", quoted(&self.folder)));
        if let Some(window) = self.window {
            let (from, length) = (window.0.cron(), time_of_day::length(window));
            add(format_args!("submit = {{ from = {}, for = {} }}\n", quoted(&from), quoted(&length)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_what_was_answered() {
        insta::assert_snapshot!(Answers::default().toml(), @r#"
        # jobs.example.toml has every setting with its default. `scribed check` tests this file.

        # Without [service] the embedded service transcribes: no account, no network.

        [[source]]
        folder = "inbox"
        "#);
        let hosted = ChosenService::Hosted { url: "https://a.example".to_owned(), key: "file:/k\"ey".to_owned() };
        let answers = Answers {
            folder: "/srv/m\\edia".to_owned(),
            service: hosted,
            window: time_of_day::range("22:30-06:00"),
            budget: Some("40h".to_owned()),
        };
        insta::assert_snapshot!(answers.toml(), @r#"
        # jobs.example.toml has every setting with its default. `scribed check` tests this file.

        [service]
        url = "https://a.example"
        key = 'file:/k"ey'

        [budget]
        day = "40h"

        [[source]]
        folder = '/srv/m\edia'
        submit = { from = "30 22 * * *", for = "7h 30m" }
        "#);
    }
}
