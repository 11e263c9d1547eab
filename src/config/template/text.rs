//! Templates: request parameters whose text may contain `{{ … }}`, filled in for each job.

use super::overlay::{Overlay, merge};
use super::parameters::{PartialTemplate, join, shorten_complaint};
use super::variables::{TemplateScope, Vars};
use crate::config::load::toml_reader::{Section, ValueError, refusal};
use crate::domain::did_you_mean::nearest;
use crate::domain::track_selection::TrackSelection;
use crate::wire::parameter_check::{Complaint, METADATA, METADATA_LIMIT, Side, coerce, text_length};
use crate::wire::params::Params;
use crate::wire::shorthand;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

/// Named request parameters, filled in for each job.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

/// A template filled in for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTemplate {
    /// The checked parameters, without `custom_metadata`.
    pub params: Params,
    /// The content of `custom_metadata`, with room for scribed's token, which is added.
    pub metadata: Map<String, Value>,
    /// The selected sound of the recording, if any. It does not come from the template.
    pub track_selection: Option<TrackSelection>,
}

impl RenderedTemplate {
    /// Returns the bytes that are stored and hashed: all that makes two purchases differ.
    pub fn canonical(&self) -> Vec<u8> {
        self.params.canonical(|params| {
            if let Some(pick) = &self.track_selection {
                pick.insert_into(params);
            }
        })
    }
}

/// Why a template cannot be filled in for a job: all problems at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template `{template}`: {}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RenderProblem {
    pub template: String,
    /// Never empty.
    pub errors: Vec<RenderWrong>,
}

/// One parameter that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderWrong {
    /// The overlay that set it; `None` for the template itself.
    pub from: Option<String>,
    /// The line there, from 1; 0 if the key is not in the file.
    pub line: usize,
    pub key: String,
    /// The problem, with the rendered value.
    pub what: String,
}

impl RenderProblem {
    /// Whether a sidecar or a manifest has to be corrected.
    pub fn is_of_overlays(&self) -> bool {
        self.errors.iter().any(|wrong| wrong.from.is_some())
    }
}

impl fmt::Display for RenderWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(from) = &self.from {
            write!(f, "{from}, ")?;
        }
        write!(f, "line {}: {} {}", self.line, self.key, self.what)
    }
}

struct Inner {
    name: String,
    /// The parameters as written, converted to JSON types.
    value: Value,
    /// The line of each parameter, by its dotted path.
    lines: BTreeMap<String, usize>,
    /// Each text with variables, by its dotted path.
    env: Environment<'static>,
    /// The variables that these texts use, by their dotted paths.
    names: BTreeMap<String, BTreeSet<String>>,
}

/// The room that is reserved in `custom_metadata` for the key and value of scribed's token, in UTF-16 units.
pub const TOKEN_ROOM: usize = 220;

impl Template {
    /// Makes a template without parameters: the service's defaults apply.
    pub fn empty() -> Self {
        let (value, env) = (Value::Object(Map::new()), environment());
        Self(Arc::new(Inner { name: String::new(), value, lines: BTreeMap::new(), env, names: BTreeMap::new() }))
    }

    /// Returns the name in the file; empty for the template without parameters.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Reads `[template.NAME]` and reports all problems to the section. The file's text is used for line numbers.
    pub(crate) fn build(name: &str, section: &Section<'_>, file_text: &str, scope: &TemplateScope) -> Self {
        let mut written = PartialTemplate::new(section, scope, name);
        let value = section.table().map_or(Value::Null, |table| written.table("", table));
        written.check_reserved(&value);
        written.check_fields(&value);
        let lines = written.lines(file_text);
        Self(Arc::new(Inner { name: name.to_owned(), value, lines, env: written.env, names: written.names }))
    }

    /// Returns a parameter as it is written, with its variables.
    pub fn written(&self, key: &str) -> Option<&Value> {
        self.0.value.get(key)
    }

    /// Returns the variables that its parameters use: `stem`, `row.title`.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.names.values().flatten().map(String::as_str)
    }

    /// Whether it uses a variable, such as `media` or `media.duration`.
    pub fn uses(&self, name: &str) -> bool {
        let below = |used: &String| used == name || used.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        self.0.names.values().flatten().any(below)
    }

    /// Returns the line of a parameter in the configuration file and the variables that its text uses; `None` if the
    /// template does not set it.
    pub fn origin(&self, key: &str) -> Option<(usize, Vec<&str>)> {
        let line = *self.0.lines.get(key)?;
        let names = self.0.names.get(key).into_iter().flatten().map(String::as_str);
        Some((line, names.collect()))
    }

    /// Returns the parameters that do not depend on the recording, for a source with this language.
    pub fn static_params(&self, language: Option<&str>) -> Params {
        let mut value = without_dynamic(&self.0.value);
        let vars = Vars { language: language.map(str::to_owned), ..Vars::default() };
        lay_over(&mut value, &vars, &[]);
        coerce(&mut value);
        Params::parse_lenient(&value)
    }

    /// Returns the spoken languages that it and the overlays name for a job. A text that does not render names none.
    pub fn languages(&self, vars: &Vars, overlays: &[Overlay]) -> Vec<String> {
        let mut value = self.0.fill("", &self.0.value, vars, &mut Vec::new());
        lay_over(&mut value, vars, overlays);
        coerce(&mut value);
        Params::parse_lenient(&value).languages().to_vec()
    }

    /// Fills the template in for a job. The overlays override it, the nearest last.
    ///
    /// # Errors
    /// A text that does not render, or parameters that the interface refuses.
    pub fn render(&self, vars: &Vars, overlays: &[Overlay]) -> Result<RenderedTemplate, RenderProblem> {
        let mut wrongs = Vec::new();
        let mut value = self.0.fill("", &self.0.value, vars, &mut wrongs);
        lay_over(&mut value, vars, overlays);
        // A text that an overlay replaces need not render.
        wrongs.retain(|wrong| value.pointer(&pointer(&wrong.key)).is_none_or(Value::is_null));
        let metadata = take_metadata(&mut value);
        if text_length(&Value::Object(metadata.clone())) > METADATA_LIMIT - TOKEN_ROOM {
            let what = format!("must be at most {} characters as JSON", METADATA_LIMIT - TOKEN_ROOM);
            wrongs.push(self.0.wrong(METADATA, what, overlays));
        }
        coerce(&mut value);
        match Params::read(&value, Side::Client) {
            Ok(reading) if wrongs.is_empty() => {
                return Ok(RenderedTemplate { params: reading.params, metadata, track_selection: None });
            }
            Ok(_) => {}
            Err(complaints) => {
                // A text that did not render is null now and was reported already.
                let reported: BTreeSet<String> = wrongs.iter().map(|wrong| wrong.key.clone()).collect();
                let news = complaints.iter().filter(|complaint| !reported.contains(&complaint.field));
                wrongs.extend(news.map(|complaint| self.0.complaint(complaint, &value, overlays)));
            }
        }
        Err(RenderProblem { template: self.0.name.clone(), errors: wrongs })
    }
}

/// Replaces each text with template syntax by null.
fn without_dynamic(value: &Value) -> Value {
    match value {
        Value::String(text) if is_dynamic(text) => Value::Null,
        Value::Array(list) => list.iter().map(without_dynamic).collect(),
        Value::Object(map) => map.iter().map(|(key, inner)| (key.clone(), without_dynamic(inner))).collect(),
        plain => plain.clone(),
    }
}

/// Adds the source's language if the template sets none, and then the overlays.
fn lay_over(value: &mut Value, vars: &Vars, overlays: &[Overlay]) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(language) = vars.language.as_deref().filter(|_| !shorthand::has_languages(value)) {
        merge(value, &Value::Object(shorthand::language(language)));
    }
    for overlay in overlays {
        merge(value, &Value::Object(overlay.parameters.clone()));
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.name).field(&self.0.value).finish()
    }
}

impl Inner {
    fn fill(&self, path: &str, value: &Value, vars: &Vars, wrongs: &mut Vec<RenderWrong>) -> Value {
        match value {
            Value::String(text) if is_dynamic(text) => self.print(path, vars).unwrap_or_else(|error| {
                wrongs.push(self.wrong(path, format!("cannot be rendered: {}", explain(&error)), &[]));
                Value::Null
            }),
            Value::Array(list) => {
                let numbered = list.iter().enumerate();
                numbered
                    .map(|(number, inner)| self.fill(&join(path, &number.to_string()), inner, vars, wrongs))
                    .collect()
            }
            Value::Object(map) => {
                map.iter().map(|(key, inner)| (key.clone(), self.fill(&join(path, key), inner, vars, wrongs))).collect()
            }
            plain => plain.clone(),
        }
    }

    fn print(&self, path: &str, vars: &Vars) -> Result<Value, Error> {
        let text = self.env.get_template(path)?.render(vars.context())?;
        Ok(Value::String(text))
    }

    fn wrong(&self, key: &str, what: String, overlays: &[Overlay]) -> RenderWrong {
        // A missing value is reported at the overlay that set its table.
        let line_of = |lines: &BTreeMap<String, usize>| {
            let tables = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(table, _)| table));
            tables.into_iter().find_map(|key| lines.get(key).copied())
        };
        let setter = overlays.iter().rev().find_map(|overlay| Some((overlay.from.clone(), line_of(&overlay.lines)?)));
        let (from, line) = match setter {
            Some((from, line)) => (Some(from), line),
            None => (None, self.lines.get(key).copied().unwrap_or(0)),
        };
        RenderWrong { from, line, key: key.to_owned(), what }
    }

    fn complaint(&self, complaint: &Complaint, value: &Value, overlays: &[Overlay]) -> RenderWrong {
        let found =
            value.pointer(&pointer(&complaint.field)).map_or(String::new(), |found| format!(", but is {found}"));
        self.wrong(&complaint.field, format!("{}{found}", shorten_complaint(complaint)), overlays)
    }
}

/// Converts a dotted path to a JSON pointer.
fn pointer(key: &str) -> String {
    format!("/{}", key.replace('.', "/"))
}

/// Whether a text contains template syntax.
pub fn is_dynamic(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

pub(crate) const PARSE_FIX: &str = "write {{ name }} to print and {% if … %} … {% endif %} to choose (minijinja)";

/// Makes a template engine in semi-strict mode: an undefined variable may be tested or have a default, but not be
/// printed.
pub(crate) fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env
}

pub(crate) fn take_metadata(value: &mut Value) -> Map<String, Value> {
    let taken = value.as_object_mut().and_then(|map| map.remove(METADATA));
    match taken {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Describes an error of the template engine in one line.
pub(crate) fn explain(error: &Error) -> String {
    let kind = error.kind();
    let words = error.detail().map_or(kind.to_string(), |detail| format!("{kind}: {detail}")).replace('\n', " ");
    match words {
        _ if words.contains("`row.") => {
            format!("{words}: the cell is empty or the manifest has no such column; fill it, or add `| default('')`")
        }
        _ if words.contains("`lang`") => {
            format!("{words}: the language is not known; write {{% if lang %}}.{{{{ lang }}}}{{% endif %}}")
        }
        _ => words,
    }
}

/// Returns the error of a text that cannot render for any job, such as an unknown filter; `None` if it may render with
/// other values.
pub(crate) fn always_fails(error: &Error) -> Option<ValueError> {
    let always = matches!(
        error.kind(),
        ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownFunction
            | ErrorKind::UnknownMethod
            | ErrorKind::TemplateNotFound
            | ErrorKind::TooManyArguments
            | ErrorKind::MissingArgument
    );
    always.then(|| refusal(format!("cannot be rendered: {}", explain(error)), PARSE_FIX))
}

/// Returns the variables that a text uses: `stem`, `capture.lang`.
pub(crate) fn names_of(env: &Environment<'_>, path: &str) -> HashSet<String> {
    env.get_template(path).map(|template| template.undeclared_variables(true)).unwrap_or_default()
}

/// The templates of a file by their names.
pub type Templates = BTreeMap<String, Template>;

/// Finds a template by its name.
///
/// # Errors
/// No template has that name.
pub fn find(templates: &Templates, name: &str) -> Result<Template, ValueError> {
    templates.get(name).cloned().ok_or_else(|| {
        let fix = match nearest(name, templates.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add [template.{name}]"),
        };
        refusal(format!("names the template `{name}`, which does not exist"), fix)
    })
}
