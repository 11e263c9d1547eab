//! Reads `jobs.toml` in one pass that finds all problems.

use super::diagnostics::{Problem, Problems};
use super::keys;
use super::quantities::quoted;
use super::syntax;
use super::toml_reader::{
    ProblemList, Section, ValueError, integer_from, refusal, size, some_time_in, text, wrong_type,
};
use super::values::{check_order, or};
use crate::captions::CaptionRules;
use crate::config::model::{Config, ConfigText, NotifyConfig, ServeConfig, SourceDefaults, Warning};
use crate::config::paths::checks;
use crate::config::paths::folders;
use crate::config::secret;
use crate::config::secret::{Env, FetchSecret, Secret};
use crate::config::sections::bucket::force_streaming;
use crate::config::sections::budget::{budget, zone};
use crate::config::sections::callback::callback;
use crate::config::sections::captions::caption_rules;
use crate::config::sections::notify::notify;
use crate::config::sections::recognisers::check_local_sources;
use crate::config::sections::review::review_rules;
use crate::config::sections::search::search;
use crate::config::sections::serve::warn_webhook_for_local_sources;
use crate::config::sections::services::{drop_unwanted, prices};
use crate::config::sections::sources::{SourceContext, set_configured_places};
use crate::config::sections::timezone::zones;
use crate::config::sections::web::web;
use crate::config::template::text::{Template, Templates};
use crate::config::template::variables::TemplateScope;
use crate::domain::retry::RetryPolicy;
use crate::permission_errors::describe_error;
use crate::review::ReviewRules;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Reads a configuration file with its secrets.
///
/// # Errors
/// All problems of the file.
pub fn load(path: &Path) -> Result<Config, Problems> {
    load_with(path, &|name| std::env::var_os(name))
}

/// Like [`load`], without secrets, for commands that use no service.
///
/// # Errors
/// All problems of the file.
pub fn load_without_secrets(path: &Path) -> Result<Config, Problems> {
    read(path, ReadOptions { env: None, files: false, sources: true })
}

/// Like [`load`], for `scribed serve`: the file need not have a source.
///
/// # Errors
/// All problems of the file.
pub fn load_to_serve(path: &Path) -> Result<ServeConfig, Problems> {
    let env = |name: &str| std::env::var_os(name);
    read(path, ReadOptions { env: Some(&env), files: true, sources: false }).map(|config| config.serve)
}

/// Like [`load_to_serve`], without secrets.
///
/// # Errors
/// All problems of the file.
pub fn load_to_serve_without_secrets(path: &Path) -> Result<ServeConfig, Problems> {
    read(path, ReadOptions { env: None, files: false, sources: false }).map(|config| config.serve)
}

/// Reads `[captions]`, without secrets; the file need not have a source.
///
/// # Errors
/// All problems of the file.
pub fn load_captions(path: &Path) -> Result<CaptionRules, Problems> {
    read(path, ReadOptions { env: None, files: false, sources: false }).map(|config| config.captions)
}

/// Whether a file can be read and has no source, so that no daemon uses it.
pub fn is_without_sources(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    DeTable::parse(&text).is_ok_and(|file| !file.get_ref().contains_key("source"))
}

/// Like [`load`], with another environment.
///
/// # Errors
/// All problems of the file.
pub fn load_with(path: &Path, env: Env<'_>) -> Result<Config, Problems> {
    read(path, ReadOptions { env: Some(env), files: true, sources: true })
}

fn read(path: &Path, wants: ReadOptions<'_>) -> Result<Config, Problems> {
    let alone = |problem| Problems::new(path, "", vec![problem]);
    let bytes = std::fs::read(path).map_err(|error| {
        alone(
            Problem::of_file(format!("cannot read the configuration: {}", describe_error(&error, path)))
                .fix("`scribed init` creates one; --config FILE names another"),
        )
    })?;
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let problem = Problem::of_file("the file is UTF-16, and must be UTF-8");
        return Err(alone(problem.fix("save it as UTF-8: in Notepad choose the encoding UTF-8 under \"Save as\"")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        alone(Problem::of_file(format!("line {line} is not UTF-8")).fix("save the file as UTF-8"))
    })?;
    understand(path, &text, wants)
}

/// Like [`load_with`], from a text; relative paths are still resolved from the file's folder. Certificates are not
/// read.
///
/// # Errors
/// All problems of the file.
pub fn parse(path: &Path, text: &str, env: Env<'_>) -> Result<Config, Problems> {
    understand(path, text, ReadOptions { env: Some(env), files: false, sources: true })
}

/// Reads the text of a configuration of another machine, without secrets. What its paths lead to there is not looked at.
///
/// # Errors
/// All problems of the text.
pub fn parse_without_secrets(path: &Path, text: &str) -> Result<Config, Problems> {
    understand(path, text, ReadOptions { env: None, files: false, sources: true })
}

fn understand(path: &Path, text: &str, wants: ReadOptions<'_>) -> Result<Config, Problems> {
    let (top, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(Problems::new(path, text, syntax::problems(text, &errors)));
    }
    let found = ProblemList::new(keys::check(top.get_ref()));
    let reader = Reader { text, base: base_of(path), options: wants };
    let config = reader.config(path, &Section::of_file(top.get_ref(), &found));
    let problems = found.into_inner();
    if problems.iter().any(|problem| !problem.is_warning) {
        return Err(Problems::new(path, text, problems));
    }
    Ok(Config { warnings: problems.into_iter().map(|problem| warning(path, text, problem)).collect(), ..config })
}

fn warning(path: &Path, text: &str, problem: Problem) -> Warning {
    let problems = Problems::new(path, text, vec![problem]);
    let sentence = problems.list().iter().map(Problem::sentence).collect();
    Warning { sentence, report: problems.report(false) }
}

/// Returns the folder from which relative paths are resolved.
fn base_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map_or(PathBuf::new(), Path::to_owned)
}

pub(crate) struct Reader<'r> {
    pub(crate) text: &'r str,
    pub(crate) base: PathBuf,
    pub(crate) options: ReadOptions<'r>,
}

/// What a caller needs of the configuration.
pub(crate) struct ReadOptions<'r> {
    /// The environment for secrets; `None`: secrets are not read.
    pub(crate) env: Option<Env<'r>>,
    /// Whether certificate files are read.
    pub(crate) files: bool,
    /// Whether the file must have a source.
    pub(crate) sources: bool,
}

impl Reader<'_> {
    fn config(&self, path: &Path, file: &Section<'_>) -> Config {
        let state = self.state(&file.section("state"));
        let zones = zones(file);
        let serve = ServeConfig { display_zone: zones.display_zone, ..self.serve(&file.section("serve")) };
        let scope = self.scope(file);
        let templates = self.templates(file, &scope);
        let zone = zone(&file.section("budget"), zones.default_zone);
        let mut services = self.services(file);
        let own = [state.as_path(), serve.data.as_path()];
        let env = scope.env.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
        let shared = Arc::new(SourceDefaults { templates, env, zone, default_zone: zones.default_zone });
        let mut private: Vec<PathBuf> = own.iter().map(|own| (*own).to_owned()).collect();
        private.extend([std::path::absolute(path).unwrap_or_else(|_| path.to_owned())]);
        private.extend(self.key_files(file));
        private.extend(serve.keys.places.folder().map(Path::to_owned));
        let callback = callback(self, &file.section("callback"));
        let web = web(self, &file.section("web"));
        let pairs = [
            serve.tls.as_ref(),
            callback.as_ref().and_then(|callback| callback.tls.as_ref()),
            web.as_ref().and_then(|web| web.tls.as_ref()),
        ];
        private.extend(pairs.into_iter().flatten().flat_map(|pair| [pair.cert.clone(), pair.key.clone()]));
        let captions = caption_rules(&file.section("captions"), &CaptionRules::default());
        let review = review_rules(&file.section("review"), ReviewRules::default());
        let known = SourceContext {
            shared: &shared,
            scope: &scope,
            services: &services,
            captions: &captions,
            review,
            own_folders: &own,
            private: &private,
        };
        let mut sources = self.sources(file, &known);
        set_configured_places(&mut sources, private, &services);
        warn_webhook_for_local_sources(file, &sources, &serve);
        check_local_sources(file, &sources, &services, &serve);
        drop_unwanted(file, &sources, &mut services);
        let budget = budget(&file.section("budget"), &sources);
        force_streaming(&mut sources, &services, &budget);
        let prices = prices(file);
        let notify = notify(self, &file.section("notify"), zones.default_zone, zones.display_zone);
        let notify = Arc::new(NotifyConfig { prices: prices.clone(), ..notify });
        Config {
            file: path.to_owned(),
            text: ConfigText(self.text.into()),
            spool: or(file.section("state").get("spool", size), 10_000_000_000),
            keep_history: file.section("state").get("keep_history", some_time_in("d")).map(|spot| spot.value),
            keep_results: file.section("state").get("keep_results", some_time_in("d")).map(|spot| spot.value),
            services,
            budget,
            zone,
            display_zone: zones.display_zone,
            prices,
            callback,
            web,
            notify,
            otlp: self.collector(&file.section("telemetry")),
            search: search(&file.section("search")),
            retry: retry(&file.section("retry")),
            state,
            serve,
            captions,
            sources,
            warnings: Vec::new(),
        }
    }

    fn state(&self, section: &Section<'_>) -> PathBuf {
        let store = section.get("store", |value| {
            let text = text(value)?;
            match text.split_once(':') {
                Some(("sled", folder)) if !folder.is_empty() => {
                    let wrong = self.path_mistake(folder).or_else(|| checks::check_own_folder(&self.path(folder)));
                    wrong.map_or_else(|| Ok(folder.to_owned()), Err)
                }
                Some(("postgres" | "postgresql", _)) => Err(refusal(
                    "names a PostgreSQL store, which this release does not support yet",
                    "write \"sled:state\"",
                )),
                None if checks::check_path(&text).is_none() => {
                    let why = format!("must be \"sled:FOLDER\", found {}", quoted(&text));
                    Err(refusal(why, format!("write \"sled:{text}\"")))
                }
                _ => Err(refusal("must be \"sled:FOLDER\"", "the default is \"sled:state\"")),
            }
        });
        self.path(&or(store, "state".to_owned()))
    }

    /// Reads the text of a path. A path that looks like a mistake is accepted if it exists.
    ///
    /// # Errors
    /// The value is no string, or no path of this machine.
    pub(crate) fn path_text(&self, value: &DeValue<'_>) -> Result<String, ValueError> {
        let written = text(value)?;
        self.path_mistake(&written).map_or(Ok(written), Err)
    }

    fn path_mistake(&self, written: &str) -> Option<ValueError> {
        checks::check_path(written).filter(|_| !folders::exists(&self.path(written)))
    }

    fn templates(&self, file: &Section<'_>, scope: &TemplateScope) -> Templates {
        let build = |name: &str, section| Template::build(name, &section, self.text, scope);
        file.named("template")
            .into_iter()
            .map(|(name, section)| (name.value.clone(), build(&name.value, section)))
            .collect()
    }

    pub(crate) fn secret(&self, value: &DeValue<'_>) -> Result<Secret, ValueError> {
        self.secret_by(value, Secret::fetch)
    }

    /// Reads the whole value of a header, such as `Bearer …`, from where a secret is.
    pub(crate) fn header_value(&self, value: &DeValue<'_>) -> Result<Secret, ValueError> {
        self.secret_by(value, Secret::fetch_header_value)
    }

    fn secret_by(&self, value: &DeValue<'_>, fetch: FetchSecret) -> Result<Secret, ValueError> {
        let fix = "use \"env:NAME\" or \"file:PATH\"";
        let written = value.as_str().ok_or_else(|| wrong_type("a string", value, fix))?;
        let secret = match self.options.env {
            Some(env) => fetch(written, &self.base, env),
            None => Secret::empty_for(written),
        };
        secret.map_err(|(why, fix)| refusal(format!("cannot be used: {why}"), fix))
    }

    /// Returns the files with keys, and the folder in which systemd provides credentials.
    fn key_files(&self, file: &Section<'_>) -> Vec<PathBuf> {
        let system = |name: &str| std::env::var_os(name);
        let env = self.options.env.unwrap_or(&system);
        let written = file.table().map(|table| table.values().flat_map(|value| texts(value.get_ref())).collect());
        let written: Vec<&str> = written.unwrap_or_default();
        let files = written.into_iter().filter_map(|text| secret::file_of(text, &self.base, env));
        files.chain(secret::credentials(env)).collect()
    }

    /// Makes a path absolute, relative to the file's folder.
    pub(crate) fn path(&self, written: &str) -> PathBuf {
        folders::normalize_parents(self.base.join(written).components().collect())
    }
}

/// Returns all strings below a value.
fn texts<'v>(value: &'v DeValue<'_>) -> Vec<&'v str> {
    match value {
        DeValue::String(text) => vec![text.as_ref()],
        DeValue::Array(list) => list.iter().flat_map(|value| texts(value.get_ref())).collect(),
        DeValue::Table(table) => table.values().flat_map(|value| texts(value.get_ref())).collect(),
        _ => Vec::new(),
    }
}

fn retry(section: &Section<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    let (first, max) = check_order(section, ("first", default.first), ("max", default.max));
    RetryPolicy { attempts: or(section.get("attempts", integer_from(1)), default.attempts), first, max }
}
