//! Templates: request parameters and output names whose text may hold `{{ … }}`.

use super::written::{Refusal, Section, refusal};
use crate::domain::format::Format;
use crate::domain::nearest::nearest;
use crate::domain::token::RESERVED_KEY;
use crate::wire::fields::{
    Complaint, METADATA, METADATA_LIMIT, PER_REQUEST, Side, Wrong, coerce, inspect, text_length,
};
use crate::wire::params::Params;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, context};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Named request parameters, filled in for each job.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

/// What a template may print. A path that is not UTF-8 is given lossily.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vars {
    /// The file's path, relative to its source's folder.
    pub path: String,
    /// The file's name with its extension.
    pub name: String,
    /// The file's name without its extension.
    pub stem: String,
    /// The file's extension as it is written, without a dot; may be empty.
    pub ext: String,
    /// The name of its source.
    pub source: String,
    /// The folder it lies in, relative to its source's; empty at the top.
    pub folder: String,
}

/// A template filled in for one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// Within all bounds; without `custom_metadata`.
    pub params: Params,
    /// What becomes `custom_metadata` together with our token, for which there is room.
    pub metadata: Map<String, Value>,
}

/// Why a template cannot be filled in for one job: everything at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template `{template}`: {}", wrongs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RenderProblem {
    /// The template's name.
    pub template: String,
    /// Never empty.
    pub wrongs: Vec<RenderWrong>,
}

/// One parameter that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderWrong {
    /// Its line in the configuration file, from 1; 0 where it is not in the file.
    pub line: usize,
    /// Its dotted path.
    pub key: String,
    /// What is wrong, with what was rendered.
    pub what: String,
}

impl fmt::Display for RenderWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} {}", self.line, self.key, self.what)
    }
}

struct Inner {
    name: String,
    /// As written, but for the types.
    value: Value,
    /// Line of each parameter by its dotted path.
    lines: BTreeMap<String, usize>,
    /// Every text that holds `{{ … }}`, by its dotted path.
    env: Environment<'static>,
}

/// Room that is kept in `custom_metadata` for our token's key and value, in UTF-16 units.
pub const TOKEN_ROOM: usize = 220;

const VARIABLES: [&str; 6] = ["path", "name", "stem", "ext", "source", "folder"];

const NAME_VARIABLES: [&str; 5] = ["stem", "name", "source", "lang", "ext"];

impl Template {
    /// No parameters at all: the service's defaults.
    pub fn empty() -> Self {
        let value = Value::Object(Map::new());
        Self(Arc::new(Inner { name: String::new(), value, lines: BTreeMap::new(), env: environment() }))
    }

    /// Its name in the file; empty for the one without parameters.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Reads `[template.NAME]` and tells all that is wrong with it to the section. The text of the
    /// file is for line numbers.
    pub fn build(name: &str, section: &Section<'_>, file_text: &str) -> Self {
        let mut written = Written { places: BTreeMap::new(), env: environment(), section };
        let value = section.table().map_or(Value::Null, |table| written.table("", table));
        written.check_rights(&value);
        written.check_fields(&value);
        let line = |place: Place| file_text[..place.value.start].matches('\n').count() + 1;
        let lines = written.places.into_iter().map(|(path, place)| (path, line(place))).collect();
        Self(Arc::new(Inner { name: name.to_owned(), value, lines, env: written.env }))
    }

    /// Fills the template in for one job.
    ///
    /// # Errors
    /// A text that does not render, or parameters that the interface does not take.
    pub fn render(&self, vars: &Vars) -> Result<Rendered, RenderProblem> {
        let mut wrongs = Vec::new();
        let mut value = self.0.fill("", &self.0.value, vars, &mut wrongs);
        let metadata = take_metadata(&mut value);
        if text_length(&Value::Object(metadata.clone())) > METADATA_LIMIT - TOKEN_ROOM {
            let what = format!("must be at most {} characters as JSON", METADATA_LIMIT - TOKEN_ROOM);
            wrongs.push(self.0.wrong(METADATA, what));
        }
        coerce(&mut value);
        match Params::read(&value, Side::Client) {
            Ok(reading) if wrongs.is_empty() => return Ok(Rendered { params: reading.params, metadata }),
            Ok(_) => {}
            Err(complaints) => {
                // What did not render is null by now; it is told once.
                let told: BTreeSet<String> = wrongs.iter().map(|wrong| wrong.key.clone()).collect();
                let news = complaints.iter().filter(|complaint| !told.contains(&complaint.field));
                wrongs.extend(news.map(|complaint| self.0.complaint(complaint, &value)));
            }
        }
        Err(RenderProblem { template: self.0.name.clone(), wrongs })
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
                wrongs.push(self.wrong(path, format!("does not render: {}", explain(&error))));
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

    fn wrong(&self, key: &str, what: String) -> RenderWrong {
        RenderWrong { line: self.lines.get(key).copied().unwrap_or(0), key: key.to_owned(), what }
    }

    fn complaint(&self, complaint: &Complaint, value: &Value) -> RenderWrong {
        let pointer = format!("/{}", complaint.field.replace('.', "/"));
        let found = value.pointer(&pointer).map_or(String::new(), |found| format!(", but is {found}"));
        self.wrong(&complaint.field, format!("{}{found}", in_short(complaint)))
    }
}

impl Vars {
    fn context(&self) -> minijinja::Value {
        let Self { path, name, stem, ext, source, folder } = self;
        context! { path => path.as_str(), name => name.as_str(), stem => stem.as_str(), ext => ext.as_str(), source => source.as_str(), folder => folder.as_str() }
    }

    /// A job as any other, to try templates on.
    fn sample() -> Self {
        let text = str::to_owned;
        Self {
            path: text("2024/AB12_en.mp4"),
            name: text("AB12_en.mp4"),
            stem: text("AB12_en"),
            ext: text("mp4"),
            source: text("inbox"),
            folder: text("2024"),
        }
    }
}

/// Whether text holds a template's marks.
pub fn is_dynamic(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// How the files written for a job are named.
#[derive(Clone)]
pub struct NameTemplate(Arc<Environment<'static>>);

/// What an output's name is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameVars<'a> {
    /// The media file's name without its extension.
    pub stem: &'a str,
    /// The media file's name with its extension.
    pub name: &'a str,
    /// The name of its source.
    pub source: &'a str,
    /// The language of the output; `None` or empty where unknown.
    pub lang: Option<&'a str>,
    /// The kind of output; its extension is `ext`.
    pub format: Format,
}

/// Why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// The template does not render.
    #[error("name_as does not render: {0}")]
    Render(String),
    /// It is empty, `.` or `..`, or has a `/` or a NUL.
    #[error("name_as made {0:?}, which is no file name")]
    NoName(String),
}

/// The name that `name_as` makes where it is not given.
pub const DEFAULT_NAME: &str = "{{ stem }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}";

const NAME: &str = "name_as";

impl NameTemplate {
    /// Compiles a template and tries it on each format.
    ///
    /// # Errors
    /// It does not parse, cannot render, needs a language, or gives two formats one name.
    pub fn build(text: &str) -> Result<Self, Refusal> {
        let mut env = environment();
        env.add_template_owned(NAME, text.to_owned())
            .map_err(|error| refusal(format!("does not parse: {}", explain(&error)), PARSE_MEND))?;
        let template = Self(Arc::new(env));
        let samples = template.samples(Some("en"));
        match (&samples, template.samples(None)) {
            (Err(error), _) => {
                hopeless(&template.0, NAME, error, &NAME_VARIABLES).map_or(Ok(()), Err)?;
                template.holds_ext()?;
            }
            (Ok(_), Err(_)) => {
                let mend = format!("a language may be unknown; the default is \"{DEFAULT_NAME}\"");
                return Err(refusal("prints `lang` without {% if lang %}", mend));
            }
            (Ok(with), Ok(without)) => [with, &without].into_iter().try_for_each(|names| distinct(names))?,
        }
        Ok(template)
    }

    /// What is left to say of a template that no sample fits.
    fn holds_ext(&self) -> Result<(), Refusal> {
        let used = self.0.get_template(NAME).map(|template| template.undeclared_variables(false));
        let holds = used.is_ok_and(|used| used.contains("ext"));
        if holds { Ok(()) } else { Err(one_name()) }
    }

    /// The names of one file's outputs of every kind.
    fn samples(&self, lang: Option<&str>) -> Result<Vec<String>, Error> {
        let vars = |format| NameVars { stem: "talk", name: "talk.mp4", source: "inbox", lang, format };
        Format::ALL.into_iter().map(|format| self.print(&vars(format))).collect()
    }

    fn print(&self, vars: &NameVars<'_>) -> Result<String, Error> {
        let NameVars { stem, name, source, lang, format } = *vars;
        // `None` would print itself; what is unknown is undefined.
        let lang = lang.filter(|lang| !lang.is_empty()).map_or(minijinja::Value::UNDEFINED, minijinja::Value::from);
        self.0.get_template(NAME)?.render(context! { stem, name, source, lang, ext => format.ext() })
    }

    /// The file name for an output.
    ///
    /// # Errors
    /// See [`NameProblem`].
    pub fn render(&self, vars: &NameVars<'_>) -> Result<String, NameProblem> {
        let printed = self.print(vars).map_err(|error| NameProblem::Render(explain(&error)))?;
        file_name(&printed)?;
        Ok(printed)
    }
}

/// However long it is: what a file system does not take is shortened where it is placed.
fn file_name(name: &str) -> Result<(), NameProblem> {
    match name {
        "" | "." | ".." => Err(NameProblem::NoName(name.to_owned())),
        _ if name.contains(['/', '\0']) => Err(NameProblem::NoName(name.to_owned())),
        _ => Ok(()),
    }
}

/// Whether these are file names, each another.
fn distinct(names: &[String]) -> Result<(), Refusal> {
    for name in names {
        let mend = format!("the default is \"{DEFAULT_NAME}\"");
        file_name(name).map_err(|problem| refusal(format!("cannot be used: {problem}"), mend))?;
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(one_name());
    }
    Ok(())
}

fn one_name() -> Refusal {
    refusal("must hold {{ ext }}: two formats would get one name", format!("the default is \"{DEFAULT_NAME}\""))
}

impl fmt::Debug for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.get_template(NAME).map(|template| template.source().to_owned());
        f.debug_tuple("NameTemplate").field(&text.unwrap_or_default()).finish()
    }
}

const PARSE_MEND: &str = "write {{ name }} to print and {% if … %} … {% endif %} to choose (minijinja)";

/// Semi-strict: a test or a default for what is absent is allowed, printing it is an error.
fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env
}

/// Where a parameter stands in the file.
#[derive(Clone)]
struct Place {
    key: Range<usize>,
    value: Range<usize>,
}

/// A template while it is read.
struct Written<'s, 'a> {
    places: BTreeMap<String, Place>,
    env: Environment<'static>,
    section: &'s Section<'a>,
}

impl Written<'_, '_> {
    fn table(&mut self, path: &str, table: &DeTable<'_>) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let (name, inner) = (key.get_ref().to_string(), join(path, key.get_ref()));
            let place = Place { key: key.span(), value: value.span() };
            self.places.insert(inner.clone(), place);
            map.insert(name, self.value(&inner, value.get_ref()));
        }
        Value::Object(map)
    }

    fn value(&mut self, path: &str, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::String(text) => self.text(path, text),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Integer(digits) => match i64::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()) {
                Ok(number) => Value::from(number),
                Err(_) => self.no_number(path),
            },
            DeValue::Float(digits) => match digits.as_str().replace('_', "").parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                _ => self.no_number(path),
            },
            DeValue::Array(list) => list
                .iter()
                .enumerate()
                .map(|(number, element)| {
                    let inner = join(path, &number.to_string());
                    self.places.insert(inner.clone(), Place { key: element.span(), value: element.span() });
                    self.value(&inner, element.get_ref())
                })
                .collect(),
            DeValue::Table(table) => self.table(path, table),
        }
    }

    fn no_number(&mut self, path: &str) -> Value {
        self.tell(path, refusal("must be a number that JSON can hold", "write a finite number"));
        Value::Null
    }

    fn text(&mut self, path: &str, text: &str) -> Value {
        if is_dynamic(text) {
            match self.env.add_template_owned(path.to_owned(), text.to_owned()) {
                Ok(()) => self.try_out(path),
                Err(error) => self.tell(path, refusal(format!("does not parse: {}", explain(&error)), PARSE_MEND)),
            }
        }
        Value::String(text.to_owned())
    }

    /// Renders the text for a sample job and tells what can render for no job at all. What depends
    /// on the job (a part of its name that this one has not) is left to the real ones.
    fn try_out(&self, path: &str) {
        let Ok(template) = self.env.get_template(path) else { return };
        let Err(error) = template.render(Vars::sample().context()) else { return };
        if let Some(refusal) = hopeless(&self.env, path, &error, &VARIABLES) {
            self.tell(path, refusal);
        }
    }

    /// What may not be set in a template.
    fn check_rights(&self, value: &Value) {
        for key in PER_REQUEST.iter().filter(|key| value.get(key).is_some()) {
            self.tell_key(key, refusal("may not be set in a template", "take it out; it is set for each job"));
        }
        if value.pointer(&format!("/{METADATA}/{RESERVED_KEY}")).is_some() {
            let key = format!("{METADATA}.{RESERVED_KEY}");
            self.tell_key(
                &key,
                refusal("may not be set in a template", "this key holds scribed's own token; use another"),
            );
        }
    }

    /// What the interface does not take, as far as it does not hang on a job.
    fn check_fields(&self, value: &Value) {
        let mut params = value.clone();
        if params.get(METADATA).is_some_and(Value::is_object) {
            let metadata = Value::Object(take_metadata(&mut params));
            let room = METADATA_LIMIT - TOKEN_ROOM;
            if !is_dynamic(&metadata.to_string()) && text_length(&metadata) > room {
                self.tell_key(
                    METADATA,
                    refusal(
                        format!("must be at most {room} characters as JSON"),
                        "the service keeps no more, with scribed's token",
                    ),
                );
            }
        }
        for complaint in inspect(&params, Side::Client, is_dynamic).complaints {
            if !PER_REQUEST.iter().any(|key| complaint.field.split('.').next() == Some(key)) {
                self.complain(&complaint);
            }
        }
    }

    fn complain(&self, complaint: &Complaint) {
        let last = complaint.field.rsplit('.').next().unwrap_or_default();
        match complaint.wrong {
            Wrong::Key => {
                let near = nearest(last, complaint.known.iter().copied());
                let mend = near.map_or("see the interface's create parameters".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                });
                self.tell_key(&complaint.field, refusal("is no parameter of the interface", mend));
            }
            Wrong::Missing => {
                let parent = complaint.field.rsplit_once('.').map_or("", |(parent, _)| parent);
                self.tell_key(
                    parent,
                    refusal(format!("lacks `{last}`: it {}", complaint.must), format!("add `{last}`")),
                );
            }
            Wrong::Value => self.tell(&complaint.field, refusal(in_short(complaint), self.value_mend(complaint))),
        }
    }

    fn value_mend(&self, complaint: &Complaint) -> String {
        let place = self.places.get(&complaint.field);
        let written = place.and_then(|_| self.written_text(&complaint.field));
        let near = written.and_then(|text| nearest(&text, complaint.known.iter().copied()));
        match near {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if complaint.known.is_empty() => "change it, or take it out for the service's default".to_owned(),
            None => format!("one of: {}", complaint.known.join(", ")),
        }
    }

    /// The text that stands at this path.
    fn written_text(&self, path: &str) -> Option<String> {
        let mut steps = path.split('.');
        let first = self.section.table()?.get(steps.next()?)?.get_ref();
        let found = steps.try_fold(first, |value, step| match step.parse::<usize>() {
            Ok(number) => value.get(number).map(|inner| inner.get_ref()),
            Err(_) => value.get(step).map(|inner| inner.get_ref()),
        });
        found?.as_str().map(str::to_owned)
    }

    /// Tells a problem of the value at this path.
    fn tell(&self, path: &str, refusal: Refusal) {
        let span = self.places.get(path).map_or(self.section.span.clone(), |place| place.value.clone());
        self.section.refuse(path, span, refusal);
    }

    /// Tells a problem of the key at this path.
    fn tell_key(&self, path: &str, refusal: Refusal) {
        let span = self.places.get(path).map_or(self.section.span.clone(), |place| place.key.clone());
        self.section.refuse(path, span, refusal);
    }
}

/// A complaint in one short line: a list of values too long to read is not repeated in it.
fn in_short(complaint: &Complaint) -> String {
    match complaint.known.len() {
        0..=10 => complaint.must.clone(),
        many => format!("must be one of the interface's {many} values"),
    }
}

/// Why a text that failed for a sample fails for everything: it prints what nothing has, or asks
/// for what the engine has not. `None` where it may render with other values.
fn hopeless(env: &Environment<'_>, name: &str, error: &Error, variables: &[&str]) -> Option<Refusal> {
    if error.kind() == ErrorKind::UndefinedError {
        let used = env.get_template(name).ok()?.undeclared_variables(false);
        let is_known =
            |name: &String| variables.contains(&name.as_str()) || env.globals().any(|(global, _)| global == name);
        let unknown = used.into_iter().filter(|name| !is_known(name)).min()?;
        return Some(refusal(format!("prints `{unknown}`, which is not there"), variables_mend(&unknown, variables)));
    }
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
    always.then(|| refusal(format!("does not render: {}", explain(error)), PARSE_MEND))
}

fn variables_mend(name: &str, variables: &[&str]) -> String {
    match nearest(name, variables.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!("there are {}; for what may be absent write {{{{ {name} | default('…') }}}}", variables.join(", "))
        }
    }
}

fn take_metadata(value: &mut Value) -> Map<String, Value> {
    let taken = value.as_object_mut().and_then(|map| map.remove(METADATA));
    match taken {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// An error of the template engine in one line.
fn explain(error: &Error) -> String {
    let kind = error.kind();
    error.detail().map_or(kind.to_string(), |detail| format!("{kind}: {detail}")).replace('\n', " ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// All templates of a file by their names.
pub type Templates = BTreeMap<String, Template>;

/// The template that a source names.
///
/// # Errors
/// There is none of that name.
pub fn find(templates: &Templates, name: &str) -> Result<Template, Refusal> {
    templates.get(name).cloned().ok_or_else(|| {
        let mend = match nearest(name, templates.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add [template.{name}]"),
        };
        refusal(format!("names `{name}`, and there is no such template"), mend)
    })
}
