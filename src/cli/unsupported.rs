//! What is requested of the embedded service and it does not do, told before anything is sent.

use crate::config::model::{Config, Source};
use crate::config::template::text::Template;
use crate::daemon::recogniser_languages;
use crate::domain::missing_enrichment::join_names;
use crate::domain::names::ServiceName;
use crate::server::recognition::unsupported::UnsupportedParts;
use crate::wire::params::Params;

/// Which services are embedded, and the languages that they recognise.
pub struct UnsupportedCheck {
    own: Vec<ServiceName>,
    languages: &'static [&'static str],
}

impl UnsupportedCheck {
    /// By what `jobs.toml` says.
    pub fn new(config: &Config) -> Self {
        Self { own: config.own_services().cloned().collect(), languages: recogniser_languages(&config.serve) }
    }

    /// Of a request for a file of this source. Of a service elsewhere nothing is known.
    pub fn check_request(&self, source: &Source, request: &Params) -> UnsupportedParts {
        match self.own.contains(&source.service) {
            true => UnsupportedParts::check(request, self.languages),
            false => UnsupportedParts::default(),
        }
    }

    /// Of what this template requests of every file of this source, whatever the file is.
    pub fn of_template(&self, source: &Source, template: &Template) -> UnsupportedParts {
        self.check_request(source, &template.static_params(source.language.as_deref()))
    }
}

/// Why the create is refused, and with it the job fails; `None` where it is not.
pub fn refusal(foreseen: &UnsupportedParts) -> Option<String> {
    let refused = &foreseen.refused;
    (!refused.is_empty()).then(|| refused.join("; "))
}

/// The same with who requests that: a template, or the source where it has none.
pub fn failure_message(source: &Source, template: &str, foreseen: &UnsupportedParts) -> Option<String> {
    let from = match template {
        "" => format!("the source {}", source.name),
        name => format!("[template.{name}]"),
    };
    let why = refusal(foreseen)?;
    Some(format!("{from} requests what the embedded service refuses, so that the job fails: {why}"))
}

/// What is requested and changes nothing or little, each with its reason; `None` where that is nothing.
pub fn without_effect(foreseen: &UnsupportedParts) -> Option<String> {
    let all: Vec<String> = foreseen.without_effect.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What the outputs lack; `None` where that is nothing.
pub fn left_out(foreseen: &UnsupportedParts) -> Option<String> {
    let missing = &foreseen.missing;
    (!missing.is_empty()).then(|| join_names(missing))
}
