//! The recognisers of the embedded service, as they are configured.

use crate::clock::SystemClock;
use crate::config::model::{
    HttpRecogniserConfig, ModelName, RecogniserConfig, RecogniserProtocol, ServeConfig, WhisperConfig,
};
use crate::server::http_engine::connection::{EngineAccess, EngineKey};
use crate::server::recognition::lazy::LazyRecogniser;
use crate::server::recognition::openai::engine::{EngineLimits, EngineOptions, OpenAiRecogniser};
use crate::server::recognition::openai::request::EngineProtocol;
use crate::server::recognition::pocketsphinx::engine::{LANGUAGES, PocketSphinx, Settings};
use crate::server::recognition::registry::{BUILT_IN, NamedRecogniser, Recognisers};
use crate::server::recognition::whisper::engine::{ModelLocation, WhisperOptions, WhisperRecogniser};
use crate::server::recognition::whisper::model_folders::model_folders;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configured recognisers, each opened when it is first needed.
pub fn recognisers(serve: &ServeConfig) -> Recognisers {
    let built_in = LazyRecogniser::new(|| Ok(Arc::new(PocketSphinx::open(Settings::default())?)));
    let built_in = NamedRecogniser { name: BUILT_IN.to_owned(), recogniser: Arc::new(built_in), is_local: true };
    let configured = serve.recognisers.iter().map(|(name, config)| configured_recogniser(name, config));
    let mut all: BTreeMap<String, NamedRecogniser> =
        configured.chain([built_in.clone()]).map(|one| (one.name.clone(), one)).collect();
    // The configuration was checked: the default one is there.
    let default = all.remove(&serve.recogniser).unwrap_or(built_in);
    Recognisers::new(default, all.into_values())
}

fn configured_recogniser(name: &str, config: &RecogniserConfig) -> NamedRecogniser {
    let recogniser = match config {
        RecogniserConfig::Http(config) => http_recogniser(name, config),
        RecogniserConfig::Whisper(config) => {
            let options = whisper_options(name, config);
            LazyRecogniser::new(move || Ok(Arc::new(WhisperRecogniser::open(options.clone())?)))
        }
    };
    NamedRecogniser { name: name.to_owned(), recogniser: Arc::new(recogniser), is_local: config.is_local() }
}

fn http_recogniser(name: &str, config: &HttpRecogniserConfig) -> LazyRecogniser {
    let options = EngineOptions {
        name: name.to_owned(),
        protocol: match config.protocol {
            RecogniserProtocol::OpenAi => EngineProtocol::OpenAi,
            RecogniserProtocol::WhisperCpp => EngineProtocol::WhisperCpp,
        },
        access: EngineAccess {
            url: config.url.clone(),
            key: config.key.as_ref().map(|key| EngineKey::new(key.expose())),
            plain_http: config.plain_http,
            authorities: config.authorities.clone(),
        },
        model: config.model.clone(),
        languages: config.languages.clone(),
        concurrency: config.concurrency,
        chunk: config.chunk,
        limits: EngineLimits {
            timeout: config.timeout,
            timeout_factor: config.timeout_factor,
            ..EngineLimits::default()
        },
    };
    LazyRecogniser::new(move || Ok(Arc::new(OpenAiRecogniser::open(options.clone(), Arc::new(SystemClock))?)))
}

fn whisper_options(name: &str, config: &WhisperConfig) -> WhisperOptions {
    WhisperOptions {
        name: name.to_owned(),
        model: model_location(config),
        library: config.library.clone(),
        languages: config.languages.clone(),
        concurrency: config.concurrency,
        threads: config.threads,
        chunk: config.chunk,
    }
}

/// Returns where the model file of a recogniser is.
pub fn model_location(config: &WhisperConfig) -> ModelLocation {
    match &config.model {
        ModelName::Path(path) => ModelLocation::Path(path.clone()),
        ModelName::Name(name) => ModelLocation::Named { name: name.clone(), folders: whisper_folders(&config.models) },
    }
}

/// Returns the folders in which model files are looked for; `beside` is the one beside the configuration.
pub fn whisper_folders(beside: &Path) -> Vec<PathBuf> {
    model_folders(beside, |name| std::env::var_os(name).map(PathBuf::from))
}

/// Returns the languages that a configured recogniser knows; empty for any. It need not be installed.
pub fn recogniser_languages<'s>(serve: &'s ServeConfig, name: &str) -> &'s [&'static str] {
    serve.recognisers.get(name).map_or(LANGUAGES, RecogniserConfig::languages)
}
