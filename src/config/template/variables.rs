//! The variables of templates, and checks of their names before there is any job.

use crate::config::load::diagnostics::nearest;
use crate::config::load::toml_reader::{ValueError, refusal};
use crate::domain::request_record::MediaTags;
use minijinja::{Environment, context};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The values of the variables for a job. A path that is not UTF-8 is converted lossily.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vars {
    /// The file's path, relative to its source's folder.
    pub path: String,
    /// The file's name with its extension.
    pub name: String,
    /// The file's name without its extension.
    pub stem: String,
    /// The file's extension as written, without a dot; may be empty.
    pub ext: String,
    /// The name of its source.
    pub source: String,
    /// The file's folder, relative to the source's folder; empty at the top. Also called `dir`.
    pub folder: String,
    /// The language that its source or an overlay sets; `None` if none does.
    pub language: Option<String>,
    /// The groups of the source's `capture` in the path; empty if it does not match.
    pub capture: BTreeMap<String, String>,
    /// The row of the manifest, by column; empty without one.
    pub row: Map<String, Value>,
    /// The file's own tags; read only if a template uses them.
    pub media: MediaTags,
    /// The date of its last change, as `2026-11-21`.
    pub date: String,
    /// The environment variables that the configuration allows.
    pub env: BTreeMap<String, String>,
}

/// The variables of a parameter.
pub(crate) const ROOTS: [&str; 13] =
    ["path", "name", "stem", "ext", "source", "folder", "dir", "language", "capture", "row", "media", "date", "env"];

/// The variables of an output's name; `lang`, `sdh` and `ext` are those of the output.
pub(crate) const NAME_ROOTS: [&str; 13] =
    ["stem", "name", "source", "lang", "sdh", "ext", "path", "folder", "dir", "capture", "row", "date", "env"];

const MEDIA: [&str; 3] = ["duration", "channels", "language"];

impl Vars {
    pub(crate) fn context(&self) -> minijinja::Value {
        let Self { path, name, stem, ext, source, folder, date, .. } = self;
        let (capture, row, env) = (to_value(&self.capture), to_value(&self.row), to_value(&self.env));
        let (language, media) = (or_undefined(self.language.as_deref()), described(&self.media));
        context! { path, name, stem, ext, source, folder, dir => folder, language, capture, row, media, date, env }
    }

    /// Makes a sample job to test templates, with all groups.
    fn sample(groups: &BTreeSet<String>, env: BTreeMap<String, String>) -> Self {
        let text = str::to_owned;
        Self {
            path: text("2024/AB12_en.mp4"),
            name: text("AB12_en.mp4"),
            stem: text("AB12_en"),
            ext: text("mp4"),
            source: text("inbox"),
            folder: text("2024"),
            language: Some(text("en")),
            capture: groups.iter().map(|group| (group.clone(), text("en"))).collect(),
            row: Map::new(),
            media: MediaTags { millis: Some(60_000), channels: Some(1), language: Some(text("en")) },
            date: text("2026-11-21"),
            env,
        }
    }
}

fn described(media: &MediaTags) -> minijinja::Value {
    let MediaTags { millis, channels, language } = media;
    let duration = or_undefined(millis.map(|millis| millis as f64 / 1e3));
    context! { duration, channels => or_undefined(*channels), language => or_undefined(language.as_deref()) }
}

/// Converts `None` to undefined: it would be printed as `none`.
pub(crate) fn or_undefined<T: Into<minijinja::Value>>(value: Option<T>) -> minijinja::Value {
    value.map_or(minijinja::Value::UNDEFINED, Into::into)
}

pub(crate) fn to_value(map: &impl serde::Serialize) -> minijinja::Value {
    minijinja::Value::from(minijinja::value::Serde(map))
}

/// The variables that the templates of a file may use.
#[derive(Default)]
pub(crate) struct TemplateScope {
    /// The allowed environment variables; `None` if one is not set.
    pub env: BTreeMap<String, Option<String>>,
    /// Whether an unset variable is an error; not for commands that use no service.
    pub needs_env: bool,
    /// The settings of the sources that templates depend on.
    pub users: Vec<TemplateUser>,
}

/// The settings of a source that templates depend on.
pub(crate) struct TemplateUser {
    pub source: String,
    /// The template of the source.
    pub template: Option<String>,
    /// The groups of the source's `capture`.
    pub groups: BTreeSet<String>,
    /// Whether its recordings have rows of a manifest.
    pub has_rows: bool,
}

impl TemplateScope {
    /// Returns the first name that has a value for no job.
    pub(crate) fn unknown(&self, names: &HashSet<String>, roots: &[&str], env: &Environment<'_>) -> Option<ValueError> {
        let mut names: Vec<&String> = names.iter().collect();
        names.sort();
        names.into_iter().find_map(|name| self.unknown_name(name, roots, env))
    }

    fn unknown_name(&self, name: &str, roots: &[&str], env: &Environment<'_>) -> Option<ValueError> {
        let (root, rest) = name.split_once('.').map_or((name, None), |(root, rest)| (root, rest.split('.').next()));
        if !roots.contains(&root) {
            let is_global = env.globals().any(|(global, _)| global == root);
            return (!is_global).then(|| not_there(root, roots));
        }
        let field = rest?;
        let known: Vec<&str> = match root {
            "media" => MEDIA.to_vec(),
            "env" => self.env.keys().map(String::as_str).collect(),
            "capture" => self.users.iter().flat_map(|user| &user.groups).map(String::as_str).collect(),
            _ => return None,
        };
        if known.contains(&field) {
            return None;
        }
        let why = match root {
            "env" => format!("uses `{name}`, but `env.allow` does not allow it"),
            "capture" => format!("uses `{name}`, but no source has such a group in its `capture`"),
            _ => format!("uses `{name}`, which does not exist"),
        };
        let fix = match (nearest(field, known.iter().copied()), root) {
            (Some(near), _) => format!("did you mean `{root}.{near}`?"),
            (None, "env") => format!("write [env] and below it allow = [\"{field}\"]"),
            (None, "capture") => format!("name a group: capture = '(?P<{field}>…)'"),
            (None, _) => format!(
                "the variables are {}",
                known.iter().map(|field| format!("{root}.{field}")).collect::<Vec<_>>().join(", ")
            ),
        };
        Some(refusal(why, fix))
    }

    /// Makes a sample job of a source to test templates; without one, a job with the groups of all sources.
    pub(crate) fn sample(&self, user: Option<&TemplateUser>) -> Vars {
        let all = || self.users.iter().flat_map(|user| user.groups.iter().cloned()).collect();
        let groups = user.map_or_else(all, |user| user.groups.clone());
        let absent = || (!self.needs_env).then(|| "x".to_owned());
        let env = self.env.iter().filter_map(|(name, value)| Some((name.clone(), value.clone().or_else(absent)?)));
        Vars::sample(&groups, env.collect())
    }

    /// Returns the first name for which no job of this source has a value.
    pub(crate) fn lacking(&self, names: &HashSet<String>, user: &TemplateUser) -> Option<ValueError> {
        let mut names: Vec<&String> = names.iter().collect();
        names.sort();
        names.into_iter().find_map(|name| {
            let (root, field) = name.split_once('.').unwrap_or((name, ""));
            let source = &user.source;
            match root {
                "capture" if !user.groups.contains(field) => {
                    Some(format!("uses `{name}`, but the source {source} has no such group in its `capture`"))
                }
                "row" if !user.has_rows => Some(format!("uses `{name}`, but the source {source} has no manifest")),
                "env" if matches!(self.env.get(field), Some(None)) && self.needs_env => {
                    Some(format!("uses `{name}`, but the environment variable `{field}` is not set"))
                }
                _ => None,
            }
            .map(|why| refusal(why, format!("if the value may be missing, write {{{{ {name} | default('…') }}}}")))
        })
    }
}

fn not_there(name: &str, roots: &[&str]) -> ValueError {
    let fix = match nearest(name, roots.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the variables are {}", roots.join(", ")),
    };
    refusal(format!("uses `{name}`, which does not exist"), fix)
}
