//! Reads `[serve.recognisers.NAME]` and `recogniser` of `[serve]`: what the embedded service recognises speech with.

use crate::config::load::diagnostics::{Problem, nearest};
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{
    Section, Spot, ValueError, integer_from, number_in, refusal, some_time_in, text,
};
use crate::config::load::values::{base_url, boolean, or, plain_http, values};
use crate::config::model::{
    HttpRecogniserConfig, ModelName, RecogniserConfig, RecogniserProtocol, ServeConfig, ServiceConfig, Source,
    WhisperConfig,
};
use crate::domain::names::ServiceName;
use crate::wire::languages::LANGUAGES;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;

/// The name of the recogniser that is built in.
pub const POCKETSPHINX: &str = "pocketsphinx";

/// The shortest and the longest chunk. Engines refuse or fail on longer ones; shorter ones have no context.
const CHUNKS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));

impl Reader<'_> {
    /// Reads the recognisers by their names, and the name of the default one.
    pub(crate) fn recognisers(&self, section: &Section<'_>) -> (String, BTreeMap<String, RecogniserConfig>) {
        let mut all = BTreeMap::new();
        for (name, inner) in section.named("recognisers") {
            if let Err(refusal) = check_name(&name.value) {
                section.report_value(&format!("recognisers.{}", name.value), name.span.clone(), refusal);
            }
            all.extend(self.recogniser(&inner).map(|recogniser| (name.value, recogniser)));
        }
        // A recogniser with a problem is reported above, and counts as there.
        let names: Vec<String> = section.named("recognisers").into_iter().map(|(name, _)| name.value).collect();
        let default = section.get("recogniser", |value| default_name(value, &names));
        (or(default, POCKETSPHINX.to_owned()), all)
    }

    fn recogniser(&self, section: &Section<'_>) -> Option<RecogniserConfig> {
        let kind = section.get("kind", kind);
        if !is_written(section, "kind") {
            report_missing(section, "kind", "a recogniser needs one", "kind = \"openai\"");
        }
        match kind.map(|kind| kind.value) {
            Some(RecogniserKind::Whisper) => self.whisper(section).map(RecogniserConfig::Whisper),
            Some(RecogniserKind::Http(protocol)) => {
                self.http_recogniser(section, Some(protocol)).map(RecogniserConfig::Http)
            }
            // The mistakes in the other settings are reported too.
            None => self.http_recogniser(section, None).map(RecogniserConfig::Http),
        }
    }

    fn http_recogniser(
        &self,
        section: &Section<'_>,
        protocol: Option<RecogniserProtocol>,
    ) -> Option<HttpRecogniserConfig> {
        let url = section.get("url", |value| base_url(value, "http://localhost:8000/v1", "write the key into `key`"));
        if !is_written(section, "url") {
            let example = "url = \"http://localhost:8000/v1\", the address of the engine";
            report_missing(section, "url", "a recogniser needs one", example);
        }
        let model = section.get("model", text);
        check_model(section, protocol, model.as_ref());
        reject_settings(section, WHISPER_ONLY, "is for the kind \"whisper\"");
        let plain_http = plain_http(section, "url", url.as_ref());
        let key = section.get("key", |value| self.secret(value)).map(|key| key.value);
        let per_minute = section.get("timeout_factor", |value| {
            number_in(value, &(0.1..=100.0), "write the seconds that a second of sound may take, like 2.0")
        });
        Some(HttpRecogniserConfig {
            key,
            plain_http,
            authorities: self.authorities(section),
            is_local: or(section.get("local", boolean), false),
            languages: languages(section),
            concurrency: concurrency(section),
            chunk: or(section.get("chunk", chunk), LONGEST_CHUNK),
            timeout: or(section.get("timeout", some_time_in("m")), Duration::from_secs(120)),
            timeout_factor: or(per_minute, 2.0),
            model: model.map(|model| model.value),
            protocol: protocol?,
            url: url?.value,
        })
    }

    fn whisper(&self, section: &Section<'_>) -> Option<WhisperConfig> {
        reject_settings(section, HTTP_ONLY, "is for an engine that is reached over HTTP; this one runs in the service");
        let model = section.get("model", |value| self.path_text(value));
        if !is_written(section, "model") {
            let example = "model = \"ggml-base.bin\"; `scribed serve models` shows where files are looked for";
            report_missing(section, "model", "it is the name or the path of the model file", example);
        }
        let library = section.get("library", |value| self.path_text(value));
        Some(WhisperConfig {
            library: library.map(|library| self.path(&library.value)),
            languages: languages(section),
            concurrency: concurrency(section),
            threads: section.get("threads", integer_from(1)).map(|spot| spot.value as usize),
            chunk: or(section.get("chunk", chunk), LONGEST_CHUNK),
            models: self.path("models"),
            model: match model?.value {
                path if path.contains('/') => ModelName::Path(self.path(&path)),
                name => ModelName::Name(name),
            },
        })
    }
}

/// The settings that only an engine behind HTTP has, and those that it does not have.
const HTTP_ONLY: &[&str] =
    &["url", "key", "local", "timeout", "timeout_factor", "allow_http", "allow_http_proxy", "ca"];
const WHISPER_ONLY: &[&str] = &["library", "threads"];

const LONGEST_CHUNK: Duration = Duration::from_secs(300);

fn is_written(section: &Section<'_>, key: &str) -> bool {
    section.table().is_some_and(|table| table.contains_key(key))
}

fn report_missing(section: &Section<'_>, key: &str, why: &str, example: &str) {
    let what = format!("`{}` is missing: {why}", section.name(key));
    section.report(Problem::at(section.span.clone(), what).fix(example));
}

/// Reports settings that a recogniser of this kind does not have.
fn reject_settings(section: &Section<'_>, keys: &[&str], why: &str) {
    let Some(table) = section.table() else { return };
    for key in keys {
        if let Some((written, _)) = table.get_key_value(*key) {
            section.report_value(key, written.span(), refusal(why, "remove it"));
        }
    }
}

fn languages(section: &Section<'_>) -> Vec<&'static str> {
    section.list("languages", language).map_or(Vec::new(), |list| values(list.value))
}

fn concurrency(section: &Section<'_>) -> usize {
    section.get("concurrency", integer_from(1)).map_or(1, |spot| spot.value as usize)
}

fn check_name(name: &str) -> Result<(), ValueError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name == POCKETSPHINX {
        return Err(refusal("is the name of the recogniser that is built in", "choose another name"));
    }
    match name.len() {
        1..=40 if name.chars().all(plain) => Ok(()),
        _ => Err(refusal("is not a valid name for a recogniser", "use up to 40 letters, digits, `-` and `_`")),
    }
}

fn default_name(value: &DeValue<'_>, names: &[String]) -> Result<String, ValueError> {
    let name = text(value)?;
    if name == POCKETSPHINX || names.contains(&name) {
        return Ok(name);
    }
    let known = names.iter().map(String::as_str).chain([POCKETSPHINX]);
    let fix = match nearest(&name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write \"{POCKETSPHINX}\", or the NAME of a [serve.recognisers.NAME]"),
    };
    Err(refusal("must be the name of a recogniser", fix))
}

/// An engine of the kind `openai` chooses its model by name; the other has one.
fn check_model(section: &Section<'_>, protocol: Option<RecogniserProtocol>, model: Option<&Spot<String>>) {
    match (protocol, model) {
        (Some(RecogniserProtocol::OpenAi), _) if !is_written(section, "model") => {
            let why = "the engine chooses its model by this name";
            report_missing(section, "model", why, "model = \"whisper-1\"");
        }
        (Some(RecogniserProtocol::WhisperCpp), Some(model)) => {
            let why = "is for the kinds \"openai\" and \"whisper\": whisper.cpp's server has the one model that it was \
                       started with";
            section.report_value("model", model.span.clone(), refusal(why, "remove it"));
        }
        _ => {}
    }
}

/// What `kind` says.
#[derive(Debug, Clone, Copy)]
enum RecogniserKind {
    Http(RecogniserProtocol),
    Whisper,
}

fn kind(value: &DeValue<'_>) -> Result<RecogniserKind, ValueError> {
    match text(value)?.as_str() {
        "openai" => Ok(RecogniserKind::Http(RecogniserProtocol::OpenAi)),
        "whisper.cpp" => Ok(RecogniserKind::Http(RecogniserProtocol::WhisperCpp)),
        "whisper" => Ok(RecogniserKind::Whisper),
        _ => {
            let fix = "write \"openai\" for an engine with POST …/audio/transcriptions, \"whisper.cpp\" for its server, \
                       \"whisper\" for a model file";
            Err(refusal("must be \"openai\", \"whisper.cpp\" or \"whisper\"", fix))
        }
    }
}

fn language(value: &DeValue<'_>) -> Result<&'static str, ValueError> {
    let code = text(value)?;
    LANGUAGES.iter().copied().find(|known| *known == code).ok_or_else(|| {
        let near = nearest(&code.to_ascii_lowercase(), LANGUAGES.iter().copied());
        let fix =
            near.map_or("write codes like \"en\" and \"de\"".to_owned(), |near| format!("did you mean \"{near}\"?"));
        refusal("must only have codes of languages that the interface has", fix)
    })
}

fn chunk(value: &DeValue<'_>) -> Result<Duration, ValueError> {
    let length = some_time_in("m")(value)?;
    match length >= CHUNKS.0 && length <= CHUNKS.1 {
        true => Ok(length),
        false => Err(refusal("must be from 10 seconds to 10 minutes", "the default is \"5m\"")),
    }
}

impl ServeConfig {
    /// Whether sources that are `local_only` may use the recogniser of this name.
    pub fn is_local_recogniser(&self, name: &str) -> bool {
        name == POCKETSPHINX || self.recognisers.get(name).is_some_and(RecogniserConfig::is_local)
    }

    /// Returns the name of the recogniser that a request with this `model` gets, as the embedded service chooses it.
    pub fn recogniser_for(&self, model: Option<&str>) -> &str {
        let known = |name: &str| name == POCKETSPHINX || self.recognisers.contains_key(name);
        match model {
            Some(name) if known(name) => self.recognisers.get_key_value(name).map_or(POCKETSPHINX, |(name, _)| name),
            _ => &self.recogniser,
        }
    }
}

/// Reports sources that are `local_only` and whose recordings would go to a recogniser that is not `local`. Sidecars and
/// rows may choose another template: the embedded service checks each request.
pub(crate) fn check_local_sources(
    file: &Section<'_>,
    sources: &[Source],
    services: &BTreeMap<ServiceName, ServiceConfig>,
    serve: &ServeConfig,
) {
    let is_embedded = |source: &&Source| matches!(services.get(&source.service), Some(ServiceConfig::Embedded(_)));
    for source in sources.iter().filter(|source| source.local_only).filter(is_embedded) {
        let model = source.template.static_params(None).model;
        let name = serve.recogniser_for(model.as_deref());
        if serve.is_local_recogniser(name) {
            continue;
        }
        let section = file.section("serve").section("recognisers").section(name);
        let by = match model {
            Some(model) if model == name => format!("`model` of [template.{}]", source.template.name()),
            _ => "`recogniser` of [serve]".to_owned(),
        };
        let what = format!(
            "the recogniser `{name}` would receive recordings of the source {}, which is `local_only` ({by} selects it)",
            source.name
        );
        let fix = "add local = true if it runs on this site, or choose another recogniser";
        file.report(Problem::at(section.span.clone(), what).fix(fix));
    }
}
