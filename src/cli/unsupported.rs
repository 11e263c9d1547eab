//! Finds what a request asks of the embedded service that it does not support, before anything is sent.

use crate::config::model::{Config, ServeConfig, Source};
use crate::config::template::text::Template;
use crate::daemon::{recogniser_languages, recognisers};
use crate::domain::missing_enrichment::{Enrichment, join_names};
use crate::domain::names::ServiceName;
use crate::server::recognition::registry::{BUILT_IN, RecogniserWish, Recognisers};
use crate::server::recognition::unsupported::{LanguageModelUse, RecogniserTraits, ServiceTraits, UnsupportedParts};
use crate::server::translation::apertium::{ApertiumOptions, list_directions};
use crate::server::translation::directions::Directions;
use crate::wire::params::Params;
use std::sync::OnceLock;

/// Which services are embedded, and their recognisers.
pub struct UnsupportedCheck {
    own: Vec<ServiceName>,
    serve: ServeConfig,
    recognisers: Recognisers,
    /// Looked for when a request asks for a translation.
    directions: OnceLock<Directions>,
}

impl UnsupportedCheck {
    /// Reads the embedded services and their recognisers from the configuration.
    pub fn new(config: &Config) -> Self {
        let (serve, recognisers) = (config.serve.clone(), recognisers(&config.serve));
        let directions = OnceLock::new();
        Self { own: config.own_services().cloned().collect(), serve, recognisers, directions }
    }

    /// Returns what is not supported of a request for a file of this source; nothing if its service is hosted, since
    /// scribed does not know what that one supports.
    pub fn check_request(&self, source: &Source, request: &Params) -> UnsupportedParts {
        match self.own.contains(&source.service) {
            true => self.check_own(source, request),
            false => UnsupportedParts::default(),
        }
    }

    fn check_own(&self, source: &Source, request: &Params) -> UnsupportedParts {
        let wish = RecogniserWish { model: request.model.as_deref(), is_local_only: source.local_only };
        let chosen = match self.recognisers.choose(wish) {
            Ok(chosen) => chosen.name.as_str(),
            Err(error) => return UnsupportedParts { refused: vec![error.to_string()], ..UnsupportedParts::default() },
        };
        let is_named = request.model.as_deref() == Some(chosen);
        let languages = recogniser_languages(&self.serve, chosen);
        let recogniser = RecogniserTraits { languages, is_built_in: chosen == BUILT_IN, is_named };
        let is_local = self.serve.language_model.as_ref().map(|model| model.is_local);
        let language_model = LanguageModelUse::of(is_local, source.local_only);
        let is_asked = request.requests(Enrichment::Translation) && language_model != LanguageModelUse::Used;
        let directions = is_asked.then(|| self.directions()).filter(|directions| !directions.is_empty());
        UnsupportedParts::check(request, ServiceTraits { recogniser, language_model, directions })
    }

    /// Returns what the Apertium of this machine translates. Runs the program once.
    fn directions(&self) -> &Directions {
        self.directions.get_or_init(|| list_directions(&ApertiumOptions::default().program))
    }

    /// Returns what is not supported of the parameters that a template sets for every file of this source.
    pub fn of_template(&self, source: &Source, template: &Template) -> UnsupportedParts {
        self.check_request(source, &template.static_params(source.language.as_deref()))
    }
}

/// Returns why the embedded service refuses the create, so that the job fails; `None` if it does not refuse it.
pub fn refusal(foreseen: &UnsupportedParts) -> Option<String> {
    let refused = &foreseen.refused;
    (!refused.is_empty()).then(|| refused.join("; "))
}

/// As [`refusal`], with the template that requests it, or the source if it has no template.
pub fn failure_message(source: &Source, template: &str, foreseen: &UnsupportedParts) -> Option<String> {
    let from = match template {
        "" => format!("the source {}", source.name),
        name => format!("[template.{name}]"),
    };
    let why = refusal(foreseen)?;
    Some(format!("{from} requests what the embedded service refuses, so that the job fails: {why}"))
}

/// Returns the requested parameters that have no or little effect, each with its reason; `None` if there are none.
pub fn without_effect(foreseen: &UnsupportedParts) -> Option<String> {
    let effects: Vec<String> = foreseen.without_effect.iter().map(ToString::to_string).collect();
    (!effects.is_empty()).then(|| effects.join("; "))
}

/// Returns the names of the parts that the outputs will lack; `None` if there are none.
pub fn left_out(foreseen: &UnsupportedParts) -> Option<String> {
    let missing = &foreseen.missing;
    (!missing.is_empty()).then(|| join_names(missing))
}
